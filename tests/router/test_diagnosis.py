"""`doctor` names the place that cannot be used, what is wrong with it, and what to do; and it works on in spite of a project's file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from search_router.adapters.local.symbol_store import FILE_NAME
from search_router.config.state import StatePaths
from search_router.router.places import Place, inspect_places
from tests.command_line import run_cli
from tests.privileges import needs_readable_checkout
from tests.repositories import directory_of_nobody, make_repository, unprivileged


def paths_in(home: Path) -> StatePaths:
    own = {"checkpoints": home / "checkpoints", "checkpoint_key": home / "keys" / "c.pem", "pins": home / "pins.txt"}
    return StatePaths(home, home / "receipts", home / "keys" / "k.pem", home / "cache", home / "user.toml", **own)


def faults(home: Path) -> list[Place]:
    return [place for place in inspect_places(paths_in(home)) if place.fault]


def doctor(folder: Path, root: Path, **environ: str) -> tuple[int, list[dict[str, Any]]]:
    ended = run_cli(folder, "doctor", "--json", "--root", str(root), environ=environ)
    return ended.code, [finding for finding in ended.json if not finding["ok"]]


def open_to_all() -> None:
    os.umask(0)


def test_good_places_have_no_fault_and_no_trace_of_the_inspection_is_left(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert faults(home) == []
    assert faults(home) == []
    made = {p.relative_to(home).as_posix(): p.stat().st_mode & 0o777 for p in home.rglob("*") if p.is_dir()}
    assert made == {"keys": 0o700, "receipts": 0o700, "checkpoints": 0o700, "cache": 0o700}
    assert not list(home.rglob(".probe*"))


@pytest.mark.parametrize(("what", "name"), [("key", "keys"), ("receipts", "receipts"), ("checkpoints", "checkpoints"), ("cache", "cache")])
def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path, what: str, name: str) -> None:
    blocking = tmp_path / "home" / name
    blocking.parent.mkdir()
    blocking.write_text("not a directory")
    (fault,) = faults(tmp_path / "home")
    assert (fault.what, fault.path) == (what, blocking)
    assert fault.fault == f"{blocking} is not a directory"
    assert f"Move {blocking} away" in fault.remedy


def test_a_file_in_the_place_of_the_home_is_named_for_every_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    assert [(f.what, f.fault) for f in faults(home)] == [
        (what, f"{home} is not a directory") for what in ("state", "key", "receipts", "checkpoints", "cache")
    ]


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cache").symlink_to(tmp_path / "nowhere" / "at all")
    (fault,) = faults(tmp_path / "home")
    assert (fault.what, fault.path) == ("cache", tmp_path / "home" / "cache")


def test_what_blocks_the_index_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home" / "cache" / FILE_NAME).mkdir(parents=True)
    (fault,) = faults(tmp_path / "home")
    assert (fault.what, fault.path) == ("index", tmp_path / "home" / "cache" / FILE_NAME)
    assert "Move" in fault.remedy


@needs_readable_checkout
@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300])
@pytest.mark.parametrize("name", ["receipts", "cache", "keys"])
def test_a_directory_that_may_not_be_used_is_named(name: str, mode: int) -> None:
    with directory_of_nobody() as folder, unprivileged(folder):
        place = folder / "home" / name
        place.mkdir(parents=True)
        place.chmod(mode)
        try:
            (fault,) = faults(folder / "home")
        finally:
            place.chmod(0o700)
        assert fault.path == place
        assert fault.fault == "it cannot be used: Permission denied"
        assert f"Make {place} a directory that user {os.geteuid()} can read, write and enter" in fault.remedy


def test_the_command_names_the_cache_and_ends_with_one(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    assert doctor(tmp_path, root) == (0, [])
    for path in sorted((tmp_path / "home" / "cache").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "home" / "cache").rmdir()
    (tmp_path / "home" / "cache").write_text("")
    code, (fault,) = doctor(tmp_path, root)
    assert code == 1
    assert fault["what"] == "cache directory"
    assert f"{tmp_path / 'home' / 'cache'} is not a directory" in fault["found"]


def test_the_command_names_key_and_receipts_too(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "receipts").write_text("")
    (tmp_path / "key.pem").write_text("no key")
    (tmp_path / "key.pem").chmod(0o600)
    code, found = doctor(tmp_path, root)
    assert (code, [f["what"] for f in found]) == (1, ["receipts directory", "receipt-store-unavailable"])
    (tmp_path / "home" / "receipts").unlink()
    code, found = doctor(tmp_path, root, SEARCH_ROUTER_KEY=str(tmp_path / "key.pem"))
    assert (code, [f["what"] for f in found]) == (1, ["receipt-key-unusable"])
    assert all(f["remedy"] for f in found)


def test_a_wrong_line_in_the_projects_file_is_named_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    (root / ".search-router.toml").write_text('[budget]\nlatency_ms = "soon"\n')
    ended = run_cli(tmp_path, "doctor", "--json", "--root", str(root))
    (fault,) = [f for f in ended.json if not f["ok"]]
    assert ended.code == 1
    assert fault["what"] == "project file"
    assert f"{root / '.search-router.toml'}:2: budget.latency_ms" in fault["found"]
    assert "SEARCH_ROUTER_PROJECT_CONFIG=off" in fault["remedy"]
    assert {"receipts", "expert grep", "project repo"} <= {f["what"] for f in ended.json}
    checked = run_cli(tmp_path, "config", "check", "--json", "--root", str(root))
    assert (checked.code, [p["line"] for p in checked.json["problems"]]) == (5, [2])


def test_other_commands_fail_and_say_how_to_go_on_without_the_projects_file(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "zebra = 1\n"})
    (root / ".search-router.toml").write_text("[budget\n")
    failed = run_cli(tmp_path, "search", "zebra", "--json", "--root", str(root))
    assert (failed.code, failed.stdout) == (5, b"")
    assert f"{root / '.search-router.toml'}:1: " in failed.stderr
    assert (
        f"{root / '.search-router.toml'} comes with the repository; SEARCH_ROUTER_PROJECT_CONFIG=off goes on without it." in failed.stderr
    )
    without = {"SEARCH_ROUTER_PROJECT_CONFIG": "off"}
    answered = run_cli(tmp_path, "search", "zebra", "--json", "--root", str(root), environ=without)
    assert answered.code == 0
    assert "was not read: SEARCH_ROUTER_PROJECT_CONFIG is off" in answered.stderr
    (root / ".search-router.toml").unlink()
    wrong = run_cli(tmp_path, "search", "zebra", "--root", str(root), environ={"SEARCH_ROUTER_PROJECT_CONFIG": "perhaps"})
    assert wrong.code == 5
    assert "SEARCH_ROUTER_PROJECT_CONFIG: must be on or off" in wrong.stderr
    assert "comes with the repository" not in wrong.stderr


def test_every_state_directory_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "zebra = 1\n"})
    assert run_cli(tmp_path, "search", "zebra", "--root", str(root), preexec=open_to_all).code == 0
    assert run_cli(tmp_path, "search", "when was zebra introduced", "--root", str(root), preexec=open_to_all).code in (0, 1)
    home = tmp_path / "home"
    modes = {p.relative_to(tmp_path).as_posix(): p.stat().st_mode & 0o777 for p in (home, *home.rglob("*")) if p.is_dir()}
    assert {"home", "home/cache", "home/keys", "home/receipts"} <= set(modes)
    assert set(modes.values()) == {0o700}, modes
