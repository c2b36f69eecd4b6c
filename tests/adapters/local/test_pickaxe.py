from __future__ import annotations

import os
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.commit_log import CommitLog
from search_router.adapters.local.commit_stream import FORMAT, HEADER, RecordParser, commit_of
from search_router.adapters.local.history_question import Aspect
from search_router.adapters.local.pickaxe import CACHED_SCANS, Ground, Needle, Scan, ScanCache, posix_pattern, scan_commits, search_changes
from search_router.adapters.process import MARK
from search_router.errors import ExpertError, FailureClass
from tests.adapters.local.git_repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


@pytest.fixture
def log() -> Iterator[CommitLog]:
    opened = CommitLog(None)
    yield opened
    opened.close()


def ground_of(repository: Repository, log: CommitLog, path: str | None = None) -> Ground:
    parser = RecordParser(len(HEADER))
    out = subprocess.run(
        ["git", "log", "-z", "--name-status", "-M", "--diff-merges=off", FORMAT], cwd=repository.root, capture_output=True, check=True
    ).stdout
    rows = log.add([commit_of(record) for record in parser.feed(out) + parser.close()])
    return Ground(repository.root, log, array("I", rows), path)


def names(log: CommitLog, scan: Scan) -> set[str]:
    return {commit.subject for commit in log.commits(scan.hits).values()}


async def look(ground: Ground, term: str, aspect: Aspect = Aspect.CHANGED, *, is_regex: bool = False) -> Scan:
    return await search_changes(ground, Needle(term, is_regex), aspect, anyio.current_time() + 30)


@pytest.mark.anyio
async def test_changes_are_found_under_former_names_and_moves_are_not_changes(repository: Repository, log: CommitLog) -> None:
    body = "".join(f"line {n}\n" for n in range(30))
    repository.commit("Start", {"a.py": body})
    repository.commit("Introduce", {"a.py": body + "def find_me(): pass\n"})
    repository.commit("Move", {"a.py": None, "lib/b.py": body + "def find_me(): pass\n"})
    repository.commit("Use", {"use.py": "find_me()\n"})
    repository.commit("Unrelated", {"c.py": "nothing\n"})
    scan = await look(ground_of(repository, log), "find_me")
    assert names(log, scan) == {"Introduce", "Use"}
    assert scan.complete
    assert (scan.near, scan.far) == (4, 5)


@pytest.mark.anyio
async def test_an_introduction_in_a_file_that_is_gone_is_found_far_and_newer_commits_are_spared(
    repository: Repository, log: CommitLog
) -> None:
    repository.commit("Introduce", {"gone.py": "find_me = 1\n"})
    repository.commit("Remove", {"gone.py": None})
    repository.commit("Again", {"here.py": "find_me = 2\n"})
    repository.commit("After", {"other.py": "1\n"})
    scan = await look(ground_of(repository, log), "find_me", Aspect.INTRODUCED)
    assert names(log, scan) == {"Introduce", "Remove", "Again"}
    assert (scan.near, scan.far) == (1, 2)


@pytest.mark.anyio
async def test_an_introduction_is_followed_into_a_file_that_had_the_term_before_and_is_gone(repository: Repository, log: CommitLog) -> None:
    repository.commit("Start", {"a.py": "1\n"})
    repository.commit("Introduce", {"old.py": "find_me = 1\n" + "old\n" * 30})
    repository.commit("Copy", {"new.py": "import find_me\n"})
    repository.commit("Drop", {"old.py": None})
    ground = ground_of(repository, log)
    scan = await look(ground, "find_me", Aspect.INTRODUCED)
    assert scan.settled is not None and log.commits([scan.settled])[scan.settled].subject == "Introduce"
    assert {commit.subject for commit in log.commits(scan.near_hits).values()} == {"Introduce", "Copy"}
    assert scan.complete and scan.far == 1


@pytest.mark.anyio
async def test_a_settled_introduction_that_is_asked_again_goes_on_with_an_earlier_life(repository: Repository, log: CommitLog) -> None:
    repository.commit("First life", {"gone.py": "find_me = 1\n"})
    repository.commit("End", {"gone.py": None})
    repository.commit("Second life", {"here.py": "find_me = 2\n"})
    ground = ground_of(repository, log)
    (second,) = log.rows_of([repository.git("rev-parse", "HEAD")]).values()
    settled = Scan(Needle("find_me"), {second: ("here.py",)}, frozenset({second}), near=1, near_done=True, settled=second)
    scan = await search_changes(ground, Needle("find_me"), Aspect.INTRODUCED, anyio.current_time() + 30, settled)
    assert names(log, scan) == {"First life", "End", "Second life"} and scan.complete


@pytest.mark.anyio
async def test_a_scan_whose_time_is_up_says_how_far_it_came_and_goes_on_from_there(repository: Repository, log: CommitLog) -> None:
    for number in range(4):
        repository.commit(f"Number {number}", {f"{number}.py": f"find_me {number}\n"})
        repository.commit(f"Gone {number}", {f"{number}.py": None})
    ground = ground_of(repository, log)
    late = await search_changes(ground, Needle("find_me"), Aspect.REMOVED, anyio.current_time() - 1)
    assert (late.near_done, late.far, late.complete, late.reached) == (True, 0, False, None)
    half = Scan(Needle("find_me"), near_done=True, far=6, reached=ground.rows[5])
    rest = await search_changes(ground, Needle("find_me"), Aspect.REMOVED, anyio.current_time() + 30, half)
    assert names(log, rest) == {"Number 0", "Gone 0"}
    assert rest.complete
    assert rest.far == 8
    assert await search_changes(ground, Needle("find_me"), Aspect.REMOVED, anyio.current_time() - 1, rest) == rest


@pytest.mark.anyio
async def test_time_that_is_up_before_the_near_part_ends_leaves_it_undone(repository: Repository, log: CommitLog) -> None:
    repository.commit("Introduce", {"a.py": "find_me\n"})
    scan = await search_changes(ground_of(repository, log), Needle("find_me"), Aspect.CHANGED, anyio.current_time() - 1)
    assert (scan.near_done, scan.complete, scan.hits) == (False, False, {})


@pytest.mark.anyio
@pytest.mark.parametrize("term", ["-rf", "--output=x", "$(id)", "a b; rm *", "*.py", ":(glob)**", "'\"`", "naïve 日本", "-", "\\d+"])
async def test_a_hostile_term_is_only_text(repository: Repository, log: CommitLog, term: str) -> None:
    repository.commit("Start", {"a.txt": "start\n"})
    repository.commit("Introduce", {"a.txt": f"start\n[{term}]\n"})
    scan = await look(ground_of(repository, log), term)
    assert "Introduce" in names(log, scan)
    assert sorted(os.listdir(repository.root)) == [".git", "a.txt"]


@pytest.mark.anyio
async def test_a_pattern_matches_changed_lines_with_digits_spelt_out(repository: Repository, log: CommitLog) -> None:
    repository.commit("Start", {"a.py": "limit = none\ndddd\n"})
    repository.commit("Introduce", {"a.py": "limit = 42\ndddd\n"})
    scan = await look(ground_of(repository, log), r"limit = \d+", is_regex=True)
    assert names(log, scan) == {"Introduce"}
    assert posix_pattern(r"\\d\D\.") == r"\\d[^0-9]\."


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["(open", "[a", "*("])
async def test_a_bad_pattern_is_rejected(repository: Repository, log: CommitLog, pattern: str) -> None:
    repository.commit("Start", {"a.py": "x\n"})
    with pytest.raises(ExpertError, match="cannot read the pattern") as caught:
        await look(ground_of(repository, log), pattern, is_regex=True)
    assert caught.value.failure is FailureClass.REJECTED


@pytest.mark.anyio
async def test_a_qualified_name_that_nobody_writes_out_gives_way_to_its_last_part(repository: Repository, log: CommitLog) -> None:
    repository.commit("Introduce", {"a.go": "func (c *Context) GetHeader() {}\n"})
    scan = await look(ground_of(repository, log), "Context.GetHeader")
    assert scan.needle == Needle("GetHeader")
    assert names(log, scan) == {"Introduce"}


@pytest.mark.anyio
async def test_a_path_limits_what_is_looked_at(repository: Repository, log: CommitLog) -> None:
    repository.commit("Inside", {"in/a.py": "find_me\n"})
    repository.commit("Outside", {"out/a.py": "find_me\n"})
    assert names(log, await look(ground_of(repository, log, "in"), "find_me")) == {"Inside"}


@pytest.mark.anyio
async def test_a_scan_that_git_cannot_finish_keeps_what_it_found_and_says_why(repository: Repository, log: CommitLog) -> None:
    repository.commit("Lost", {"lost.py": "find_me lost\n"})
    blob = repository.git("rev-parse", "HEAD:lost.py")
    repository.commit("Clean", {"lost.py": None})
    repository.commit("Kept", {"kept.py": "find_me kept\n"})
    ground = ground_of(repository, log)
    (repository.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    scan = await look(ground, "find_me")
    assert names(log, scan) == {"Kept"}
    assert not scan.complete
    assert scan.failure is not None and "git failed" in scan.failure


@pytest.mark.anyio
async def test_a_cancelled_scan_leaves_no_process(repository: Repository, log: CommitLog) -> None:
    repository.commit("Start", {"a.py": "x\n"})
    repository.grow(1500, lines=400)
    ground = ground_of(repository, log)
    wanted = log.plain_shas(ground.rows)
    started = anyio.Event()

    async def scan() -> None:
        started.set()
        await scan_commits(ground.root, Needle("needle"), wanted, ["."], anyio.current_time() + 60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scan)
        await started.wait()
        with anyio.fail_after(10):
            while not children("diff-tree"):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert children("diff-tree") == []


def children(word: str) -> list[int]:
    """Our own running children whose command line has the word."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if int(status[1]) == os.getpid() and word.encode() in command and MARK.encode() in environment:
                found.append(int(entry.name))
    return found


def test_the_cache_forgets_the_oldest_scan() -> None:
    cache = ScanCache()
    for number in range(CACHED_SCANS + 1):
        cache.put(Scan(Needle(str(number))), "head", str(number))
        cache.get("head", "0")
    assert cache.get("head", "0") is not None
    assert cache.get("head", "1") is None
