"""Opening a router from a configuration: its workspace, key, receipt store, experts and advisers, and closing them all, with a bound."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from search_router import __version__
from search_router.adapters.registry import ExpertShelf, build_experts
from search_router.config.drift import note_drift
from search_router.config.loader import LoadedConfig, load_config
from search_router.receipts.checkpointer import CheckpointPlan
from search_router.receipts.keys import load_or_create_key
from search_router.receipts.store import open_store
from search_router.router.advisers import Advisers, make_advisers
from search_router.router.build import read_build
from search_router.router.enrich.enrichment import Enrichment
from search_router.router.seal import Sealer
from search_router.router.service import Router
from search_router.router.workspace import discover_workspace
from search_router.router.workspace_watch import WorkspaceWatch
from search_router.telemetry.opening import open_telemetry

CLOSE_SECONDS = 5.0


@asynccontextmanager
async def open_router(
    *,
    roots: Sequence[str | Path] = (),
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    loaded: LoadedConfig | None = None,
) -> AsyncGenerator[Router]:
    """A router over the given roots (else the configured ones, else the working directory).

    Raises:
        ConfigError: every mistake of every layer at once.
        WorkspaceError: a root is missing or unreadable.
        ReceiptError: the key or the receipt store cannot be used; nothing runs without receipts.
    """
    paths = [Path(root) for root in roots]
    if loaded is None:
        loaded = load_config(roots=paths, environ=os.environ if environ is None else environ, flags=flags)
    for directory in (loaded.paths.home, loaded.paths.cache):
        _make_private(directory)
    async with AsyncExitStack() as stack:
        observer = await stack.enter_async_context(open_telemetry(loaded.config.telemetry, __version__))
        reading_build = asyncio.create_task(anyio.to_thread.run_sync(read_build, abandon_on_cancel=True), name="read the build")
        stack.callback(reading_build.cancel)
        workspace = await discover_workspace(loaded.config.workspace, paths)
        key = load_or_create_key(loaded.paths.key)
        store = await stack.enter_async_context(
            open_store(
                loaded.paths.receipts,
                key,
                clock=lambda: time.time_ns() // 1000,
                nonce=lambda: secrets.token_hex(16),
                max_wait_ms=loaded.config.receipts.max_wait_ms,
                checkpoints=_plan_checkpoints(loaded),
            )
        )
        experts = build_experts(loaded.config, loaded.paths.cache)
        stack.push_async_callback(_close_experts, experts)
        advisers = make_advisers(loaded.config)
        stack.push_async_callback(_close_advisers, advisers)
        drift = note_drift(loaded.paths, loaded)
        notes = (*loaded.notes, *workspace.notes, *((drift,) if drift else ()))
        build = await reading_build
        sealer = Sealer(store, key, build, loaded, secrets.token_hex(8))
        enrichment = Enrichment(loaded, key, experts, build, store, secrets.token_hex(8))
        stack.push_async_callback(enrichment.aclose)
        watch = WorkspaceWatch(loaded.config.workspace, paths)
        router = Router(loaded, workspace, experts, sealer, store, build, notes, enrichment, watch, advisers, observer)
        stack.push_async_callback(router.aclose)
        yield router


def _plan_checkpoints(loaded: LoadedConfig) -> CheckpointPlan:
    settings, paths = loaded.config.receipts, loaded.paths
    key = load_or_create_key(paths.checkpoint_key)
    return CheckpointPlan(paths.checkpoints, key, settings.checkpoint_receipts, settings.checkpoint_seconds)


def _make_private(directory: Path) -> None:
    """Make a state directory for its owner alone; what can't be made is reported by the room that needs it."""
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)


async def _close_experts(experts: ExpertShelf) -> None:
    """Close all at once, with a bound."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for expert in experts.made().values():
                tasks.start_soon(expert.aclose)


async def _close_advisers(advisers: Advisers) -> None:
    """Close them, with a bound."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
        await advisers.aclose()
