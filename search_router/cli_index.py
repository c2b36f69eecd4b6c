"""`search-router index`: where the index stands, refresh it, collect what is unused, verify it. Like `cli`, it only translates.

Exit codes. `status`: 0 every file that can be indexed is · 1 some wait, a row is damaged, or a project or the store cannot be read.
`refresh`: 0 complete · 1 files, a project or the store were left behind. `gc`: 0 done · 1 the store could not do it. `verify`: 0 sound, or
repaired · 1 something is wrong · 3 a project could not be read, so nothing is known. All: 2 arguments, 5 configuration or workspace.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from search_router.cli_frame import UNANSWERED_EXIT, echo_json, json_option, run, workspace_options
from search_router.errors import ExpertError

if TYPE_CHECKING:
    from search_router.adapters.local.index_care import Collected
    from search_router.adapters.local.index_survey import ProjectIndex
    from search_router.adapters.local.index_verify import Verified
    from search_router.adapters.local.left_out import LeftOut
    from search_router.router.index_life import IndexStatus, Refreshed

SAMPLE = 200
_NAMED = 3
_LISTED = 100
_TOLD_LANGUAGES = 6


@click.group()
def index() -> None:
    """The index that the experts share. It is a cache; nothing in it is needed to be right."""


@index.command()
@workspace_options
@json_option
def status(roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Files indexed, waiting, and left out with the reason; the store. Nothing is indexed. Exit code 1 when something waits."""

    async def work() -> IndexStatus:
        from search_router.router.index_life import open_index

        async with open_index(roots=roots, flags=flags) as keeper:
            return await keeper.status()

    found = run(work)
    if as_json:
        echo_json(_status_json(found))
    else:
        _print_status(found)
    sys.exit(0 if found.current else 1)


def _status_json(found: IndexStatus) -> dict[str, Any]:
    from search_router.adapters.local.grammars import extractor_version

    languages = sorted({language for each in found.projects for language in each.languages})
    store = found.store
    return {
        "current": found.current,
        "projects": [
            {
                "id": each.project.id,
                "root": str(each.project.root),
                "indexed": each.indexed,
                "waiting": len(each.waiting),
                "damaged": list(each.damaged[:_LISTED]),
                "left_out": _left_out_json(each.left_out),
                "languages": dict(each.languages),
                "damped": dict(each.damped),
            }
            for each in found.projects
        ],
        "failures": {name: str(error) for name, error in found.failures.items()},
        "store": {
            "path": str(store.path),
            "bytes": store.bytes,
            "state": store.state,
            "rows": store.rows,
            "outdated_rows": store.outdated,
            "unused_rows": store.unused,
            "work_trees": [{"root": str(root), "files": files} for root, files in store.roots],
        },
        "versions": {language: extractor_version(language) for language in languages},
        "notes": list(found.notes),
    }


def _left_out_json(left_out: Sequence[LeftOut]) -> list[dict[str, Any]]:
    return [{"reason": reason, "count": len(paths), "paths": paths[:_LISTED]} for reason, paths in _by_reason(left_out)]


def _by_reason(left_out: Iterable[LeftOut]) -> list[tuple[str, list[str]]]:
    reasons: dict[str, list[str]] = {}
    for left in left_out:
        reasons.setdefault(left.reason, []).append(left.path)
    return sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))


def _print_status(found: IndexStatus) -> None:
    from search_router import terminal

    console = terminal.make_console()
    rows = ((p.project.id, *(str(n) for n in _counts(p)), _most(p.languages)) for p in found.projects)
    terminal.print_rows(console, ("project", "indexed", "waiting", "damaged", "left out", "languages"), rows)
    for each in found.projects:
        for reason, paths in _by_reason(each.left_out):
            _say(f"{each.project.id}: {len(paths)} left out, {reason}: {_some(paths)}")
        if each.damped:
            _say(f"{each.project.id}: ranked lower: {_most(each.damped)}")
    _print_failures(found.failures, found.notes)
    store = found.store
    if store.state == "unusable":
        _say(f"store: {store.path} cannot be used, as the note says: so nothing counts as indexed, and what is in it is not known")
        return
    counts = f"{store.rows} rows, {store.outdated} outdated, {store.unused} of no known work tree"
    _say(f"store: {store.path} · {store.state} · {_size(store.bytes)} · {counts}")


def _counts(each: ProjectIndex) -> tuple[int, int, int, int]:
    return each.indexed, len(each.waiting), len(each.damaged), len(each.left_out)


def _most(counts: Mapping[str, int]) -> str:
    most = Counter(counts).most_common()
    said = ", ".join(f"{name} {count}" for name, count in most[:_TOLD_LANGUAGES])
    return f"{said}, {len(most) - _TOLD_LANGUAGES} more" if len(most) > _TOLD_LANGUAGES else said


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_NAMED]) + (" …" if len(paths) > _NAMED else "")


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def _say(line: str) -> None:
    from search_router.wire_text import visible_line

    click.echo(visible_line(line))


def _print_failures(failures: Mapping[str, ExpertError], notes: Sequence[str]) -> None:
    for name, error in failures.items():
        _say(f"{name}: {error}")
    for note in notes:
        _say(f"note: {note}")


@index.command()
@workspace_options
@json_option
def refresh(roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Index what is new or changed, with progress on a terminal. Exit code 1 when files were left behind."""

    async def work() -> Refreshed:
        from search_router import terminal
        from search_router.router.index_life import open_index

        async with open_index(roots=roots, flags=flags) as keeper, terminal.waiting_display("listing files") as progress:
            return await keeper.refresh(progress)

    found = run(work)
    if as_json:
        echo_json(_refreshed_json(found))
    else:
        for name, report in found.reports.items():
            _say(f"{name}: {report.files} files indexed, {report.parsed} parsed, {report.reused} reused, {report.ms / 1000:.1f} s")
            for reason, paths in _by_reason(report.left_out):
                _say(f"{name}: {len(paths)} left out, {reason}: {_some(paths)}")
            for reason, paths in _by_reason(report.missing):
                _say(f"{name}: {len(paths)} missing, {reason}: {_some(paths)}")
        _print_failures(found.failures, found.notes)
    sys.exit(0 if found.complete else 1)


def _refreshed_json(found: Refreshed) -> dict[str, Any]:
    return {
        "complete": found.complete,
        "seconds": round(found.seconds, 3),
        "projects": [
            {
                "id": name,
                "indexed": report.files,
                "parsed": report.parsed,
                "reused": report.reused,
                "left_out": _left_out_json(report.left_out),
                "missing": _left_out_json(report.missing),
                "ms": round(report.ms, 1),
            }
            for name, report in found.reports.items()
        ],
        "failures": {name: str(error) for name, error in found.failures.items()},
        "notes": list(found.notes),
    }


@index.command()
@click.option("--unused-days", type=click.IntRange(0, 3650), help="Instead of index.unused_days; 0 deletes at once.")
@workspace_options
@json_option
def gc(unused_days: int | None, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Delete what no known work tree has any more and nobody used for index.unused_days, and shrink the file."""

    async def work() -> tuple[Collected | None, tuple[str, ...]]:
        from search_router.router.index_life import open_index

        async with open_index(roots=roots, flags=flags) as keeper:
            return await keeper.collect(unused_days)

    done, notes = run(work)
    if as_json:
        echo_json({"done": done is not None, **(dataclasses.asdict(done) if done is not None else {}), "notes": list(notes)})
    else:
        if done is not None:
            _say(f"{done.deleted} rows deleted, {done.kept} kept; {_size(done.bytes_before)} before, {_size(done.bytes_after)} now")
        _print_failures({}, notes)
    sys.exit(0 if done is not None else 1)


@index.command()
@click.option("--all", "whole", is_flag=True, help=f"Every file, not {SAMPLE} of each project.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which files are taken as the sample.")
@click.option("--repair", is_flag=True, help="Drop what is wrong, so that it is made anew.")
@workspace_options
@json_option
def verify(whole: bool, seed: int, repair: bool, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Check SQLite's file and every row's checksum, and derive a sample of files again. Exit code 1 when something is wrong."""

    async def work() -> tuple[Verified, tuple[str, ...]]:
        from search_router.router.index_life import open_index

        async with open_index(roots=roots, flags=flags) as keeper:
            try:
                return await keeper.verify(sample=None if whole else SAMPLE, seed=seed, repair=repair)
            except ExpertError as error:
                click.echo(f"search-router: {error.failure.value}: {error}", err=True)
                sys.exit(UNANSWERED_EXIT)

    found, notes = run(work)
    wrong = len(found.damaged) + len(found.different)
    if as_json:
        echo_json(
            {
                "sound": found.sound,
                "repaired": found.repaired and bool(wrong or found.problems),
                "problems": list(found.problems),
                "rows": found.rows,
                "damaged": [f"{key.kind} {key.blob}" for key in found.damaged],
                "compared": found.compared,
                "different": list(found.different),
                "notes": list(notes),
            }
        )
    else:
        _say(f"{found.rows} rows, {len(found.damaged)} damaged; {found.compared} files compared, {len(found.different)} different")
        for line in (*found.problems, *found.different):
            _say(line)
        if wrong or found.problems:
            _say(_outcome(found))
        _print_failures({}, notes)
    sys.exit(0 if found.sound else 1)


def _outcome(found: Verified) -> str:
    if found.repaired:
        return "dropped; it is made anew when it is needed"
    return "run `search-router index verify --repair`" if found.repairable else "nothing can be repaired before the store can be written"
