"""Blocks of remote experts: every mistake is said at once, in the place where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.config.loader import explain, load_config
from search_router.errors import ConfigError

BLOCK = """
[experts.mine]
kind = "mcp"
precision_class = "lexical"
engine = "mine"
intents = ["identifier"]
cap_ms = 1000
{more}

[experts.mine.answer]
form = "json"
fields = {{ path = "p" }}
{answer}

[priors.identifier]
mine = 0.5
"""


def load(folder: Path, more: str, answer: str = "") -> object:
    user = folder / "user.toml"
    user.write_text(BLOCK.format(more=more, answer=answer))
    return load_config(roots=[folder], environ={"SEARCH_ROUTER_HOME": str(folder), "SEARCH_ROUTER_CONFIG": str(user)})


def mistakes(folder: Path, more: str, answer: str = "") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, more, answer)
    return [f"{p.key}: {p.message}" for p in caught.value.problems]


def test_a_sound_block_is_no_mistake(tmp_path: Path) -> None:
    load(tmp_path, 'tool = "t"\ncommand = ["x", "{root}"]\narguments = { q = "{question}", n = [1, { m = "{limit}" }] }')


@pytest.mark.parametrize(
    ("more", "answer", "expected"),
    [
        ('tool = "t"', "", "experts.mine: needs command"),
        ('tool = "t"\ntransport = "http"', "", "experts.mine: needs url for transport http"),
        ('tool = "t"\ncommand = ["x"]\narguments = { q = "{questoin}" }', "", "experts.mine.arguments.q: has a placeholder {questoin}"),
        ('tool = "t"\ncommand = ["x", "{question}"]', "", "experts.mine.command[1]: has a placeholder {question} that means nothing here"),
        ('tool = "t"\ncommand = ["x"]', 'empty = ["(open"]', "experts.mine.answer.empty[0]: is not a regular expression"),
        (
            'tool = "t"\ncommand = ["x"]',
            'errors = [{ pattern = "[", failure = "busy" }]',
            "experts.mine.answer.errors[0].pattern: is not a reg",
        ),
        (
            'tool = "t"\ncommand = ["x"]\npass_env = ["SEARCH_ROUTER_TOKEN"]',
            "",
            "experts.mine.pass_env[0]: names a variable of this router",
        ),
        (
            'tool = "t"\ntransport = "http"\nurl = "http://x"\nheaders = { Authorization = "Bearer abc" }',
            "",
            "experts.mine.headers.Authorization: must name the variable",
        ),
        ('tool = "t"\ncommand = ["x"]\nfreshness = "probe"', "", 'experts.mine.freshness: is "probe" exactly where'),
        (
            'tool = "t"\ncommand = ["x"]\nfreshness = "probe"\nfreshness_probe = { commit = "a" }',
            "",
            "experts.mine.freshness_probe: needs one of tool and command",
        ),
        (
            'tool = "t"\ncommand = ["x"]\nfreshness = "probe"\nfreshness_probe = { tool = "s" }',
            "",
            "experts.mine.freshness_probe: needs commit or time",
        ),
        (
            'tool = "t"\ncommand = ["x"]\nfreshness = "probe"\nfreshness_probe = { tool = "s", commit = "~ [0-9a-f]+" }',
            "",
            "experts.mine.freshness_probe.commit: needs a group",
        ),
        ('tool = "t"\ncommand = ["x"]', 'pattern = "x"\nform_ = 1', "experts.mine.answer.form_: is not a known key"),
    ],
)
def test_each_mistake_is_said_where_it_stands(tmp_path: Path, more: str, answer: str, expected: str) -> None:
    assert any(found.startswith(expected) for found in mistakes(tmp_path, more, answer)), mistakes(tmp_path, more, answer)


def test_a_secret_in_the_environment_of_a_child_is_not_shown(tmp_path: Path) -> None:
    loaded = load(tmp_path, 'tool = "t"\ncommand = ["x"]\nenv = { THEIR_API_KEY = "hunter2222" }')
    assert "hunter2222" not in str(explain(loaded))  # type: ignore[arg-type] - it is Loaded here


def test_a_project_file_cannot_bring_a_remote_expert(tmp_path: Path) -> None:
    (tmp_path / ".search-router.toml").write_text(BLOCK.format(more='tool = "t"\ncommand = ["touch", "owned"]', answer=""))
    with pytest.raises(ConfigError, match="may not be set by a project file"):
        load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path)})


MILVUS = """
[experts.mine]
kind = "milvus"
precision_class = "semantic"
engine = "milvus"
intents = ["identifier"]
cap_ms = 1000
collection = "code"
{more}

[priors.identifier]
mine = 0.5
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('uri = "http://root:hunter2222@host:19530"', "experts.mine.uri: must not hold credentials"),
        ('uri = "x.db"\ntoken_env = "SEARCH_ROUTER_TOKEN"', "experts.mine.token_env: names a variable of this router"),
        ('uri = "{question}.db"', "experts.mine.uri: has a placeholder {question}"),
        ('uri = "x.db"\nvectors = { embedder = "lsa" }', "experts.mine.vectors.embedder: must be one that gives everybody the same"),
        ('uri = "x.db"\nfields = { pth = "p" }', "experts.mine.fields.pth: is not a known key"),
        ('uri = "x.db"\nmetric = "cosine"', "experts.mine.metric: "),
    ],
)
def test_each_mistake_in_a_collections_block_is_said_where_it_stands(tmp_path: Path, more: str, expected: str) -> None:
    user = tmp_path / "user.toml"
    user.write_text(MILVUS.replace("{more}", more))
    with pytest.raises(ConfigError) as caught:
        load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path), "SEARCH_ROUTER_CONFIG": str(user)})
    said = [f"{p.key}: {p.message}" for p in caught.value.problems]
    assert any(found.startswith(expected) for found in said), said
    assert "hunter2222" not in str(caught.value)
