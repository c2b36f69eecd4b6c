"""Files that `workspace.withhold` names: found by no expert, told in no answer, fetched by nobody."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from search_router.config.loader import load_config
from search_router.errors import ConfigError
from search_router.router.opening import open_router
from search_router.router.service import Router

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


async def test_a_pattern_that_is_none_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"workspace\.withhold"):
        load_config(roots=[tmp_path], environ=environ_of(tmp_path), flags=[flag("!")])
