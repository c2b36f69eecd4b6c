"""Where the index of one project stands, without bringing it up to date: nothing is silently left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio.to_thread

from search_router.adapters.local.extract_worker import read_source
from search_router.adapters.local.index_care import parts_of
from search_router.adapters.local.installed import INSTALLED, installed_folders
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path, text_language
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.manifest import read_manifest
from search_router.adapters.local.symbol_state import derived_key, reason_key
from search_router.adapters.local.symbol_store import DerivedStore, FileStamp
from search_router.schema import Project

NOT_TEXT: Final = "not text by its name"
_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class ProjectIndex:
    """One project against the store.

    Every listed path is in exactly one of: `indexed`, `waiting` (the store does not have its bytes yet), `damaged` (it has them and they
    cannot be read; they are made anew when they are met) and `left_out`. What is left out is still searched by `grep`. `languages`
    counts the first three; `damped` counts those of them that rank lower for what their paths say.
    """

    project: Project
    indexed: int
    waiting: tuple[str, ...]
    damaged: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    languages: Mapping[str, int]
    damped: Mapping[str, int]


async def survey_index(project: Project, store: DerivedStore, *, max_bytes: int, nested: tuple[Path, ...] = ()) -> ProjectIndex:
    """Compare the project's files with the store. Files that it does not know by their stamp are read; none is parsed.

    Raises:
        ExpertError: the project cannot be listed.
    """
    manifest = await read_manifest(project, nested=nested)
    left_out = list(manifest.left_out)
    stamps = await anyio.to_thread.run_sync(store.stamps, project.root)
    installed = installed_folders(entry.path for entry in manifest.entries)
    known: list[tuple[str, str, str]] = []
    unknown: list[tuple[str, str]] = []
    for entry in manifest.entries:
        language = text_language(entry.path)
        stamp, blob = stamps.get(entry.path, (None, ""))
        if language is None:
            left_out.append(LeftOut(entry.path, NOT_TEXT))
        elif entry.path.startswith(installed):
            left_out.append(LeftOut(entry.path, INSTALLED))
        elif entry.size > max_bytes:
            left_out.append(LeftOut(entry.path, f"larger than {max_bytes} bytes"))
        elif stamp == FileStamp.of(entry):
            known.append((entry.path, language, blob))
        else:
            unknown.append((entry.path, language))
    for start in range(0, len(unknown), _AT_ONCE):
        part = unknown[start : start + _AT_ONCE]
        read, left = await anyio.to_thread.run_sync(_identify, project.root, part, max_bytes)
        known += read
        left_out += left
    waiting: list[str] = []
    damaged: list[str] = []
    for start in range(0, len(known), _AT_ONCE):
        missing, broken, left = await anyio.to_thread.run_sync(_look_up, store, known[start : start + _AT_ONCE])
        waiting += missing
        damaged += broken
        left_out += left
    out = {left.path for left in left_out}
    paths = [(path, language) for path, language, _ in known if path not in out]
    return ProjectIndex(
        project,
        len(paths) - len(waiting) - len(damaged),
        tuple(sorted(waiting)),
        tuple(sorted(damaged)),
        tuple(sorted(left_out, key=lambda left: left.path)),
        dict(Counter(language for _, language in paths).most_common()),
        _count_damped([path for path, _ in paths]),
    )


def _identify(root: Path, wanted: Sequence[tuple[str, str]], max_bytes: int) -> tuple[list[tuple[str, str, str]], list[LeftOut]]:
    """((path, language, blob) of what can be read, the rest with its reason); a file that is gone is in neither."""
    found: list[tuple[str, str, str]] = []
    left: list[LeftOut] = []
    for path, language in wanted:
        source = read_source(root, path, max_bytes=max_bytes)
        if not isinstance(source, LeftOut):
            found.append((path, language, source.blob))
        elif source.reason != "gone":
            left.append(source)
    return found, left


def _look_up(store: DerivedStore, wanted: Sequence[tuple[str, str, str]]) -> tuple[list[str], list[str], list[LeftOut]]:
    """(paths that the store does not have, those whose row is damaged, those that it knows to have no symbols)."""
    rows = store.load([key for _, language, blob in wanted for key in (derived_key(language, blob), reason_key(language, blob))])
    missing: list[str] = []
    damaged: list[str] = []
    left: list[LeftOut] = []
    for path, language, blob in wanted:
        row, reason = rows.get(derived_key(language, blob)), rows.get(reason_key(language, blob))
        if row is not None:
            damaged += [path] if parts_of(row) is None else []
        elif reason is not None:
            left.append(LeftOut(path, reason.payload.decode("utf-8", "replace")))
        else:
            missing.append(path)
    return missing, damaged, left


def _count_damped(paths: Sequence[str]) -> dict[str, int]:
    tests = {"test": is_test_path, "generated": is_generated_path, "vendored": is_vendored_path}
    return {name: count for name, judge in tests.items() if (count := sum(map(judge, paths)))}
