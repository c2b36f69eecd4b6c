"""Why a search found nothing: nothing to find, or no file that it was allowed to read. Asked only after zero matches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from search_router.adapters.local.git_grep import GIT_GREP_ENVIRONMENT
from search_router.adapters.local.grep_engine import Engine
from search_router.adapters.local.grep_run import RunReport, Target, listing_of, read_command
from search_router.adapters.local.ripgrep import ripgrep_utf_32
from search_router.adapters.process import run_command
from search_router.config.experts import GrepConfig

_RULE = re.compile(r'from: Some\("((?:[^"\\]|\\.)*)"\), original: "((?:[^"\\]|\\.)*)"')


async def explain_nothing(engine: Engine, config: GrepConfig, target: Target, report: RunReport) -> tuple[str, ...]:
    """Notes that change how to read an empty answer about one project; none when its files were read and have no match."""
    if report.tracked_ignored:
        return ()
    if engine.name == "git":
        return await _explain_git(engine, config, target)
    root, name = target.project.root, target.project.id
    paths = ["--null", "--files", "--", *target.paths]
    of_any_size = await _count(listing_of(engine, config, target, any_size=True) + paths, root)
    if report.files and report.files == of_any_size:
        return ()
    readable = await _count(listing_of(engine, config, target) + paths, root)
    notes: list[str] = []
    if of_any_size > readable:
        notes.append(f"{of_any_size - readable} file(s) of {name} over {config.max_file_bytes} bytes were not read")
    if of_any_size:
        return tuple(notes)
    of_any_language = await _count(listing_of(engine, config, replace(target, language=None)) + paths, root) if target.language else 0
    where = f"{name}/{target.scope}" if target.scope else name
    if of_any_language:
        return (f"{where} has no file of the asked language",)
    everything = [engine.program, "--no-config", "--no-ignore", "--hidden", "--glob", "!.git", *paths]
    ignored = await _count(everything, root)
    if not ignored:
        return (f"{where} has no files",)
    rule = await _first_rule(listing_of(engine, config, target), target)
    return (f"every file of {where} is ignored ({ignored} of them){rule}",)


async def count_utf_32(engine: Engine, config: GrepConfig, target: Target) -> int:
    """How many UTF-32 files the search passed over as binary. 0 for git grep, which always says that it reads none."""
    if engine.name == "git":
        return 0
    return await _count(ripgrep_utf_32(listing_of(engine, config, target), target.paths), target.project.root)


async def _explain_git(engine: Engine, config: GrepConfig, target: Target) -> tuple[str, ...]:
    argv = [*listing_of(engine, config, target), "--null", "--files-with-matches", "-e", "", "--", *target.paths]
    where = f"{target.project.id}/{target.scope}" if target.scope else target.project.id
    if await _count(argv, target.project.root, env=GIT_GREP_ENVIRONMENT, enough=1):
        return ()
    return (f"git grep sees no text file in {where}: every file is ignored, empty or binary",)


async def _count(argv: Sequence[str], root: Path, *, env: Mapping[str, str] | None = None, enough: int = 2**62) -> int:
    """How many NUL-ended names a command lists; it is stopped when there are enough."""
    count = 0

    def add(chunk: bytes) -> bool:
        nonlocal count
        count += chunk.count(b"\0")
        return count < enough

    await read_command(argv, cwd=root, env=env, on_chunk=add)
    return count


async def _first_rule(listing: Sequence[str], target: Target) -> str:
    """`, one by RULE in FILE` for a rule that ripgrep's own log names, or nothing."""
    finished = await run_command([*listing, "--files", "--debug", "--", *target.paths], cwd=target.project.root, max_bytes=0)
    found = _RULE.search(finished.stderr)
    return f", one by the rule {found[2]!r} in {found[1]}" if found else ""
