"""What `doctor` looks at: build, configuration, key, store, workspace, experts; and what to do about each fault."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from search_router.adapters.registry import reserve_of
from search_router.config.loader import LoadedConfig, load_config
from search_router.config.sources import PROJECT_SWITCH
from search_router.errors import ConfigError, SearchRouterError
from search_router.router.opening import open_router
from search_router.router.places import inspect_places
from search_router.router.service import Router


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    ok: bool
    found: str
    remedy: str = ""


async def diagnose(roots: Sequence[Path], flags: Sequence[str]) -> list[Finding]:
    """Open a router as a server would, leave one receipt, and report.

    A project's file with mistakes is a fault, and the rest is looked at without it. So is a directory that cannot be used.
    """
    findings: list[Finding] = []
    try:
        loaded = _load(roots, flags, findings)
    except SearchRouterError as error:
        return [*findings, Finding("configuration", False, error.message, error.remedy.strip())]
    findings += [
        Finding("configuration", True, f"{loaded.version} · {loaded.hash[:12]}"),
        *(Finding("configuration note", True, note) for note in loaded.notes),
    ]
    for place in await anyio.to_thread.run_sync(inspect_places, loaded.paths, reserve_of(loaded.config)):
        found = f"{place.path}: {place.fault}" if place.fault else str(place.path)
        findings.append(Finding(f"{place.what} directory" if place.what != "index" else "index", not place.fault, found, place.remedy))
    try:
        async with open_router(roots=roots, flags=flags, loaded=loaded) as router:
            findings += await _look_at(router)
    except SearchRouterError as error:
        findings.append(Finding(error.code, False, error.message, error.remedy))
    return findings


def _load(roots: Sequence[Path], flags: Sequence[str], findings: list[Finding]) -> LoadedConfig:
    try:
        return load_config(roots=roots, environ=os.environ, flags=flags)
    except ConfigError as error:
        try:
            loaded = load_config(roots=roots, environ={**os.environ, PROJECT_SWITCH: "off"}, flags=flags)
        except SearchRouterError:
            raise error from None
        remedy = f"Mend it, or set {PROJECT_SWITCH}=off: other commands do not start with it."
        findings += [Finding("project file", False, str(problem), remedy) for problem in error.problems]
        return loaded


async def _look_at(router: Router) -> list[Finding]:
    registry = await router.registry()
    build = registry.build
    state = {True: "changed since", False: "clean", None: ""}[build.dirty]
    answer = await router.search({"question": "doctor"}, principal="doctor")
    await router.enrichment.settle()
    fault = router.enrichment.owner.fault
    return [
        Finding("build", True, f"{build.version} {build.commit[:12] if build.commit else 'installed package'} {state}".strip()),
        *(
            Finding(f"expert {e.id}", e.available or not e.enabled or "optional" in e.details, f"{e.reason} {e.version or ''}".strip())
            for e in registry.experts
        ),
        *(Finding(f"project {p.id}", True, f"{p.kind} {p.root} {'(shallow)' if p.shallow else ''}".strip()) for p in registry.projects),
        Finding("receipts", answer.receipt is not None, f"wrote {answer.receipt.id}" if answer.receipt else "none"),
        Finding(
            "cache and hints", fault is None, fault.message if fault else str(router.enrichment.owner.path), fault.remedy if fault else ""
        ),
        *(Finding("note", True, note) for note in registry.notes),
    ]
