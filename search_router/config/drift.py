"""Says once when the configuration is not the one of the last run for this workspace."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_router.canonical import digest
from search_router.config.keys import as_table, dotted
from search_router.config.loader import LoadedConfig, per_mille
from search_router.config.state import StatePaths
from search_router.plain_files import read_plain

FILE_NAME = "last-run.json"
MAX_FILE_BYTES = 4 * 2**20
MAX_ROOTS = 64
KEYS_NAMED = 5
NOT_ANSWERING = frozenset({"http", "telemetry"})
"""Where a server listens and who watches it changes no answer: `serve --port 0` and the command line take turns on one configuration."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What is remembered of a run: never a value, only a hash of each."""

    version: str
    hash: str
    keys: Mapping[str, str]


def note_drift(paths: StatePaths, loaded: LoadedConfig) -> str | None:
    """One sentence when version or hash differs from the last run with the same first root, else None; remembers this run.

    It is said once, because it is remembered at the same time; when it cannot be remembered it is not said, or it would be said
    for ever. A file that is missing or damaged counts as no last run. Never raises.
    """
    file, root = paths.home / FILE_NAME, str(loaded.root)
    runs = _read_runs(file)
    last = _parse_run(runs.get(root))
    if last is not None and (last.version, last.hash) == (loaded.version, loaded.hash):
        return None
    answering = {path: value for path, value in loaded.leaves.items() if path[0] not in NOT_ANSWERING}
    now = _Run(loaded.version, loaded.hash, {dotted(path): digest(per_mille(value))[:16] for path, value in answering.items()})
    runs.pop(root, None)
    runs[root] = {"version": now.version, "hash": now.hash, "keys": now.keys}
    newest = dict(list(runs.items())[-MAX_ROOTS:])
    if not _replace_file(file, json.dumps({"roots": newest}, indent=1)):
        return None
    return None if last is None or (last.version, last.keys) == (now.version, now.keys) else _say(root, last, now)


def _say(root: str, last: _Run, now: _Run) -> str:
    version = f"from {last.version} to {now.version}" if last.version != now.version else f"of {now.version}"
    changed = [key for key in dict.fromkeys((*now.keys, *last.keys)) if key != "version" and now.keys.get(key) != last.keys.get(key)]
    more = f" and {len(changed) - KEYS_NAMED} more" if len(changed) > KEYS_NAMED else ""
    names = f", in {', '.join(changed[:KEYS_NAMED])}{more}" if changed else ""
    return f"The configuration {version} changed since the last run in {root}{names} (hash {last.hash[:12]} is now {now.hash[:12]})."


def _read_runs(file: Path) -> dict[str, Any]:
    try:
        data = read_plain(file, MAX_FILE_BYTES + 1)
        content = as_table(json.loads(data)) if len(data) <= MAX_FILE_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return dict(as_table((content or {}).get("roots")) or {})


def _parse_run(value: object) -> _Run | None:
    table = as_table(value) or {}
    version, hash_, keys = table.get("version"), table.get("hash"), as_table(table.get("keys"))
    if not isinstance(version, str) or not isinstance(hash_, str) or keys is None:
        return None
    return _Run(version, hash_, {name: text for name, text in keys.items() if isinstance(text, str)})


def _replace_file(file: Path, text: str) -> bool:
    """Whether the file now has this text. A reader sees the old or the new text, never a part."""
    temporary: str | None = None
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(temporary).replace(file)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        return False
    return True
