from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.history import HistoryExpert
from search_router.adapters.process import MARK
from search_router.config.experts import HistoryConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, ExpertStatus, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.adapters.local.git_repository import Repository

Make = Callable[..., HistoryExpert]


def config_of(max_commits: int = 1000, pickaxe_ms: int = 20_000) -> HistoryConfig:
    return HistoryConfig(
        kind="history",
        precision_class=PrecisionClass.HISTORY,
        engine="git",
        intents=(Intent.HISTORY, Intent.CONCEPTUAL),
        cap_ms=60_000,
        max_commits=max_commits,
        pickaxe_ms=pickaxe_ms,
    )


@pytest.fixture
async def make(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Make]:
    """Makes experts on one cache directory, and closes them."""
    made: list[HistoryExpert] = []

    def make_one(cache: Path | None = None, **settings: int) -> HistoryExpert:
        made.append(HistoryExpert("history", config_of(**settings), cache or tmp_path / "cache"))
        return made[-1]

    yield make_one
    for expert in made:
        await expert.aclose()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


def call_for(
    question: str,
    *roots: Path,
    intent: Intent = Intent.HISTORY,
    form: QueryForm = QueryForm.TEXT,
    terms: tuple[str, ...] = (),
    path: str | None = None,
    limit: int = 10,
    budget_ms: int = 30_000,
) -> ExpertCall:
    projects = tuple(Project(root.name, root, "git") for root in roots)
    return ExpertCall("history", SubQuery(form, terms, question), projects, path, None, limit, budget_ms, 1000, "test", intent)


def subjects(result: ExpertResult) -> list[str]:
    return [hit.commit.subject for hit in result.hits if hit.commit is not None]


def git_children() -> list[bytes]:
    """Command lines of git processes that we started and that still run."""
    found: list[bytes] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if int(parent) == os.getpid() and command.startswith(b"git\0") and MARK.encode() in environment:
                found.append(command)
    return found


# ------------------------------------------------------------------ what is found


@pytest.mark.anyio
async def test_the_commit_that_introduced_a_name_comes_first_with_author_date_and_paths(make: Make, repository: Repository) -> None:
    repository.commit("Start", {"a.py": "x = 1\n"})
    sha = repository.commit("Read slowly", {"a.py": "x = 1\ndef read_slowly(): ...\n", "b.py": "1\n"}, author="Grace")
    repository.commit("Mention read_slowly, read_slowly, read_slowly", {"c.py": "nothing\n"})
    repository.commit("Use it", {"d.py": "read_slowly()\n"})
    result = await make().search(call_for("When did read_slowly land?", repository.root))
    first = result.hits[0]
    assert first.commit is not None
    assert (first.commit.commit, first.commit.author, first.commit.date) == (sha, "Grace", "2020-09-15T12:26:40+00:00")
    assert first.commit.paths == ("a.py", "b.py")
    assert (first.kind, first.path, first.is_exact, first.flags) == ("commit", None, True, ())
    assert result.partial is None
    assert result.notes == ()
    assert result.index_commit == repository.git("rev-parse", "HEAD")
    assert set(subjects(result)) == {"Read slowly", "Mention read_slowly, read_slowly, read_slowly", "Use it"}
    assert [hit.is_exact for hit in result.hits if hit.commit and hit.commit.subject.startswith("Mention")] == [False]


@pytest.mark.anyio
async def test_the_commit_that_removed_a_name_comes_first_when_that_is_asked(make: Make, repository: Repository) -> None:
    repository.commit("Introduce", {"a.py": "read_slowly\n"})
    repository.commit("Drop the old way", {"a.py": "\n"})
    result = await make().search(call_for("who removed `read_slowly`", repository.root))
    assert subjects(result) == ["Drop the old way", "Introduce"]


@pytest.mark.anyio
async def test_a_question_in_plain_words_is_answered_from_messages(make: Make, repository: Repository) -> None:
    repository.commit("Pool connections of each host", {"pool.py": "1\n"})
    repository.commit("Write docs", {"docs.md": "1\n"})
    result = await make().search(call_for("why was connection pooling introduced", repository.root))
    assert subjects(result) == ["Pool connections of each host"]
    assert not result.hits[0].is_exact


@pytest.mark.anyio
async def test_other_intents_get_messages_only(make: Make, repository: Repository) -> None:
    repository.commit("Quiet", {"a.py": "read_slowly\n"})
    repository.commit("About read_slowly", {"b.py": "1\n"})
    result = await make().search(
        call_for("read_slowly", repository.root, intent=Intent.CONCEPTUAL, form=QueryForm.SYMBOL, terms=("read_slowly",))
    )
    assert subjects(result) == ["About read_slowly"]


@pytest.mark.anyio
async def test_the_history_of_a_file_includes_its_former_names(make: Make, repository: Repository) -> None:
    body = "".join(f"line {n}\n" for n in range(40))
    repository.commit("First", {"old.py": body})
    repository.commit("Second", {"old.py": None, "lib/new.py": body})
    repository.commit("Third", {"lib/new.py": body + "more\n"})
    repository.commit("Elsewhere", {"x.py": "1\n"})
    expert = make()
    assert subjects(await expert.search(call_for("who changed lib/new.py last", repository.root)))[:3] == ["Third", "Second", "First"]
    assert subjects(await expert.search(call_for("when was lib/new.py added", repository.root)))[0] == "First"


@pytest.mark.anyio
async def test_a_merge_is_found_by_its_message_only(make: Make, repository: Repository) -> None:
    repository.commit("Start", {"a.py": "1\n"})
    repository.git("switch", "-q", "-c", "side")
    repository.commit("Side work", {"b.py": "read_slowly\n"})
    repository.git("switch", "-q", "main")
    repository.commit("Main work", {"c.py": "1\n"})
    repository.git("merge", "-q", "--no-ff", "-m", "Merge the pelican branch", "side")
    expert = make()
    assert subjects(await expert.search(call_for("when did read_slowly land", repository.root))) == ["Side work"]
    assert subjects(await expert.search(call_for("when was pelican merged", repository.root)))[0] == "Merge the pelican branch"


@pytest.mark.anyio
async def test_a_pattern_is_looked_for_in_changed_lines_and_a_bad_one_is_rejected(make: Make, repository: Repository) -> None:
    repository.commit("Start", {"a.py": "limit = none\n"})
    repository.commit("Set a number", {"a.py": "limit = 42\n"})
    expert = make()
    good = call_for("when was the number set", repository.root, form=QueryForm.REGEX, terms=(r"limit = \d+",))
    assert subjects(await expert.search(good))[0] == "Set a number"
    with pytest.raises(ExpertError) as caught:
        await expert.search(call_for("when", repository.root, form=QueryForm.REGEX, terms=("(open",)))
    assert caught.value.failure is FailureClass.REJECTED


@pytest.mark.anyio
async def test_a_path_in_scope_limits_every_search(make: Make, repository: Repository) -> None:
    repository.commit("Inside pool", {"in/a.py": "read_slowly\n"})
    repository.commit("Outside pool", {"out/a.py": "read_slowly\n"})
    expert = make()
    for question in ("when did read_slowly land", "why the pool", "who changed a.py"):
        assert subjects(await expert.search(call_for(question, repository.root, path="in"))) == ["Inside pool"]


@pytest.mark.anyio
async def test_a_folder_of_a_repository_has_its_own_history_with_its_own_paths(make: Make, repository: Repository) -> None:
    repository.commit("Inside pool", {"in/a.py": "read_slowly\n"})
    repository.commit("Outside pool", {"out/a.py": "read_slowly\n"})
    repository.commit("Both pool", {"in/a.py": "read_slowly 2\n", "out/a.py": "read_slowly 2\n"})
    result = await make().search(call_for("when did read_slowly land in the pool", repository.root / "in"))
    assert set(subjects(result)) == {"Inside pool", "Both pool"}
    assert {hit.commit.paths for hit in result.hits if hit.commit} == {("a.py",)}


@pytest.mark.anyio
async def test_any_bytes_in_messages_authors_and_paths_come_through(make: Make, repository: Repository) -> None:
    odd = [
        b"Record \x1e unit \x1f in pelican",
        "Naïve 日本 🐛 pelican\u2028line".encode(),
        b"pelican %x00 M\tpath\nR100 a b\n\n" + b"a" * 40,
    ]
    for number, message in enumerate(odd):
        repository.commit(message, {f"odd \t{number} '\"": str(number)}, author="Ægir 🐛")
    # git's own commit command mends a message that is not UTF-8; other tools do not
    raw = repository.git("cat-file", "commit", "HEAD").encode().split(b"\n\n")[0].replace("Ægir".encode(), b"\xc6gir")
    parent = repository.git("rev-parse", "HEAD").encode()
    raw = b"\n".join([*raw.split(b"\n")[:1], b"parent " + parent, *raw.split(b"\n")[2:]]) + b"\n\n\xff\xfe is not UTF-8, pelican\n"
    repository.git("reset", "-q", "--hard", repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw))
    result = await make().search(call_for("why pelican", repository.root))
    assert set(subjects(result)) == {
        "Record \x1e unit \x1f in pelican",
        "\ufffd\ufffd is not UTF-8, pelican",
        "Naïve 日本 🐛 pelican\u2028line",
        "pelican %x00 M\tpath R100 a b",
    }
    assert {hit.commit.author for hit in result.hits if hit.commit} == {"Ægir 🐛", "\ufffdgir 🐛"}
    assert {path for hit in result.hits if hit.commit for path in hit.commit.paths} == {f"odd \t{n} '\"" for n in range(3)}


@pytest.mark.anyio
@pytest.mark.parametrize("term", ["-rf", "--output=x", "$(id)", "HEAD", "--all", "^main"])
async def test_hostile_terms_are_only_text(make: Make, repository: Repository, term: str) -> None:
    repository.commit("Introduce", {"a.txt": f"one {term} two\n"})
    result = await make().search(call_for(f"when did {term} land", repository.root, form=QueryForm.LITERAL, terms=(term,)))
    assert subjects(result) == ["Introduce"]
    assert result.hits[0].is_exact
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "a.txt"]


@pytest.mark.anyio
async def test_a_repository_cannot_make_us_run_its_programs(make: Make, repository: Repository, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    trap.chmod(0o755)
    repository.commit("Introduce", {"a.txt": "read_slowly\n", ".gitattributes": "* diff=evil\n"})
    for key in ("diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor", "core.pager", "pager.log"):
        repository.git("config", key, str(trap))
    result = await make().search(call_for("when did read_slowly land", repository.root))
    assert subjects(result) == ["Introduce"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.anyio
async def test_settings_of_the_owner_do_not_change_what_is_read(make: Make, repository: Repository) -> None:
    repository.commit("Root", {"a.txt": "read_slowly\n"})
    for key, value in {"log.showRoot": "false", "log.follow": "true", "diff.renames": "copies", "diff.relative": "true"}.items():
        repository.git("config", key, value)
    for key, value in {"grep.fullName": "true", "color.ui": "always", "log.showSignature": "true", "diff.noprefix": "true"}.items():
        repository.git("config", key, value)
    result = await make().search(call_for("when did read_slowly land", repository.root))
    assert [hit.commit.paths for hit in result.hits if hit.commit] == [("a.txt",)]


# ------------------------------------------------------------------ keeping in step with HEAD


@pytest.mark.anyio
async def test_new_commits_are_found_at_the_next_call(make: Make, repository: Repository) -> None:
    repository.commit("First pelican", {"a": "1"})
    expert = make()
    await expert.search(call_for("why pelican", repository.root))
    repository.commit("Second pelican", {"a": "2"})
    assert subjects(await expert.search(call_for("who changed a pelican", repository.root))) == ["Second pelican", "First pelican"]


@pytest.mark.anyio
async def test_rewritten_commits_are_no_longer_found_and_those_of_another_branch_neither(make: Make, repository: Repository) -> None:
    repository.commit("First pelican", {"a": "1"})
    repository.commit("Second pelican", {"a": "2"})
    expert = make()
    assert len((await expert.search(call_for("why pelican", repository.root))).hits) == 2
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.commit("Rewritten pelican", {"a": "3"})
    expected = {"First pelican", "Rewritten pelican"}
    assert set(subjects(await expert.search(call_for("why pelican", repository.root)))) == expected
    assert set(subjects(await make().search(call_for("why pelican", repository.root)))) == expected
    repository.git("switch", "-q", "--orphan", "alone")
    repository.commit("Lonely pelican", {"b": "1"})
    assert subjects(await expert.search(call_for("why pelican", repository.root))) == ["Lonely pelican"]


@pytest.mark.anyio
async def test_a_new_process_starts_from_what_was_stored(make: Make, repository: Repository) -> None:
    repository.commit("Pelican", {"a": "1"})
    first = make()
    await first.search(call_for("why pelican", repository.root))
    await first.aclose()
    shutil.rmtree(repository.root / ".git/objects")  # nothing can be read from git any more
    (repository.root / ".git/objects").mkdir()
    assert subjects(await make().search(call_for("why pelican", repository.root))) == ["Pelican"]


@pytest.mark.anyio
async def test_two_work_trees_share_rows_and_answer_for_their_own_head(make: Make, repository: Repository, tmp_path: Path) -> None:
    repository.commit("Common pelican", {"a": "1"})
    repository.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    repository.commit("Main pelican", {"a": "2"})
    side = Repository.__new__(Repository)
    side.root, side.day = tmp_path / "side", 10
    side.commit("Side pelican", {"a": "3"})
    expert = make()
    assert set(subjects(await expert.search(call_for("why pelican", repository.root)))) == {"Common pelican", "Main pelican"}
    assert set(subjects(await expert.search(call_for("why pelican", side.root)))) == {"Common pelican", "Side pelican"}
    both = await expert.search(call_for("why pelican", repository.root, side.root))
    assert [hit.project for hit in both.hits].count("side") == 2
    assert both.index_commit is None
    assert len(list((tmp_path / "cache").glob("*.sqlite"))) == 1


@pytest.mark.anyio
async def test_only_the_newest_commits_are_read_when_there_are_too_many(make: Make, repository: Repository) -> None:
    for number in range(5):
        repository.commit(f"Pelican {number}", {"a": str(number)})
    expert = make(max_commits=2)
    result = await expert.search(call_for("why pelican", repository.root))
    assert set(subjects(result)) == {"Pelican 3", "Pelican 4"}
    assert result.notes == ("only the newest 2 commits are searched (max_commits)",)
    repository.commit("Pelican 5", {"a": "5"})
    assert set(subjects(await expert.search(call_for("why pelican", repository.root)))) == {"Pelican 4", "Pelican 5"}


# ------------------------------------------------------------------ when not everything is there


@pytest.mark.anyio
async def test_a_call_with_no_time_says_so_and_reading_goes_on_behind_it(make: Make, repository: Repository) -> None:
    repository.commit("Start pelican", {"a": "1"})
    repository.grow(3000)
    expert = make(max_commits=100_000)
    early = await expert.search(call_for("why pelican", repository.root, budget_ms=1))
    assert early.partial is not None and early.partial.startswith("read 0") and early.partial.endswith("ask again")
    late = await expert.search(call_for("why pelican", repository.root))
    assert (subjects(late), late.partial) == (["Start pelican"], None)


@pytest.mark.anyio
async def test_reading_that_was_cut_off_goes_on_in_the_next_process(make: Make, repository: Repository) -> None:
    repository.commit("Start pelican", {"a": "1"})
    repository.grow(3000)
    first = make(max_commits=100_000)
    with anyio.fail_after(20):
        while (result := await first.search(call_for("routine", repository.root, budget_ms=60))).partial == "read 0 commits; ask again":
            await anyio.lowlevel.checkpoint()
    assert result.partial is None or result.partial.startswith("read ")
    await first.aclose()
    assert subjects(await make(max_commits=100_000).search(call_for("why pelican", repository.root))) == ["Start pelican"]


@pytest.mark.anyio
async def test_time_that_is_up_in_the_changes_is_said_and_asking_again_goes_on(make: Make, repository: Repository) -> None:
    repository.commit("Introduce", {"gone.py": "read_slowly\n"})
    repository.commit("Remove", {"gone.py": None})
    repository.grow(1500, lines=300)
    expert = make(max_commits=100_000, pickaxe_ms=1)
    call = call_for("when did read_slowly land", repository.root)
    early = await expert.search(call)
    assert early.partial is not None and early.partial.startswith("pickaxe for 'read_slowly'") and early.partial.endswith("ask again")
    with anyio.fail_after(60):
        patient = make(max_commits=100_000, pickaxe_ms=200)
        while (result := await patient.search(call)).partial is not None:
            assert "read back to 20" in result.partial or "looked only at" in result.partial
    assert subjects(result)[0] == "Introduce"


@pytest.mark.anyio
async def test_a_shallow_clone_is_said_aloud_and_its_edge_introduces_nothing(make: Make, repository: Repository, tmp_path: Path) -> None:
    repository.commit("Introduce", {"a.py": "read_slowly\n"})
    repository.commit("Between", {"b.py": "1\n"})
    repository.commit("Edge", {"c.py": "1\n"})
    repository.commit("Newest", {"d.py": "read_slowly\n"})
    repository.git("clone", "-q", "--depth", "2", f"file://{repository.root}", str(tmp_path / "shallow"))
    expert = make()
    result = await expert.search(call_for("when did read_slowly land", tmp_path / "shallow"))
    assert result.notes == ("shallow clone: history before 2020-09-16 is not here",)
    flags = {hit.commit.subject: (hit.flags, hit.is_exact) for hit in result.hits if hit.commit}
    assert flags == {"Edge": (("shallow-boundary",), False), "Newest": ((), True)}
    repository.git("-C", str(tmp_path / "shallow"), "fetch", "-q", "--unshallow")
    deep = await expert.search(call_for("when did read_slowly land", tmp_path / "shallow"))
    assert (subjects(deep)[0], deep.notes) == ("Introduce", ())


@pytest.mark.anyio
async def test_a_partial_clone_is_searched_by_message_and_says_why_changes_are_not(
    make: Make, repository: Repository, tmp_path: Path
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    body = "".join(f"line {n}\n" for n in range(40))
    repository.commit("Introduce read_slowly", {"a.py": body + "read_slowly\n"})
    repository.commit("Move it", {"a.py": None, "b.py": body + "read_slowly now\n"})
    repository.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repository.root}", str(tmp_path / "thin"))
    shutil.move(repository.root, tmp_path / "unreachable")
    result = await make().search(call_for("when did read_slowly land", tmp_path / "thin"))
    assert subjects(result) == ["Introduce read_slowly"]
    assert result.notes == ("partial clone: old file contents are not here, so messages were searched and changes were not",)


@pytest.mark.anyio
@pytest.mark.parametrize("spoil", ["garbage", "cut", "directory", "no-directory"])
async def test_a_cache_that_cannot_be_used_costs_a_note_and_nothing_else(
    make: Make, repository: Repository, tmp_path: Path, spoil: str
) -> None:
    repository.commit("Pelican", {"a": "1"})
    cache = tmp_path / "cache"
    first = make(cache)
    await first.search(call_for("why pelican", repository.root))
    await first.aclose()
    (stored,) = cache.glob("*.sqlite")
    match spoil:
        case "garbage":
            stored.write_bytes(b"garbage" * 2000)
        case "cut":
            stored.write_bytes(stored.read_bytes()[:5000])
        case "directory":
            stored.unlink()
            stored.mkdir()
        case _:
            shutil.rmtree(cache)
            cache.write_text("a file")
    expert = make(cache)
    for _ in range(2):
        result = await expert.search(call_for("why pelican", repository.root))
        assert subjects(result) == ["Pelican"]
        assert len(result.notes) == 1
        if spoil in ("garbage", "cut"):
            assert result.notes[0].startswith("The history cache was damaged")
        else:
            assert result.notes[0].startswith(f"The history cache in {cache} cannot be used")
    await expert.aclose()
    if spoil in ("garbage", "cut"):
        assert stored.with_name(f"{stored.name}.damaged").is_file()
        again = make(cache)
        assert (await again.search(call_for("why pelican", repository.root))).notes == ()


@pytest.mark.anyio
@pytest.mark.parametrize("table", ["commits", "messages", "summaries", "summarised", "readings", "changes", "paths"])
async def test_a_table_that_is_damaged_while_it_is_used_is_moved_aside_and_read_anew(
    make: Make, repository: Repository, tmp_path: Path, table: str
) -> None:
    repository.commit("Pelican", {"a": "pelican = 1\n"})
    expert = make(tmp_path / "cache")
    question = call_for("why pelican", repository.root)
    await expert.search(question)
    (stored,) = (tmp_path / "cache").glob("*.sqlite")
    with sqlite3.connect(stored) as spoiler:
        spoiler.execute(f"DROP TABLE {table}")
    spoiler.close()
    repository.commit("Heron", {"a": "heron = 1\n"})
    results = [await expert.search(question) for _ in range(3)]  # at the latest the one after the next has met the damage
    assert all("Pelican" in subjects(result) for result in results)
    result = results[-1]
    assert [note for note in result.notes if note.startswith("The history cache was damaged")]
    assert stored.with_name(f"{stored.name}.damaged").is_file()
    assert stored.is_file()


# ------------------------------------------------------------------ no history


@pytest.mark.anyio
async def test_a_repository_without_a_commit_is_empty_and_says_so(make: Make, repository: Repository) -> None:
    result = await make().search(call_for("why pelican", repository.root))
    assert (result.hits, result.notes, result.partial) == ((), ("the repository has no commit",), None)


@pytest.mark.anyio
async def test_a_project_without_git_is_left_out_with_a_note(make: Make, repository: Repository, tmp_path: Path) -> None:
    repository.commit("Pelican", {"a": "1"})
    (tmp_path / "plain").mkdir()
    result = await make().search(call_for("why pelican", tmp_path / "plain", repository.root))
    assert subjects(result) == ["Pelican"]
    assert result.notes == (f"plain: {tmp_path / 'plain'} is not a git repository.",)


@pytest.mark.anyio
async def test_no_git_history_in_scope_is_a_failure(make: Make, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(ExpertError, match="no git history in scope") as caught:
        await make().search(call_for("why pelican", tmp_path / "plain"))
    assert caught.value.failure is FailureClass.UNAVAILABLE


@pytest.mark.anyio
async def test_a_directory_that_is_gone_is_a_failure_to_start(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ExpertError) as caught:
        await make().search(call_for("why pelican", tmp_path / "gone"))
    assert caught.value.failure is FailureClass.SPAWN_FAILED


@pytest.mark.anyio
async def test_a_damaged_repository_is_a_failure_and_the_next_call_tries_again(make: Make, repository: Repository) -> None:
    repository.commit("Pelican", {"a": "1"})
    expert = make()
    objects, aside = repository.root / ".git/objects", repository.root / ".git/aside"
    objects.rename(aside)
    objects.mkdir()
    for _ in range(2):
        with pytest.raises(ExpertError, match="git failed") as caught:
            await expert.search(call_for("why pelican", repository.root))
        assert caught.value.failure is FailureClass.CRASHED
    objects.rmdir()
    aside.rename(objects)
    assert subjects(await expert.search(call_for("why pelican", repository.root))) == ["Pelican"]


@pytest.mark.anyio
async def test_health_tells_gits_version_and_which_projects_have_no_history(make: Make, repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain, good = (Project(root.name, root, "git") for root in (tmp_path / "plain", repository.root))
    health = await make().health((plain, good))
    assert health.available
    assert health.version is not None and health.version.startswith("2.")
    assert "plain" in health.details["without history"]
    none = await make().health((plain,))
    assert (none.available, none.failure) == (False, ExpertStatus.UNAVAILABLE)


# ------------------------------------------------------------------ nothing stays behind


@pytest.mark.anyio
async def test_a_cancelled_call_and_a_closed_expert_leave_no_process_and_no_task(make: Make, repository: Repository) -> None:
    repository.commit("Start", {"a": "read_slowly"})
    repository.grow(2000, lines=200)
    expert = make(max_commits=100_000)
    before = asyncio.all_tasks()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(expert.search, call_for("when did read_slowly land", repository.root))
        with anyio.fail_after(10):
            while not any(b"log" in command or b"diff-tree" in command for command in git_children()):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await expert.aclose()
    await expert.aclose()
    assert git_children() == []
    assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing(
    make: Make, repository: Repository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repository.commit("Start", {"a": "read_slowly"})
    repository.grow(300)
    for milliseconds in range(0, 60, 3):
        expert = make(tmp_path / str(milliseconds), max_commits=100_000)
        with anyio.move_on_after(milliseconds / 1000):
            await expert.search(call_for("when did read_slowly land", repository.root))
        await expert.aclose()
        assert git_children() == []
    assert caplog.records == []  # asyncio logs a child that nobody reaped


@pytest.mark.anyio
async def test_many_calls_at_once_read_the_history_once_and_agree(make: Make, repository: Repository) -> None:
    repository.commit("Introduce", {"a.py": "read_slowly\n"})
    repository.grow(300)
    expert = make(max_commits=100_000)
    results: list[ExpertResult] = []

    async def ask() -> None:
        results.append(await expert.search(call_for("when did read_slowly land", repository.root)))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ask)
    assert len(results) == 8
    assert all(result == results[0] for result in results)
    assert subjects(results[0]) == ["Introduce"]


@pytest.mark.anyio
async def test_a_commit_is_found_by_what_it_changed_where_its_message_says_nothing(make: Make, repository: Repository) -> None:
    repository.commit("first", {"a.py": "x = 1\n"})
    repository.commit("wip", {"a.py": "x = 1\n\n\ndef throttle(requests, burst):\n    return burst\n"})
    repository.commit("more", {"b.py": "y = 2\n"})
    expert = make()
    with anyio.fail_after(30):  # until the changes are summarised, an answer says so
        while True:
            result = await expert.search(call_for("the throttle of requests in a burst", repository.root))
            if not any("still being read" in note for note in result.notes):
                break
    assert subjects(result) == ["wip"]


async def test_the_only_commit_of_a_project_is_no_answer_by_being_its_best(make: Make, repository: Repository, tmp_path: Path) -> None:
    repository.commit("Start", {"sails.py": "hoist = 1\n"})
    repository.commit("Reef the sails before the storm", {"sails.py": "reef = 1\n"})
    repository.commit("Paint the hull")
    single = Repository(tmp_path / "single")
    single.commit("Import of everything about the storm", {"storm.py": "storm = 'before the sails'\n"})
    result = await make().search(call_for("which commit was about the sails before the storm", single.root, repository.root))
    assert subjects(result)[0] == "Reef the sails before the storm"
    named = await make().search(call_for("which commit of single was about sails", single.root, repository.root))
    assert {hit.project for hit in named.hits} == {"single", "work"}
