"""Every mistake, all at once, with file and line, in words for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.config.loader import load_config
from search_router.errors import ConfigError, ConfigProblem
from tests.config.conftest import Desk

USER = """budgett.latency_ms = 3
[budget]
latency_ms = 0
max_expert = 3
[gate]
default_set = ["symbols",
  "grpe", "history"]
min_prior = 0.1234
[experts.foo]
kind = "scriptd"
cap_ms = 0
bar = 1
[priors.idntifier]
grep = 0.5
[priors.docs]
grepp = 0.5
symbols = inf
[receipts]
question = "no"
directory = 2024-01-01
latency_ms = 5
[workspace.groups]
none = []
twice = ["a", "a"]
"""
PROJECT = """
workspace.roots = ["/"]
experts.grep.cap_ms = "x"
[frob]
x = 1
"""


def test_all_mistakes_of_all_layers_come_at_once_in_reading_order(desk: Desk) -> None:
    desk.write_user(USER)
    desk.write_project(PROJECT)
    variables = {"SEARCH_ROUTER__BUDGET__LATENCY_MS": "600001", "SEARCH_ROUTER__RECEIPTS__KEY": "2024"}
    assert desk.found(variables, ["fusion.k=0", "zzz", "gate.one_expert_suffices=1"]) == [
        ("user", 1, "budgett"),
        ("user", 3, "budget.latency_ms"),
        ("user", 4, "budget.max_expert"),
        ("user", 7, "gate.default_set[1]"),
        ("user", 8, "gate.min_prior"),
        ("user", 9, "experts.foo.precision_class"),
        ("user", 9, "experts.foo.engine"),
        ("user", 9, "experts.foo.intents"),
        ("user", 9, "experts.foo"),
        ("user", 10, "experts.foo.kind"),
        ("user", 11, "experts.foo.cap_ms"),
        ("user", 12, "experts.foo.bar"),
        ("user", 13, "priors.idntifier"),
        ("user", 16, "priors.docs.grepp"),
        ("user", 17, "priors.docs.symbols"),
        ("user", 19, "receipts.question"),
        ("user", 20, "receipts.directory"),
        ("user", 21, "receipts.latency_ms"),
        ("user", 23, "workspace.groups.none"),
        ("user", 24, "workspace.groups.twice[1]"),
        ("project", 2, "workspace.roots"),
        ("project", 3, "experts.grep.cap_ms"),
        ("project", 4, "frob"),
        ("environment", 0, "budget.latency_ms"),
        ("environment", 0, "receipts.key"),
        ("flags", 0, ""),
        ("flags", 0, "gate.one_expert_suffices"),
        ("flags", 0, "fusion.k"),
    ]


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("budget.latency_ms = 0", "budget.latency_ms", "must be between 1 and 600000, got 0"),
        ("budget.latency_ms = '5'", "budget.latency_ms", 'must be a whole number between 1 and 600000, got "5"'),
        ("budget.latency_ms = 5.0", "budget.latency_ms", "must be a whole number between 1 and 600000, got 5.0"),
        ("budget.latency_ms = true", "budget.latency_ms", "must be a whole number between 1 and 600000, got true"),
        ("budget.latency = 5", "budget.latency", "is not a known key; did you mean budget.latency_ms?"),
        ("budget = 5", "budget", "must be a table, got 5"),
        ("latency_ms = 5", "latency_ms", "is not a known key; did you mean budget.latency_ms?"),
        ("fusion.zzz = 5", "fusion.zzz", "is not a known key"),
        ("experts = 5", "experts", "must be a table, got 5"),
        ("experts.grep = []", "experts.grep", "must be a table, got []"),
        ("experts.grep.workers = 5", "experts.grep.workers", "is not a known key; did you mean experts.symbols.workers?"),
        ("experts.grep.max_file_bytes = 5", "experts.grep.max_file_bytes", "must be at least 1024, got 5"),
        (
            "experts.grep.max_file_bytes = 0x20000000000000",
            "experts.grep.max_file_bytes",
            "must be between -9007199254740991 and 9007199254740991",
        ),
        ("experts.grep.engine = ''", "experts.grep.engine", "must not be empty"),
        ("experts.grep.intents = []", "experts.grep.intents", "must have at least 1 element(s), got 0"),
        (
            "experts.grep.intents = ['doc']",
            "experts.grep.intents[0]",
            "must be one of conceptual, identifier, typed-symbol, cross-repo-impact, docs, history, unknown, "
            'got "doc"; did you mean "docs"?',
        ),
        (
            "experts.grep.kind = 'gerp'",
            "experts.grep.kind",
            "must be one of grep, symbols, codesearch, callgraph, semantic, history, scip, python-types, knowledge, docs, "
            "scripted, mcp, command, http-json, milvus, "
            'got "gerp"; did you mean "grep"?',
        ),
        ("priors.docs.grep = 1.5", "priors.docs.grep", "must be between 0 and 1, got 1.5"),
        ("priors.docs.grep = 0.0005", "priors.docs.grep", "must have at most 3 decimals, got 0.0005"),
        ("priors.docs.grep = nan", "priors.docs.grep", "must be a finite number, got nan"),
        ("priors.docs.gerp = 1", "priors.docs.gerp", 'names an unknown expert; did you mean "grep"?'),
        (
            "gate.default_set = ['x']",
            "gate.default_set[0]",
            'names an unknown expert "x"; there are grep, symbols, codesearch, callgraph, semantic, history, scip, python-types, '
            "knowledge, docs",
        ),
        (
            "gate.reserve.gerp = 'codesearch'",
            "gate.reserve.gerp",
            'names an unknown expert "gerp"; did you mean "grep"?',
        ),
        ("gate.default_set = 'x'", "gate.default_set", 'must be an array of strings, got "x"'),
        ("vectors.api_key_env = 'sk-pasted'", "vectors.api_key_env", "must match ^[A-Z_][A-Z0-9_]*$|^$, got a value that is not shown"),
        ("rerank.api_key_env = 'sk-pasted'", "rerank.api_key_env", "must match ^[A-Z_][A-Z0-9_]*$|^$, got a value that is not shown"),
        ("llm.api_key_env = 'sk-pasted'", "llm.api_key_env", "must match ^[A-Z_][A-Z0-9_]*$|^$, got a value that is not shown"),
        ("rerank.kind = 'http'", "rerank.kind", 'is "http", which needs rerank.url, the whole address of a server'),
        ("rerank.kind = 'cross-encoder'", "rerank.kind", 'is "cross-encoder", which needs rerank.model, the folder of a model'),
        (
            "llm = { kind = 'chat-completions', url = 'http://127.0.0.1:1/v1' }",
            "llm.kind",
            'is "chat-completions", which needs llm.model, the name of a model',
        ),
        ("gate.one_expert_suffices = 'yes'", "gate.one_expert_suffices", 'must be true or false, got "yes"'),
        ("http.host = 1979-05-27", "http.host", "must be a string, got 1979-05-27; put it in quotes to make it a string"),
        ("workspace.names = 1979-05-27", "workspace.names", "must be a table, got 1979-05-27"),
        ('http.host = "a\\u0000"', "http.host", "must not contain a NUL character or bytes that are not UTF-8"),
        ("version = '1'", "version", r'must match ^search-router@\d+\.\d+\.\d+$, got "1"'),
        ("receipts.key = 5", "receipts.key", "must be a string, got 5; put it in quotes to make it a string"),
        ("workspace.groups.a = ['x', '']", "workspace.groups.a[1]", "must not be empty"),
        ("workspace.roots = [[[[[[[[1]]]]]]]]", "workspace.roots[0][0][0][0][0][0]", "is nested too deeply"),
    ],
)
def test_a_mistake_is_said_in_words_for_people(desk: Desk, text: str, key: str, message: str) -> None:
    desk.write_user(f"\n{text}\n")
    assert desk.problems() == (ConfigProblem(str(desk.user_file), 2, key, message),)


def test_an_enabled_expert_without_any_prior_is_a_mistake_and_a_disabled_one_is_not(desk: Desk) -> None:
    common = 'script = "s"\nengine = "e"\nprecision_class = "docs"\nintents = ["docs"]\ncap_ms = 1\n'
    block = f'[experts.x]\nkind = "scripted"\nenabled = true\n{common}'
    desk.write_user(block)
    (problem,) = desk.problems()
    assert (problem.line, problem.key) == (1, "experts.x")
    assert problem.message == "is enabled but has no prior for any intent; set priors.<intent>.x, or enabled = false"
    desk.write_user(block.replace("true", "false"))
    desk.load()


def test_what_a_new_expert_lacks_is_said_at_its_block_unless_a_stronger_layer_gives_it(desk: Desk) -> None:
    desk.write_user('priors.docs.x = 1\n[experts.x]\nscript = "s"\nengine = "e"\nprecision_class = "docs"\ncap_ms = 1\n')
    assert desk.found() == [("user", 2, "experts.x.kind"), ("user", 2, "experts.x.intents")]
    given = {"SEARCH_ROUTER__EXPERTS__X__KIND": "scripted", "SEARCH_ROUTER__EXPERTS__X__INTENTS": '["docs"]'}
    assert desk.load(given).config.experts["x"].kind == "scripted"


def test_a_key_that_a_kind_from_a_stronger_layer_does_not_have_is_reported_where_it_stands(desk: Desk) -> None:
    desk.write_user(
        'priors.docs.x = 1\n[experts.x]\nthreads = 1\nscript = "s"\nengine = "e"\nprecision_class = "docs"\ncap_ms = 1\nintents = ["docs"]'
    )
    assert desk.found({"SEARCH_ROUTER__EXPERTS__X__KIND": "scripted"}) == [("user", 3, "experts.x.threads")]


def test_a_mistake_is_reported_even_where_a_stronger_layer_hides_it(desk: Desk) -> None:
    desk.write_user("budget.latency_ms = 0")
    assert desk.found({"SEARCH_ROUTER__BUDGET__LATENCY_MS": "5"}) == [("user", 1, "budget.latency_ms")]


def test_a_table_that_became_a_number_causes_no_further_mistakes(desk: Desk) -> None:
    desk.write_user("gate = 5")
    assert desk.found(flags=["gate.min_prior=0.5"]) == [("user", 1, "gate")]


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"[a]\nx = \n", 2, "is not TOML: Invalid value"),
        (b"[a\n", 1, None),
        (b"[a]\r\n[b]\r\nx = 'open", 3, None),
        (b"\n# \xff\n", 2, "is not UTF-8"),
        (b"x = " + b"[" * 9000, 0, "is nested too deeply"),
        (b"x = " + b"9" * 9000, 0, "has a number that is too long to read"),
        (b"\na" + b".a" * 9000 + b" = 1", 2, "has more than 128 dots in one key or value"),
        (b"#" * (256 * 1024 + 1), 0, "is larger than 262144 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_problem_and_the_others_are_still_checked(
    desk: Desk, data: bytes, line: int, message: str | None
) -> None:
    desk.user_file.write_bytes(data)
    desk.write_project("fusion.k = 0")
    first, second = desk.problems()
    assert (first.source, first.line, first.key) == (str(desk.user_file), line, "")
    assert first.message == message if message else first.message.startswith("is not TOML: ")
    assert (second.source, second.key) == (str(desk.project_file), "fusion.k")


def test_all_keys_that_are_set_twice_are_named_with_both_lines(desk: Desk) -> None:
    desk.write_user("[budget]\nlatency_ms = 1\nlatency_ms = 2\n[gate]\n[budget]\n")
    assert [str(p) for p in desk.problems()] == [
        f"{desk.user_file}:3: budget.latency_ms: is set twice; first on line 2",
        f"{desk.user_file}:5: budget: is set twice; first on line 1",
    ]


def test_what_is_missing_is_not_claimed_while_a_file_cannot_be_read(desk: Desk) -> None:
    desk.write_user("[experts.x]\nkind = ")
    assert desk.found({"SEARCH_ROUTER__EXPERTS__X__CAP_MS": "5"}) == [("user", 2, "")]


def test_neither_the_library_nor_its_address_shows_in_a_message(desk: Desk) -> None:
    desk.write_user(USER)
    text = "\n".join(str(p) for p in desk.problems()).lower()
    assert "pydantic" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "input should" not in text


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"a{i} = 1" for i in range(20_000)),
        "[receipts]\n" + "\n".join(f"a{i} = 1" for i in range(20_000)),
        "[priors.docs]\n" + "\n".join(f"a{i} = 1" for i in range(20_000)),
        "\n".join(f"a{i}" + ".a" * 127 + " = 1" for i in range(900)),
        "[workspace.groups]\n" + "\n".join(f"a{i} = []" for i in range(18_000)),
    ],
    ids=["unknown", "forbidden", "priors", "deep", "groups"],
)
@pytest.mark.timeout(30)
def test_a_hostile_project_file_costs_seconds_at_most_and_is_reported_up_to_a_limit(desk: Desk, text: str) -> None:
    desk.write_project(text)
    problems = desk.problems()
    assert len(problems) == 101
    assert problems[-1] == ConfigProblem(str(desk.project_file), 0, "", "has more mistakes than these 100; the rest was not looked at")


def test_an_expert_id_that_could_not_stand_in_a_receipt_is_refused(tmp_path: Path) -> None:
    block = (
        '{kind="grep", engine="e", precision_class="lexical", intents=["docs"], cap_ms=9, threads=1, max_file_bytes=5000, max_columns=50}'
    )
    flags = [f'experts."ÄX"={block}', 'priors.docs."ÄX"=0.1']
    with pytest.raises(ConfigError, match="is no id: 1 to 64 of a-z"):
        load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path)}, flags=flags)
