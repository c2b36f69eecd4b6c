"""A project's file comes with the repository: what it may set, and what it may not."""

from __future__ import annotations

import pytest

from tests.config.conftest import Desk

ALLOWED = """
[workspace]
submodules = false
names = { "/a" = "b" }
groups = { g = ["b"] }
[budget]
latency_ms = 5
[classify]
min_score = 0.5
[gate]
default_set = ["grep"]
[fusion]
k = 5
[output]
snippet_lines = 5
[priors.docs]
grep = 0.5
[experts.grep]
enabled = false
cap_ms = 5
intents = ["docs"]
languages = ["python"]
"""


def test_it_may_set_what_shapes_answers(desk: Desk) -> None:
    desk.write_project(ALLOWED)
    config = desk.load().config
    assert (config.workspace.submodules, config.budget.latency_ms, config.fusion.k, config.output.snippet_lines) == (False, 5, 5, 5)
    grep = config.experts["grep"]
    assert (grep.enabled, grep.cap_ms, [str(i) for i in grep.intents], grep.languages) == (False, 5, ["docs"], ("python",))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('version = "search-router@9.9.9"', ["version"]),
        ('workspace.roots = ["/"]', ["workspace.roots"]),
        ('receipts = { directory = "/x", question = "text" }', ["receipts.directory", "receipts.question"]),
        ("receipts = {}", ["receipts"]),
        ("http.port = 1\nhttp.host = '0.0.0.0'", ["http.port", "http.host"]),
        ("experts.grep.rg = './evil'", ["experts.grep.rg"]),
        ("experts.grep.script = './evil'", ["experts.grep.script"]),
        ("experts.grep.kind = 'scripted'\nexperts.grep.cap_ms = 5", ["experts.grep.kind"]),
        ("experts.grep.engine = 'e'\nexperts.grep.precision_class = 'typed'", ["experts.grep.engine", "experts.grep.precision_class"]),
        ("experts.grep.max_file_bytes = 9999999", ["experts.grep.max_file_bytes"]),
        ("[experts.new]\nkind = 'scripted'\nscript = 'x'", ["experts.new"]),
        ("[experts.new]\nenabled = false", ["experts.new"]),
        ("rerank = { url = 'https://evil.example', allow_remote = true }", ["rerank.url", "rerank.allow_remote"]),
        ("llm.url = 'https://evil.example'", ["llm.url"]),
        ("vectors = { url = 'https://evil.example', allow_remote = true }", ["vectors.url", "vectors.allow_remote"]),
    ],
)
def test_it_may_not_set_what_reaches_beyond_the_repository(desk: Desk, text: str, keys: list[str]) -> None:
    desk.write_project(text)
    problems = desk.problems()
    assert [p.key for p in problems] == keys
    assert all(p.line > 0 and p.source == str(desk.project_file) for p in problems)
    assert {p.message for p in problems} == {
        f"may not be set by a project file (it comes with the repository); set it in {desk.user_file}, the environment or a flag"
    }


def test_a_forbidden_key_is_a_mistake_even_where_a_flag_sets_it_anyway(desk: Desk) -> None:
    desk.write_project("http.port = 1")
    assert desk.found(flags=["http.port=2"]) == [("project", 1, "http.port")]


def test_the_environment_and_flags_may_set_anything_and_win_over_it(desk: Desk) -> None:
    desk.write_project("budget.latency_ms = 5\nexperts.grep.cap_ms = 5")
    config = desk.load({"SEARCH_ROUTER__BUDGET__LATENCY_MS": "6", "SEARCH_ROUTER__HTTP__PORT": "7"}, ["experts.grep.cap_ms=8"]).config
    assert (config.budget.latency_ms, config.http.port, config.experts["grep"].cap_ms) == (6, 7, 8)


def test_it_may_tune_an_expert_that_a_more_trusted_layer_defines(desk: Desk) -> None:
    desk.write_project("experts.x.cap_ms = 5")
    block = 'experts.x={kind="scripted",script="s",engine="e",precision_class="docs",intents=["docs"],cap_ms=1,enabled=false}'
    assert desk.load(flags=[block]).config.experts["x"].cap_ms == 1
    desk.write_user(block)
    assert desk.load().config.experts["x"].cap_ms == 5


def test_an_unknown_key_in_it_is_unknown_and_not_forbidden(desk: Desk) -> None:
    desk.write_project("frob = 1\nexperts.grep.thread = 1\n")
    assert [p.message.split(";")[0] for p in desk.problems()] == ["is not a known key", "is not a known key"]


def test_a_variable_cannot_be_led_astray_by_an_expert_that_only_the_project_names(desk: Desk) -> None:
    desk.write_user(
        "[experts.a_b]\nkind='scripted'\nscript='s'\nengine='e'\nprecision_class='docs'\nintents=['docs']\ncap_ms=1\nenabled=false"
    )
    desk.write_project("[experts.A-B]\ncap_ms = 3")
    assert desk.found({"SEARCH_ROUTER__EXPERTS__A_B__CAP_MS": "7"}) == [("project", 1, "experts.A-B")]
