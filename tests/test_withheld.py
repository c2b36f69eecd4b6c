"""Files that `workspace.withhold` names: found by no expert, told in no answer, fetched by nobody."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from search_router.adapters.local.manifest import build_manifest
from search_router.adapters.local.withheld import withholds
from search_router.adapters.process import Finished
from search_router.config.loader import load_config
from search_router.errors import ConfigError
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Project

pytestmark = pytest.mark.anyio
SECRET = "zanzibar"
FILES = {
    "app.py": "def open_account():\n    '''Opens an account.'''\n    return 1\n",
    "docs/accounts.md": "# Accounts\n\nHow an account is opened.\n",
    "vault/keys.py": f"def {SECRET}_account():\n    '''Opens an account of {SECRET}.'''\n    return 2\n",
    "docs/private.secret.md": f"# Private accounts\n\nAn account of {SECRET} is opened by night.\n",
}
QUESTIONS = (
    {"question": "how is an account opened", "intent": "conceptual", "limit": 50},
    {"question": f'grep for "{SECRET}"', "limit": 50},
    {"question": f"where is {SECRET}_account defined", "limit": 50},
    {"question": f"documentation of accounts of {SECRET}", "limit": 50},
    {"question": f"who calls {SECRET}_account()", "limit": 50},
    {"question": "account", "scope": {"path": "vault"}, "limit": 50},
    {"question": "when did Everything come", "intent": "history"},
    {"question": f"when was {SECRET}_account introduced", "intent": "history"},
)
WITHHELD = ("vault/", "*.secret.md")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Everything")
    return root


def environ_of(tmp_path: Path) -> dict[str, str]:
    return {"SEARCH_ROUTER_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def flag(*patterns: str) -> str:
    return f"workspace.withhold={json.dumps(patterns)}"


async def told(router: Router) -> str:
    """Everything that the answers to all questions say: evidence, reports, notes, and their text."""
    await router.catch_up()
    said = ""
    for question in QUESTIONS:
        answer = await router.search(question)
        said += answer.model_dump_json() + router.render(answer)
    return said


async def test_no_expert_finds_a_withheld_file_and_no_answer_names_it(tmp_path: Path, work: Path) -> None:
    async with open_router(roots=[work], environ=environ_of(tmp_path)) as router:
        said = await told(router)
        assert "vault/keys.py" in said and "private.secret.md" in said  # without patterns they are found, also by what is indexed then
    async with open_router(roots=[work], flags=[flag(*WITHHELD)], environ=environ_of(tmp_path)) as router:
        said = await told(router)
        assert "app.py" in said and "docs/accounts.md" in said
        assert "keys.py" not in said and "private.secret.md" not in said


async def test_what_another_expert_says_of_a_withheld_file_is_left_out(tmp_path: Path, work: Path) -> None:
    hits = [{"path": path, "start_line": 1, "end_line": 2} for path in ("app.py", "vault/keys.py", str(work / "vault" / "keys.py"))]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [{"when": "*", "hits": hits}]}))
    block = f'{{kind="scripted", precision_class="lexical", engine="other", cap_ms=1000, script="{script}", intents=["conceptual"]}}'
    flags = [flag(*WITHHELD), f"experts.other={block}", "priors.conceptual.other=1.0"]
    async with open_router(roots=[work], flags=flags, environ=environ_of(tmp_path)) as router:
        answer = await router.search(QUESTIONS[0])
    other = [item.path for item in answer.evidence if any(source.expert == "other" for source in item.sources)]
    assert other == ["app.py"]
    assert "keys.py" not in answer.model_dump_json()


async def test_a_withheld_file_is_not_fetched_and_a_commit_is_shown_without_it(tmp_path: Path, work: Path) -> None:
    head = git(work, "rev-parse", "HEAD").strip()
    git(work, "mv", "vault/keys.py", "vault/old.py")
    git(work, "commit", "-qm", "Only withheld files")
    alone = git(work, "rev-parse", "HEAD").strip()
    async with open_router(roots=[work], environ=environ_of(tmp_path)) as router:
        answer = await router.search({"question": "how is an account opened", "limit": 50})
        code = next(item.id for item in answer.evidence if item.path == "vault/old.py")
        commit = next(item.id for item in (await router.search({"question": "when did Everything come", "intent": "history"})).evidence)
        assert SECRET in (await router.fetch({"ids": [code]})).items[0].text
    name = commit.partition("/")[0].partition("@")[0]
    async with open_router(roots=[work], flags=[flag(*WITHHELD)], environ=environ_of(tmp_path)) as router:
        refused = await router.fetch({"ids": [code]})
        assert not refused.items and refused.problems[0].code == "evidence-not-visible"
        shown = await router.fetch({"ids": [commit.replace(alone, head)], "max_characters": 100_000})
        only = await router.fetch({"ids": [commit.replace(head, alone)], "max_characters": 100_000})
    assert name and "open_account" in shown.items[0].text and SECRET not in shown.items[0].text and "keys.py" not in shown.items[0].text
    assert "Only withheld files" in only.items[0].text and SECRET not in only.items[0].text and "old.py" not in only.items[0].text


@pytest.mark.parametrize("pattern", ["!", "a**/b", "***/a", "**a"])
async def test_a_pattern_that_is_none_is_a_mistake_of_the_configuration(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"workspace\.withhold"):
        load_config(roots=[tmp_path], environ=environ_of(tmp_path), flags=[flag(pattern)])


async def fetched(work: Path, tmp_path: Path, commit: str, *patterns: str) -> str:
    async with open_router(roots=[work], flags=[flag(*patterns)], environ=environ_of(tmp_path)) as router:
        answer = await router.fetch({"ids": [f"{work.name}@commit:{commit}"], "max_characters": 100_000})
    return "".join(item.text for item in answer.items)


async def test_a_link_leads_to_nothing_that_is_withheld(tmp_path: Path, work: Path) -> None:
    (work / "open").symlink_to("vault")
    (work / "open.py").symlink_to("vault/keys.py")
    hits = [{"path": "open/keys.py", "start_line": 1, "end_line": 2}, {"path": "open.py", "start_line": 1, "end_line": 2}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [{"when": "*", "hits": hits}]}))
    block = f'{{kind="scripted", precision_class="lexical", engine="other", cap_ms=1000, script="{script}", intents=["conceptual"]}}'
    flags = [flag(*WITHHELD), f"experts.other={block}", "priors.conceptual.other=1.0"]
    async with open_router(roots=[work], flags=flags, environ=environ_of(tmp_path)) as router:
        for question in ({**QUESTIONS[1], "scope": {"path": "open"}}, {**QUESTIONS[1], "scope": {"path": "open.py"}}, QUESTIONS[0]):
            answer = await router.search(question)
            assert all(item.path in ("app.py", "docs/accounts.md") for item in answer.evidence)
            assert f"def {SECRET}" not in answer.model_dump_json()


async def test_a_file_that_became_a_folder_opens_no_door_to_what_is_in_it(tmp_path: Path, work: Path) -> None:
    (work / "conf").write_text("visible\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a file")
    (work / "conf").unlink()
    (work / "conf").mkdir()
    (work / "conf" / "x.secret.md").write_text(f"password {SECRET}\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a folder")
    text = await fetched(work, tmp_path, git(work, "rev-parse", "HEAD").strip(), *WITHHELD)
    assert "a folder" in text and SECRET not in text and "x.secret.md" not in text


@pytest.mark.parametrize("setting", ["off", "first-parent", "separate", "dense-combined", "remerge"])
async def test_no_setting_of_the_repository_shows_what_a_merge_did_to_withheld_files(tmp_path: Path, work: Path, setting: str) -> None:
    git(work, "checkout", "-qb", "side")
    (work / "vault" / "keys.py").write_text(f"side = '{SECRET}'\n")
    git(work, "commit", "-qam", "side")
    git(work, "checkout", "-q", "-")
    (work / "vault" / "keys.py").write_text(f"mine = '{SECRET}'\n")
    (work / "app.py").write_text("def open_account():\n    return 3\n")
    git(work, "commit", "-qam", "mine")
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "merge", "-q", "side"], cwd=work, check=False, capture_output=True
    )
    (work / "vault" / "keys.py").write_text(f"both = '{SECRET}'\n")
    git(work, "commit", "-qam", "joined")
    git(work, "config", "log.diffMerges", setting)
    text = await fetched(work, tmp_path, git(work, "rev-parse", "HEAD").strip(), *WITHHELD)
    assert "joined" in text and SECRET not in text and "keys.py" not in text


async def test_a_repository_in_a_withheld_folder_is_no_project_and_is_not_named(tmp_path: Path, work: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "sub.py").write_text(f"def {SECRET}_sub(): pass\n")
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "private_sub")
    git(work, "commit", "-qam", "with a submodule")
    git(work, "worktree", "add", "-q", "private_tree", "HEAD")
    git(inner, "clone", "-q", str(inner), str(work / "private_nest"))
    patterns = (*WITHHELD, "private_*/")
    async with open_router(roots=[work], flags=[flag(*patterns)], environ=environ_of(tmp_path)) as router:
        assert [project.id for project in router.workspace.projects] == ["work"]
        said = await told(router) + (await router.registry()).model_dump_json()
    assert "app.py" in said and "private_" not in said and "sub.py" not in said
    text = await fetched(work, tmp_path, git(work, "rev-parse", "HEAD").strip(), *patterns)
    assert "with a submodule" in text and "diff --git a/private_sub" not in text


async def test_an_installed_library_and_a_lock_file_that_are_withheld_are_not_read(tmp_path: Path, work: Path) -> None:
    library = work / "node_modules" / "quagga"
    library.mkdir(parents=True)
    (library / "package.json").write_text('{"name": "quagga", "version": "9.9.9"}')
    (library / "README.md").write_text("# quagga\n\nOpens the xylophone door.\n")
    (work / "package.json").write_text('{"name": "work", "dependencies": {"quagga": "9.9.9"}}')
    (work / "package-lock.json").write_text("{ no json")
    question = {"question": "quagga documentation of the door", "intent": "docs", "limit": 50}
    for patterns, is_there in (((), True), (("node_modules/", "package-lock.json"), False)):
        async with open_router(roots=[work], flags=[flag(*patterns)], environ=environ_of(tmp_path)) as router:
            said = (await router.search(question)).model_dump_json()
            assert ("xylophone" in said) is is_there and ("package-lock" in said) is is_there


def test_paths_that_cannot_be_read_are_not_named_either(tmp_path: Path) -> None:
    listing = Finished(0, b"", "warning: could not open directory 'vault/': Permission denied\n")
    for withheld, count in (((), 1), (("vault/",), 0)):
        assert len(build_manifest(Project("w", tmp_path, "directory", withheld=withheld), listing, ()).left_out) == count


PARTS = st.sampled_from(["a", "b", "ab", "a b", "#a", "a.md"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PIECES = st.sampled_from(["a", "b", "*", "**", "?", "*.md", "[ab]", "a*", "\\#a", "a b"])
PATTERNS = st.tuples(
    st.sampled_from(["", "!"]), st.sampled_from(["", "/"]), st.lists(PIECES, min_size=1, max_size=3), st.sampled_from(["", "/"])
).map(lambda p: f"{p[0]}{p[1]}{'/'.join(p[2])}{p[3]}")


@settings(max_examples=60, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(PATHS, min_size=1, max_size=6, unique=True))
@example(["a", "!/a"], ["a/a/b", "a/b"])
@example(["a/*", "!a/b", "b"], ["a/b/b", "a/b/c"])
@example(["a", "!a/**"], ["a/a"])
@example(["*/", "!/a"], ["a/a/a"])
@example(["a/**/", "!a"], ["a/b/a"])
def test_what_git_would_ignore_is_withheld(patterns: list[str], paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        git(Path(folder), "init", "-q")
        (Path(folder) / ".git" / "info" / "exclude").write_text("\n".join(patterns) + "\n")
        asked = "\0".join(paths)
        command = ["git", "check-ignore", "-z", "--stdin", "--no-index"]
        ignored = subprocess.run(command, cwd=folder, input=asked, capture_output=True, text=True, check=False).stdout.split("\0")
        project = Project("w", Path(folder), "git", withheld=tuple(patterns))
        assert [path for path in paths if path in ignored and not withholds(project, path)] == []
