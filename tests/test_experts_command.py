"""`search-router experts`: a system becomes an expert by one line, and a secret's value appears nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from search_router.adapters.remote.presets import load_preset
from search_router.config.loader import load_config
from search_router.errors import ConfigError
from search_router.expert_setup import ExistsAlready, UnknownPreset, add_preset, look_around
from tests.adapters.remote.desk import SERVER
from tests.command_line import run_cli
from tests.scripted_router import write_files

SECRET = "sk-a-very-secret-value-12345"


def environ_of(folder: Path) -> dict[str, str]:
    return {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}


def added(folder: Path, name: str, before: str = "", *, enabled: bool = True, in_project: bool = False) -> str:
    user = folder / "user.toml"
    user.write_text(before)
    (folder / "work").mkdir(exist_ok=True)
    add_preset(name, roots=[folder / "work"], environ=environ_of(folder), enabled=enabled, in_project=in_project)
    return user.read_text()


@pytest.mark.parametrize("before", ["", "# mine\n[budget]\nlatency_ms = 4000\n\n[priors.conceptual] # kept\ngrep = 0.2\n"])
def test_a_preset_is_appended_and_what_was_there_stays(tmp_path: Path, before: str) -> None:
    text = added(tmp_path, "semble", before)
    config = load_config(roots=[tmp_path / "work"], environ=environ_of(tmp_path)).config
    assert config.experts["semble"].enabled
    assert 0.2 in [priors["semble"] for priors in config.priors.values() if "semble" in priors]
    assert all(line in text for line in before.splitlines())
    if before:
        assert config.budget.latency_ms == 4000


def test_for_one_project_the_block_is_off_and_the_projects_file_switches_it_on(tmp_path: Path) -> None:
    added(tmp_path, "serena", enabled=False, in_project=True)
    (tmp_path / "elsewhere").mkdir()
    here = load_config(roots=[tmp_path / "work"], environ=environ_of(tmp_path)).config
    there = load_config(roots=[tmp_path / "elsewhere"], environ=environ_of(tmp_path)).config
    assert (here.experts["serena"].enabled, there.experts["serena"].enabled) == (True, False)
    assert here.experts["serena-references"].enabled


def test_nothing_is_written_when_it_cannot_be_right(tmp_path: Path) -> None:
    with pytest.raises(UnknownPreset, match="there are auggie"):
        added(tmp_path, "nonsense")
    text = added(tmp_path, "semble")
    with pytest.raises(ExistsAlready, match="semble already"):
        add_preset("semble", roots=[tmp_path / "work"], environ=environ_of(tmp_path), enabled=True, in_project=False)
    assert (tmp_path / "user.toml").read_text() == text
    odd = "priors.conceptual.grep = 0.5\n"
    with pytest.raises(ConfigError):
        added(tmp_path, "semble", odd)
    assert (tmp_path / "user.toml").read_text() == odd


def test_programs_and_variables_are_looked_for_and_no_value_is_said() -> None:
    said = look_around(load_preset("claude-context"), {"OPENAI_API_KEY": SECRET})
    assert said[0].startswith("program claude-context-mcp: ")
    assert said[1:] == ["variable OPENAI_API_KEY: is set", "variable MILVUS_ADDRESS: NOT set"]
    assert SECRET not in "".join(said)


def test_a_probe_says_what_came_back_and_what_did_not(tmp_path: Path) -> None:
    write_files(tmp_path / "work")
    command = [sys.executable, "-I", "-S", str(SERVER), "stdio"]
    fields = '{ path = "path", start_line = "start", end_line = "end" }'
    (tmp_path / "user.toml").write_text(
        "[experts.mine]\nkind = 'mcp'\nprecision_class = 'hybrid'\nengine = 'mine'\nintents = ['conceptual']\ncap_ms = 5000\n"
        f"command = {command!r}\ntool = 'search'\narguments = {{ question = '{{question}}' }}\n"
        f"[experts.mine.answer]\nform = 'json'\nitems = 'items'\nfields = {fields}\n[priors.conceptual]\nmine = 0.5\n"
    )
    ended = run_cli(tmp_path, "experts", "probe", "mine", "nobody", "--question", "start", "--root", str(tmp_path / "work"))
    good, unknown = ended.stdout.decode().splitlines()
    assert ended.code == 3
    assert good.startswith("ok    mine: faulty 9.1: 2 hits for 'start' (\"src/app.py:4, notes.txt:1\")")
    assert unknown == "FAULT nobody: is not configured, or switched off"


def test_adding_says_what_is_missing_and_that_the_probe_failed(tmp_path: Path) -> None:
    write_files(tmp_path / "work")
    variables = {"OPENAI_API_KEY": SECRET, "MILVUS_ADDRESS": None}
    ended = run_cli(tmp_path, "experts", "add", "claude-context", "--root", str(tmp_path / "work"), environ=variables)
    said = ended.stdout.decode()
    assert ended.code == 3
    assert "variable MILVUS_ADDRESS: NOT set" in said and "FAULT claude-context: unconfigured" in said
    assert SECRET not in said + ended.stderr + (tmp_path / "user.toml").read_text()


def test_the_command_line_lists_presets_and_refuses_unknown_ones(tmp_path: Path) -> None:
    listed = run_cli(tmp_path, "experts", "presets", "--json")
    assert {"serena", "context7"} <= {preset["name"] for preset in listed.json}
    refused = run_cli(tmp_path, "experts", "add", "nonsense", "--root", str(tmp_path))
    assert refused.code == 2 and "no preset" in refused.stderr
