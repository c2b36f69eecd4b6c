"""From the configuration to an observer, and to an end that is bounded whatever the collector does.

This file imports OpenTelemetry nowhere at its top: a router without telemetry opens without reading any of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import anyio

from search_router.config.schema import TelemetryConfig
from search_router.errors import ConfigError, ConfigProblem
from search_router.observing import NOBODY, Observer

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from search_router.telemetry.events import EventLog

CLOSE_SECONDS = 1.5
"""What is still queued has so long to leave when a router closes; then it is lost."""
SERVICE = "search-router"
EXTRA = "pip install 'search-router[telemetry]'"
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "prometheus_client")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
SPOKEN = "http/protobuf"


@contextlib.asynccontextmanager
async def open_telemetry(config: TelemetryConfig, version: str) -> AsyncGenerator[Observer]:
    """The observer that the configuration wants; `NOBODY` when it wants none.

    Raises:
        ConfigError: the packages are not installed, or an OTEL_* variable asks for what is not there.
    """
    measured = config.traces or config.metrics or config.prometheus
    if not measured and not config.logs:
        yield NOBODY
        return
    if measured:
        _check_packages(config)
        _check_protocol(os.environ)
    with _events(config) as events:
        observer, ends = _open(config, version, events)
        try:
            yield observer
        finally:
            with anyio.CancelScope(shield=True):
                await _end_all(ends)


def _open(config: TelemetryConfig, version: str, events: EventLog | None) -> tuple[Observer, list[Callable[[], None]]]:
    """The observer, and what ends its parts. Each end may take long."""
    from search_router.telemetry.observer import Telemetry

    spans = metrics = None
    ends: list[Callable[[], None]] = []
    try:
        if config.metrics or config.prometheus:
            from search_router.telemetry.metrics import open_metrics

            metrics = open_metrics(_resource(version), version, otlp=config.metrics, prometheus=config.prometheus)
            ends.append(metrics.shutdown)
        if config.traces:
            from search_router.telemetry.spans import open_spans

            spans = open_spans(_resource(version), version)
            ends.append(spans.shutdown)
    except ValueError as error:
        _start_ends(ends)
        message = f"an OTEL_* variable has a value that cannot be used: {error}"
        raise ConfigError((ConfigProblem("environment", 0, "OTEL_*", message),)) from error
    return Telemetry(spans, metrics, events, config.content, config.propagate), ends


def _resource(version: str) -> Resource:
    """This process as OpenTelemetry names it: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    found = Resource.create({})
    named = not str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service")
    ours = {SERVICE_VERSION: version} | ({} if named else {SERVICE_NAME: SERVICE})
    kept = {name: value for name, value in ours.items() if name == SERVICE_NAME or name not in found.attributes}
    return found.merge(Resource(kept))


@contextlib.contextmanager
def _events(config: TelemetryConfig) -> Generator[EventLog | None]:
    """The event log, and what other code logs as events, for as long as the block runs."""
    if not config.logs:
        yield None
        return
    from search_router.telemetry.events import EventHandler, EventLog

    events = EventLog(_descriptor(), content=config.content)
    handler = EventHandler(events)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield events
    finally:
        root.removeHandler(handler)
        events.close()


def _descriptor() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by something without a descriptor
        return 2


async def _end_all(ends: list[Callable[[], None]]) -> None:
    """Let every part send what it still has, within CLOSE_SECONDS, in threads that hold up neither the event loop nor the process's end."""
    if not ends:
        return
    loop = asyncio.get_running_loop()
    over: list[asyncio.Future[None]] = [loop.create_future() for _ in ends]
    _start_ends([partial(_end, end, loop, done) for end, done in zip(ends, over, strict=True)])
    await asyncio.wait(over, timeout=CLOSE_SECONDS)


def _start_ends(ends: list[Callable[[], None]]) -> None:
    for end in ends:
        threading.Thread(target=end, name="search-router telemetry end", daemon=True).start()


def _end(end: Callable[[], None], loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    try:
        end()
    finally:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, done)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _check_packages(config: TelemetryConfig) -> None:
    missing = [name for name in NEEDED if not _is_there(name)]
    if missing:
        wanted = next(name for name in ("traces", "metrics", "prometheus") if getattr(config, name))
        message = f"needs packages that are not installed ({', '.join(missing)}). Install them with {EXTRA}, or switch it off."
        raise ConfigError((ConfigProblem("effective configuration", 0, f"telemetry.{wanted}", message),))


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _check_protocol(environ: Mapping[str, str]) -> None:
    """Only OTLP over HTTP is spoken; a collector's gRPC port would refuse every batch, quietly."""
    wrong = [name for name in PROTOCOLS if environ.get(name, SPOKEN).strip() not in ("", SPOKEN)]
    if wrong:
        message = f"asks for {environ[wrong[0]]!r}, and only {SPOKEN} is spoken here. Set it to that, with the endpoint's HTTP port (4318)."
        raise ConfigError((ConfigProblem("environment", 0, wrong[0], message),))
