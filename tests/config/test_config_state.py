"""Where state lives, what is said about drift, and what `config show` shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from search_router.config.drift import MAX_ROOTS, note_drift
from search_router.config.keys import KeyPath, is_secret, show_briefly, show_value
from search_router.config.layers import LayerName
from search_router.config.loader import ShownValue, explain, load_config
from search_router.config.schema import ReceiptsConfig
from search_router.config.state import StatePaths, find_state_paths
from tests.config.conftest import Desk


def _receipts(directory: str = "", key: str = "") -> ReceiptsConfig:
    return ReceiptsConfig(directory=directory, key=key, question="digest", max_wait_ms=1)


# ------------------------------------------------------------------ places


def test_with_a_home_everything_is_below_it_and_nothing_is_created(desk: Desk) -> None:
    home = desk.home
    assert desk.load().paths == StatePaths(
        home=home,
        receipts=home / "receipts",
        key=home / "keys" / "receipt-ed25519.pem",
        cache=home / "cache",
        user_config=desk.user_file,
        checkpoints=home / "checkpoints",
        checkpoint_key=home / "keys" / "checkpoint-ed25519.pem",
        pins=home / "pinned-keys.txt",
    )
    assert not home.exists()


def test_the_platform_decides_where_nothing_is_named(tmp_path: Path) -> None:
    code = (
        "import os, pathlib; from search_router.config.loader import load_config\n"
        "p = load_config(roots=[], environ=dict(os.environ)).paths\n"
        "print(p.home, p.receipts, p.key, p.cache, p.user_config, sep='\\n')"
    )
    (tmp_path / "cwd").mkdir()
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    environ |= {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "CACHE", "CONFIG")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path / "cwd", capture_output=True, text=True, timeout=60, check=True
    )
    data = tmp_path / "DATA" / "search-router"
    expected = (
        data,
        data / "receipts",
        data / "keys" / "receipt-ed25519.pem",
        tmp_path / "CACHE/search-router",
        tmp_path / "CONFIG/search-router/config.toml",
    )
    assert done.stdout.split() == [str(path) for path in expected]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cwd"]


def test_the_key_is_named_by_variable_before_configuration_before_default(tmp_path: Path) -> None:
    environ = {"SEARCH_ROUTER_HOME": str(tmp_path)}
    user = tmp_path / "u"
    assert find_state_paths(_receipts(key="/k/a.pem"), environ, user).key == Path("/k/a.pem")
    assert find_state_paths(_receipts(key="/k/a.pem"), environ | {"SEARCH_ROUTER_KEY": "/k/b.pem"}, user).key == Path("/k/b.pem")
    assert find_state_paths(_receipts(key="/k/a.pem"), environ | {"SEARCH_ROUTER_KEY": ""}, user).key == Path("/k/a.pem")


def test_relative_paths_in_the_configuration_are_below_home_and_a_tilde_is_the_user(tmp_path: Path) -> None:
    paths = find_state_paths(_receipts("log/../r", "~/k.pem"), {"SEARCH_ROUTER_HOME": str(tmp_path)}, tmp_path / "u")
    assert (paths.receipts, paths.key) == (tmp_path / "r", Path.home() / "k.pem")


# ------------------------------------------------------------------ hash


def test_the_hash_does_not_depend_on_key_order_layer_or_spelling(desk: Desk) -> None:
    desk.write_user("[budget]\nlatency_ms = 5\nmax_experts = 2\n[priors.docs]\ngrep = 1\n")
    one = desk.load()
    desk.write_user("priors.docs.grep = 1.0\n[budget]\nmax_experts = 2\nlatency_ms = 5")
    two = desk.load()
    desk.write_user("")
    three = desk.load({"SEARCH_ROUTER__BUDGET__MAX_EXPERTS": "2", "SEARCH_ROUTER__PRIORS__DOCS__GREP": "1"}, ["budget.latency_ms=5"])
    assert one.hash == two.hash == three.hash
    assert len(one.hash) == 64
    assert one.hash != desk.load().hash


def test_the_hash_changes_with_every_value(desk: Desk) -> None:
    hashes = {
        desk.load(flags=flags).hash for flags in ([], ["priors.docs.grep=0.801"], ["gate.one_expert_suffices=false"], ["http.port=1"])
    }
    assert len(hashes) == 4


# ------------------------------------------------------------------ drift


def test_drift_is_said_once_and_names_what_changed(desk: Desk) -> None:
    first = desk.load()
    assert note_drift(first.paths, first) is None
    assert note_drift(first.paths, first) is None

    desk.write_project("fusion.k = 61\nbudget.latency_ms = 5\nworkspace.names = { a = 'b' }")
    second = desk.load()
    said = note_drift(second.paths, second)
    assert said == (
        f"The configuration of search-router@1.0.0 changed since the last run in {desk.root}, in workspace.names.a, budget.latency_ms, "
        f"fusion.k, workspace.names (hash {first.hash[:12]} is now {second.hash[:12]})."
    )
    assert note_drift(second.paths, second) is None
    said = note_drift(first.paths, first)
    assert said is not None
    assert "budget.latency_ms" in said


def test_drift_of_the_version_is_said_and_no_more_than_five_keys_are_named(desk: Desk) -> None:
    first = desk.load()
    note_drift(first.paths, first)
    changes = ["[output]", "text_characters=500", "snippet_lines=1", "fetch_characters=500"]
    changes += ["[fusion]", "k=1", "candidates=1", "[budget]", "max_experts=1"]
    desk.write_user("\n".join(['version = "search-router@1.1.0"', *changes]))
    second = desk.load()
    said = note_drift(second.paths, second)
    assert said is not None
    assert said.startswith("The configuration from search-router@1.0.0 to search-router@1.1.0 changed since the last run")
    assert "budget.max_experts, fusion.k, fusion.candidates, output.text_characters, output.snippet_lines and 1 more" in said


def test_each_workspace_has_its_own_last_run_and_only_the_newest_are_kept(desk: Desk) -> None:
    for number in range(MAX_ROOTS + 3):
        root = desk.root / str(number)
        loaded = load_config(roots=[root], environ=desk.environ(), flags=[f"fusion.k={number + 1}"])
        assert note_drift(loaded.paths, loaded) is None
    kept = json.loads((desk.home / "last-run.json").read_text())["roots"]
    assert list(kept) == [str(desk.root / str(number)) for number in range(3, MAX_ROOTS + 3)]


def test_the_file_holds_no_values_and_is_the_owners_alone(desk: Desk) -> None:
    loaded = desk.load(flags=["receipts.directory=/very/private/place"])
    note_drift(loaded.paths, loaded)
    file = desk.home / "last-run.json"
    assert "private" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in desk.home.iterdir()] == ["last-run.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"roots": 5}', b"\xff", b"[" * 99_999, b'{"roots": {"ROOT": 5}}', b'{"roots": {"ROOT": {"version": 1}}}'],
)
def test_a_damaged_file_counts_as_no_last_run_and_is_mended(desk: Desk, content: bytes) -> None:
    desk.home.mkdir()
    (desk.home / "last-run.json").write_bytes(content.replace(b"ROOT", str(desk.root).encode()))
    first, second = desk.load(), desk.load(flags=["fusion.k=1"])
    assert note_drift(first.paths, first) is None
    assert note_drift(second.paths, second) is not None


def test_where_nothing_can_be_written_nothing_is_said_and_nothing_fails(desk: Desk) -> None:
    desk.home.write_text("a file where the directory should be")
    loaded = desk.load()
    assert note_drift(loaded.paths, loaded) is None


# ------------------------------------------------------------------ showing


def test_every_value_is_explained_with_its_place(desk: Desk) -> None:
    desk.write_user("[receipts]\nkey = '/k.pem'")
    rows = explain(desk.load({"SEARCH_ROUTER__BUDGET__LATENCY_MS": "5"}))
    assert ShownValue("budget.latency_ms", 5, LayerName.ENVIRONMENT, "SEARCH_ROUTER__BUDGET__LATENCY_MS", 0) in rows
    assert ShownValue("receipts.key", "/k.pem", LayerName.USER, str(desk.user_file), 2) in rows
    assert rows[0].key == "version"
    assert rows[0].line > 0
    assert len({row.key for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (("receipts", "key"), False),
        (("budget", "latency_ms"), False),
        (("llm", "api_key"), True),
        (("experts", "x", "env", "API_TOKEN"), True),
        (("experts", "x", "secrets", "a"), True),
        (("experts", "x", "passwords", 0), True),
        (("experts", "keyword", "cap_ms"), False),
        (("priors", "docs", "keyword"), False),
        (("workspace", "groups", "key-team"), False),
    ],
)
def test_a_secret_is_told_by_its_key_and_never_shown(path: KeyPath, secret: bool) -> None:
    assert is_secret(path) is secret
    assert show_briefly(path, "x1") == ("a value that is not shown" if secret else '"x1"')


def test_values_are_shown_as_toml_writes_them() -> None:
    assert show_value({"a": [1, 0.5, True, 'q"'], "b c": {}}) == '{a = [1, 0.5, true, "q\\""], "b c" = {}}'
    assert show_briefly(("a",), "x" * 100) == '"' + "x" * 59 + "…"


def test_what_does_not_print_is_escaped() -> None:
    assert show_value("\x1b[2J \x9b \u202e \x7f \U000e0001 é 日") == '"\\u001b[2J \\u009b \\u202e \\u007f \\U000e0001 é 日"'


def test_where_a_server_listens_is_no_drift(desk: Desk) -> None:
    plain, elsewhere = desk.load(), desk.load(flags=["http.port=0"])
    assert note_drift(plain.paths, plain) is None
    assert note_drift(elsewhere.paths, elsewhere) is None
    assert note_drift(plain.paths, plain) is None
