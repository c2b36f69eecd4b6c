"""Whether the directories that a router keeps things in can be used; and if not, which one, why, and what to do."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.symbol_store import FILE_NAME, DerivedStore
from search_router.config.state import StatePaths


@dataclass(frozen=True, slots=True)
class Place:
    """One directory: what it is for, and what is wrong with it, empty when nothing is."""

    what: str
    path: Path
    fault: str = ""
    remedy: str = ""


def inspect_places(paths: StatePaths, reserve: Reserve = DEFAULT_RESERVE) -> tuple[Place, ...]:
    """Home, key, receipts, checkpoints, cache: each tried out as a router would use it, made where missing and written to. Blocks."""
    home = "SEARCH_ROUTER_HOME"
    named = {
        "state": paths.home,
        "key": paths.key.parent,
        "receipts": paths.receipts,
        "checkpoints": paths.checkpoints,
        "cache": paths.cache,
    }
    variables = {
        "state": home,
        "key": "SEARCH_ROUTER_KEY",
        "receipts": "receipts.directory",
        "checkpoints": "receipts.checkpoints",
        "cache": home,
    }
    if os.path.lexists(paths.key):
        del named["key"]  # one that is mounted read-only is fine, and whether it can be used is the key's own business
    places = [_inspect(what, path, variables[what]) for what, path in named.items()]
    cache = places[-1]
    if not cache.fault:
        places += [_inspect("cache", below, variables["cache"]) for below in _subdirectories(cache.path)]
    if not cache.fault or os.path.lexists(cache.path / FILE_NAME):  # what cannot be written may still be read
        places += _inspect_index(cache.path, reserve)
    return tuple(places)


def _inspect(what: str, directory: Path, variable: str) -> Place:
    """A new file in it says more than its mode: file systems are read-only or full, and root may do what modes forbid."""
    probe = directory / f".probe.{secrets.token_hex(8)}"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"probe")
        finally:
            os.close(descriptor)
            probe.unlink()
        list(os.scandir(directory))
    except OSError as error:
        return Place(what, directory, _fault_of(directory, error), f"{_remedy_for(directory)}, or name another place by {variable}.")
    return Place(what, directory)


def _fault_of(directory: Path, error: OSError) -> str:
    blocking = _not_a_directory(directory)
    if blocking is not None:
        return f"{blocking} is not a directory"
    return f"it cannot be used: {error.strerror or error}"


def _remedy_for(directory: Path) -> str:
    blocking = _not_a_directory(directory)
    if blocking is not None:
        return f"Move {blocking} away"
    return f"Make {directory} a directory that user {os.geteuid()} can read, write and enter (mode 0700), with space left"


def _not_a_directory(directory: Path) -> Path | None:
    """What stands where the directory, or one above it, should be."""
    for each in (*reversed(directory.parents), directory):
        if os.path.lexists(each) and not os.path.isdir(each):  # noqa: PTH112 - Path.is_dir raises where a parent cannot be entered
            return each
    return None


def _subdirectories(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _inspect_index(cache: Path, reserve: Reserve) -> list[Place]:
    """What the index's own file says when it is opened: it works from memory when it cannot be, so nobody else would notice."""
    store = DerivedStore(cache, reserve=reserve)
    store.note_space()
    store.load(())
    store.stamps(cache)
    store.close()
    remedy = f"Move {store.path} away; it is built anew."
    return [Place("index", store.path, note, remedy if store.failed else "") for note in store.notes]
