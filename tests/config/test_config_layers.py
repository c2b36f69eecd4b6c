"""Which layer wins, how tables merge, and where each value says that it comes from."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import search_router
from search_router.config.experts import GrepConfig, ScriptedConfig
from search_router.config.keys import dotted, walk_leaves
from search_router.config.layers import LayerName
from search_router.config.loader import Origin, load_config
from search_router.errors import ConfigError, ConfigProblem
from search_router.schema import Intent
from tests.config.conftest import Desk

SCRIPTED = """
[experts.my-notes]
kind = "scripted"
script = "answers.json"
engine = "notes"
precision_class = "docs"
intents = ["docs"]
cap_ms = 100

[priors.docs]
my-notes = 0.5
"""


def test_each_layer_overrides_the_weaker_ones(desk: Desk) -> None:
    key = "fusion.k"
    assert (desk.load().config.fusion.k, desk.load().origin[key].layer) == (60, LayerName.DEFAULT)

    desk.write_user("[fusion]\nk = 61")
    loaded = desk.load()
    assert (loaded.config.fusion.k, loaded.origin[key]) == (61, Origin(LayerName.USER, str(desk.user_file), 2))

    desk.write_project("\n[fusion]\nk = 62")
    loaded = desk.load()
    assert (loaded.config.fusion.k, loaded.origin[key]) == (62, Origin(LayerName.PROJECT, str(desk.project_file), 3))

    variable = {"SEARCH_ROUTER__FUSION__K": "63"}
    loaded = desk.load(variable)
    assert (loaded.config.fusion.k, loaded.origin[key]) == (63, Origin(LayerName.ENVIRONMENT, "SEARCH_ROUTER__FUSION__K", 0))

    loaded = desk.load(variable, ["fusion.k=64"])
    assert (loaded.config.fusion.k, loaded.origin[key]) == (64, Origin(LayerName.FLAGS, "flags", 0))


def test_a_block_of_an_expert_may_give_only_the_keys_that_it_changes(desk: Desk) -> None:
    desk.write_user("[experts.grep]\nthreads = 7")
    desk.write_project("experts.grep.cap_ms = 900")
    grep = desk.load(flags=["experts.grep.max_columns=500"]).config.experts["grep"]
    assert isinstance(grep, GrepConfig)
    assert (grep.threads, grep.cap_ms, grep.max_columns, grep.engine) == (7, 900, 500, "ripgrep")


def test_arrays_replace_and_tables_merge(desk: Desk) -> None:
    desk.write_user('[gate]\ndefault_set = ["grep"]\n[workspace.groups]\na = ["x", "y"]\nb = ["z"]')
    desk.write_project('workspace.groups.a = ["w"]')
    config = desk.load().config
    assert config.gate.default_set == ("grep",)
    assert config.workspace.groups == {"a": ("w",), "b": ("z",)}


def test_another_kind_starts_the_block_of_an_expert_afresh(desk: Desk) -> None:
    block = 'kind = "scripted"\nscript = "s.json"\nengine = "e"\nprecision_class = "docs"\nintents = ["docs"]\ncap_ms = 5\n'
    desk.write_user(f"[experts.grep]\n{block}")
    loaded = desk.load()
    assert isinstance(loaded.config.experts["grep"], ScriptedConfig)
    assert loaded.origin["experts.grep.engine"] == Origin(LayerName.USER, str(desk.user_file), 4)
    assert loaded.origin["experts.grep.enabled"].layer is LayerName.SCHEMA  # the default file's belongs to the old kind


def test_a_user_may_define_a_new_expert(desk: Desk) -> None:
    packaged = desk.load().config.priors[Intent.DOCS]
    desk.write_user(SCRIPTED)
    loaded = desk.load()
    assert loaded.config.priors[Intent.DOCS] == packaged | {"my-notes": 0.5}
    assert loaded.origin["experts.my-notes.enabled"] == Origin(LayerName.SCHEMA, "schema", 0)


def test_every_effective_value_has_an_origin_and_no_other_has(desk: Desk) -> None:
    desk.write_user(SCRIPTED + '[workspace.names]\n"/a.b" = "ab"\n')
    loaded = desk.load()
    effective = loaded.config.model_dump(mode="json")
    assert set(loaded.origin) == {dotted(path) for path, _ in walk_leaves(effective)}
    assert loaded.origin['workspace.names."/a.b"'].layer is LayerName.USER
    assert "workspace.names" not in loaded.origin  # not empty any more, so no longer a leaf
    assert loaded.origin["workspace.groups"].layer is LayerName.DEFAULT


def test_a_file_with_byte_order_mark_and_crlf_is_read_like_any_other(desk: Desk) -> None:
    desk.user_file.write_bytes(b"\xef\xbb\xbf# first\r\n[budget]\r\nlatency_ms = 5\r\n")
    loaded = desk.load()
    assert loaded.config.budget.latency_ms == 5
    assert loaded.origin["budget.latency_ms"].line == 3


# ------------------------------------------------------------------ environment


def test_a_variable_is_read_in_any_case_with_underscores_for_dashes(desk: Desk) -> None:
    desk.write_user(SCRIPTED)
    loaded = desk.load(
        {
            "search_router__priors__Typed_Symbol__grep": "0.125",
            "SEARCH_ROUTER__EXPERTS__MY_NOTES__CAP_MS": "77",
            "SEARCH_ROUTER__PRIORS__DOCS__MY_NOTES": "1",
            "SEARCH_ROUTER__EXPERTS__GREP__RG": "/opt/rg",
            "SEARCH_ROUTER__GATE__DEFAULT_SET": '["grep"]',
            "SEARCH_ROUTER__GATE__ONE_EXPERT_SUFFICES": "false",
            "SEARCH_ROUTER__BUDGET": "{ latency_ms = 9, max_experts = 2 }",
        }
    )
    config = loaded.config
    assert config.priors[Intent.TYPED_SYMBOL]["grep"] == 0.125
    assert config.experts["my-notes"].cap_ms == 77
    assert config.priors[Intent.DOCS]["my-notes"] == 1
    assert config.experts["grep"].model_dump()["rg"] == "/opt/rg"
    assert (config.gate.default_set, config.gate.one_expert_suffices) == (("grep",), False)
    assert (config.budget.latency_ms, config.budget.max_experts) == (9, 2)
    assert loaded.origin["budget.max_experts"] == Origin(LayerName.ENVIRONMENT, "SEARCH_ROUTER__BUDGET", 0)


def test_a_variable_may_spell_a_name_that_only_the_project_uses(desk: Desk) -> None:
    desk.write_project('workspace.groups.back-end = ["a"]')
    assert desk.load({"SEARCH_ROUTER__WORKSPACE__GROUPS__BACK_END": '["b"]'}).config.workspace.groups == {"back-end": ("b",)}


def test_a_value_that_is_not_toml_is_a_string_and_cannot_smuggle_further_keys(desk: Desk) -> None:
    assert desk.load({"SEARCH_ROUTER__HTTP__HOST": "0.0.0.0"}).config.http.host == "0.0.0.0"
    assert desk.load({"SEARCH_ROUTER__HTTP__HOST": '"::1"'}).config.http.host == "::1"
    smuggled = '"h"\nw = 1'
    assert desk.load({"SEARCH_ROUTER__HTTP__HOST": smuggled}).config.http.host == smuggled


def test_reserved_names_are_no_keys_and_others_with_one_underscore_are_noted(desk: Desk) -> None:
    loaded = desk.load({"SEARCH_ROUTER_KEY": "/k", "SEARCH_ROUTER_TOKEN": "t0ps3cret", "SEARCH_ROUTER_LIFELINE": "x"})
    assert loaded.notes == ()
    loaded = desk.load({"SEARCH_ROUTER_LATENCY_MS": "t0ps3cret", "SEARCHROUTER": "1"})
    assert loaded.notes == ("SEARCH_ROUTER_LATENCY_MS means nothing and was ignored; settings are spelled SEARCH_ROUTER__SECTION__KEY.",)


@pytest.mark.parametrize(
    ("variables", "key", "message"),
    [
        ({"SEARCH_ROUTER__": "1"}, "SEARCH_ROUTER__", "empty name"),
        ({"SEARCH_ROUTER__BUDGET____X": "1"}, "SEARCH_ROUTER__BUDGET____X", "empty name"),
        ({"SEARCH_ROUTER__FUSION__K": "1", "search_router__fusion__k": "2"}, "search_router__fusion__k", "set twice"),
        ({"SEARCH_ROUTER__FUSION": "{k=1}", "SEARCH_ROUTER__FUSION__K": "2"}, "SEARCH_ROUTER__FUSION__K", "set twice"),
        ({"SEARCH_ROUTER__FUSION": "1", "SEARCH_ROUTER__FUSION__K": "2"}, "SEARCH_ROUTER__FUSION__K", "is below fusion"),
        ({"SEARCH_ROUTER__HTTP__HOST": os.fsdecode(b"\xff")}, "http.host", "not UTF-8"),
        ({"SEARCH_ROUTER__WORKSPACE__NAMES__" + os.fsdecode(b"\xff"): "x"}, 'workspace.names."\\udcff"', "not UTF-8"),
    ],
)
def test_a_variable_that_cannot_be_understood_is_a_mistake(desk: Desk, variables: dict[str, str], key: str, message: str) -> None:
    problems = desk.problems(variables)
    assert (problems[0].source, problems[0].line, problems[0].key) == ("environment", 0, key)
    assert message in problems[0].message


def test_a_variable_that_could_mean_two_experts_is_a_mistake(desk: Desk) -> None:
    desk.write_user(
        SCRIPTED.replace("my-notes", "a-b_c") + SCRIPTED.replace("my-notes", "a_b-c").replace("[priors.docs]", "[priors.unknown]")
    )
    (problem,) = desk.problems({"SEARCH_ROUTER__EXPERTS__A_B_C__CAP_MS": "1"})
    assert problem.message == "could mean any of experts.a-b_c, experts.a_b-c; set it in a file or by a flag"


# ------------------------------------------------------------------ flags


def test_flags_take_toml_values_strings_quoted_keys_and_the_last_one_wins(desk: Desk) -> None:
    config = desk.load(
        flags=[
            "budget.latency_ms = 5",
            "budget.latency_ms=6",
            "receipts.directory=/var/x=y",
            'workspace.names."/a=b.c"="n"',
            "http={port=1}",
        ]
    ).config
    assert config.budget.latency_ms == 6
    assert config.receipts.directory == "/var/x=y"
    assert config.workspace.names == {"/a=b.c": "n"}
    assert (config.http.port, config.http.host) == (1, "127.0.0.1")


@pytest.mark.parametrize("flag", ["", "=", "budget", "=5", "a b=1", "a\nb=1", "a..b=1", "a" + ".a" * 500 + "=1"])
def test_a_flag_of_another_form_is_a_mistake_that_does_not_show_its_value(desk: Desk, flag: str) -> None:
    assert desk.problems(flags=["fusion.k=1", flag]) == (ConfigProblem("flags", 0, "", "number 2 must look like section.key=value"),)


# ------------------------------------------------------------------ files


def test_a_named_user_file_must_exist(desk: Desk) -> None:
    desk.user_file.unlink()
    message = "does not exist; it was named explicitly, so it must"
    assert desk.problems() == (ConfigProblem(str(desk.user_file), 0, "", message),)
    with pytest.raises(ConfigError) as caught:
        load_config(roots=[desk.root], environ={"SEARCH_ROUTER_HOME": str(desk.home)}, user_file=desk.root / "none.toml")
    assert caught.value.problems == (ConfigProblem(str(desk.root / "none.toml"), 0, "", message),)


def test_the_argument_names_the_user_file_before_the_environment_does(desk: Desk) -> None:
    desk.write_user("fusion.k = 1")
    other = desk.root / "other.toml"
    other.write_text("fusion.k = 2")
    loaded = load_config(roots=[desk.root], environ=desk.environ(), user_file=other)
    assert (loaded.config.fusion.k, loaded.paths.user_config) == (2, other)


def test_a_project_file_that_is_no_regular_file_is_refused_without_waiting(desk: Desk) -> None:
    os.mkfifo(desk.project_file)
    (problem,) = desk.problems()
    assert (problem.source, problem.message) == (str(desk.project_file), "cannot be read: it is a named pipe and not a plain file")


def test_a_root_that_does_not_exist_has_no_project_file(desk: Desk) -> None:
    loaded = load_config(roots=[desk.root / "none"], environ=desk.environ())
    assert loaded.config.fusion.k == 60


def test_without_roots_the_project_file_is_looked_for_in_the_first_configured_root(desk: Desk) -> None:
    desk.write_project("fusion.k = 5")
    desk.write_user(f'workspace.roots = ["{desk.root}"]')
    loaded = load_config(roots=[], environ=desk.environ())
    assert (loaded.config.fusion.k, loaded.root) == (5, desk.root)
    elsewhere = {"SEARCH_ROUTER__WORKSPACE__ROOTS": f'["{desk.home}"]'}
    assert load_config(roots=[], environ=desk.environ(elsewhere)).config.fusion.k == 60


def test_the_packaged_default_is_found_inside_a_zip_file(desk: Desk, tmp_path: Path) -> None:
    package = Path(search_router.__file__).parent
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in (*package.glob("*.py"), *(package / "config").iterdir()):
            if file.is_file():
                out.write(file, Path("search_router") / file.relative_to(package))
    code = (
        "import search_router, pathlib; from search_router.config.loader import load_config\n"
        f"l = load_config(roots=[pathlib.Path({str(desk.root)!r})], environ={desk.environ()!r})\n"
        "print(search_router.__file__, l.hash, l.origin['fusion.k'].line)"
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    where, hash_, line = done.stdout.split()
    assert where.startswith(str(archive))
    loaded = desk.load()
    assert (hash_, int(line)) == (loaded.hash, loaded.origin["fusion.k"].line)
