"""What `doctor` looks at: build, configuration, key, store, workspace, experts; and what to do about each fault."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from search_router.config.loader import load_config
from search_router.errors import SearchRouterError
from search_router.router.service import open_router


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    ok: bool
    found: str
    remedy: str = ""


async def diagnose(roots: Sequence[Path], flags: Sequence[str]) -> list[Finding]:
    """Open a router as a server would, leave one receipt, and report."""
    try:
        loaded = load_config(roots=roots, environ=os.environ, flags=flags)
    except SearchRouterError as error:
        return [Finding("configuration", False, error.message, error.remedy)]
    findings = [
        Finding("configuration", True, f"{loaded.version} · {loaded.hash[:12]}"),
        *(Finding("configuration note", True, note) for note in loaded.notes),
        Finding("state", True, f"receipts {loaded.paths.receipts} · key {loaded.paths.key} · cache {loaded.paths.cache}"),
    ]
    try:
        async with open_router(roots=roots, flags=flags, loaded=loaded) as router:
            registry = await router.registry()
            build = registry.build
            state = {True: "changed since", False: "clean", None: ""}[build.dirty]
            findings.append(Finding("build", True, f"{build.version} {(build.commit or 'installed package')[:12]} {state}".strip()))
            findings += [
                Finding(f"expert {e.id}", e.available or not e.enabled, f"{e.reason} {e.version or ''}".strip()) for e in registry.experts
            ]
            findings += [
                Finding(f"project {p.id}", True, f"{p.kind} {p.root} {'(shallow)' if p.shallow else ''}".strip()) for p in registry.projects
            ]
            answer = await router.search({"question": "doctor"}, principal="doctor")
            findings.append(Finding("receipts", answer.receipt is not None, f"wrote {answer.receipt.id}" if answer.receipt else "none"))
            findings += [Finding("note", True, note) for note in registry.notes]
    except SearchRouterError as error:
        findings.append(Finding(error.code, False, error.message, error.remedy))
    return findings
