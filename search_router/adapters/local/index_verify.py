"""Whether the index says what the files say: rows are derived again from the work tree and compared, and what is wrong can be dropped."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from search_router.adapters.local.extract_pool import ExtractPool, WantedFile, worker_count
from search_router.adapters.local.extract_worker import ReadSyntax
from search_router.adapters.local.index_care import damaged_rows, integrity_problems, parts_of
from search_router.adapters.local.installed import installed_folders
from search_router.adapters.local.languages import text_language
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.manifest import read_manifest
from search_router.adapters.local.store_opening import is_writable
from search_router.adapters.local.symbol_state import derived_key
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore
from search_router.schema import Project


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found. `compared` files were derived again, `different` are those whose row says something else.

    `repaired` says that it was asked for and could be done; `repairable`, that it can be.
    """

    problems: tuple[str, ...]
    rows: int
    damaged: tuple[DerivedKey, ...]
    compared: int
    different: tuple[str, ...]
    repaired: bool
    repairable: bool = True

    @property
    def sound(self) -> bool:
        """Nothing was wrong, or it no longer is."""
        return self.repaired or not (self.problems or self.damaged or self.different)


async def verify_index(
    projects: tuple[Project, ...], store: DerivedStore, *, max_bytes: int, sample: int | None, seed: int, repair: bool
) -> Verified:
    """Check SQLite's file, every row's checksum, and `sample` files of each project (None: all) against what they give now.

    With `repair`, a file that SQLite calls damaged is moved aside, and wrong rows are dropped, so that they are made anew.

    Raises:
        ExpertError: a project cannot be listed, or no extraction worker can be started.
    """
    problems = await anyio.to_thread.run_sync(integrity_problems, store)
    if problems:
        if repair:
            await anyio.to_thread.run_sync(store.set_aside, problems[0])
        can = await anyio.to_thread.run_sync(is_writable, store.path.parent)
        return Verified(problems, 0, (), 0, (), repair and not store.failed, can)
    rows, damaged = await anyio.to_thread.run_sync(damaged_rows, store)
    if store.failed:
        return Verified(("the store cannot be used, so nothing was checked",), 0, (), 0, (), False, False)
    compared, wrong = 0, dict[DerivedKey, str]()
    nested = tuple(project.root for project in projects)
    for project in projects:
        manifest = await read_manifest(project, nested=nested)
        installed = installed_folders(entry.path for entry in manifest.entries)
        own = [entry for entry in manifest.entries if entry.size <= max_bytes and not entry.path.startswith(installed)]
        named = [(entry.path, text_language(entry.path)) for entry in own]
        wanted = [WantedFile(path, language) for path, language in named if language is not None]
        if sample is not None and sample < len(wanted):
            wanted = random.Random(seed).sample(wanted, sample)  # noqa: S311 - which files are looked at is no secret
        count, different = await _compare(project, wanted, store, max_bytes)
        compared += count
        wrong |= {key: f"{project.id}: {path}" for key, path in different.items() if key not in damaged}
    if repair and (damaged or wrong):
        await anyio.to_thread.run_sync(store.drop, (*damaged, *wrong))
    can = not (store.is_read_only or store.failed)
    return Verified((), rows, damaged, compared, tuple(sorted(wrong.values())), repair and can, can)


async def _compare(project: Project, wanted: list[WantedFile], store: DerivedStore, max_bytes: int) -> tuple[int, dict[DerivedKey, str]]:
    """(files whose row was compared, the rows that say something else with the path that shows it)."""
    compared = 0
    wrong: dict[DerivedKey, str] = {}
    languages = {each.path: each.language for each in wanted}

    async def look(outcome: ReadSyntax | LeftOut) -> None:
        nonlocal compared
        if isinstance(outcome, LeftOut) or outcome.reason:
            return
        key = derived_key(languages[outcome.path], outcome.blob)
        row = (await anyio.to_thread.run_sync(store.load, [key])).get(key)
        if row is not None:
            compared += 1
            if row.content_hash != outcome.content_hash or parts_of(row) != parts_of(Derived("", outcome.payload)):
                wrong[key] = outcome.path

    await ExtractPool(Path(project.root), max_bytes, look).run(wanted, workers=worker_count(0))
    return compared, wrong
