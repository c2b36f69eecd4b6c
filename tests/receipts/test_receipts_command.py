"""What `search-router receipts` prints and exits with, as docs/receipts.md says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.receipts.stores import StateDirectory

UNKNOWN = "0123456789ab:42"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    home = tmp_path / "home"
    home.mkdir()
    return StateDirectory(home)


def test_the_newest_receipt_is_shown_without_its_id(state: StateDirectory) -> None:
    newest = state.append(3)[-1]
    shown = json.loads(state.run("show", "--last", "--json").output)
    assert shown == json.loads(state.run("show", newest.id, "--json").output)
    assert shown["id"] == newest.id
    assert json.loads(state.run("show", "--last").output)["predicate"]["seq"] == 3


@pytest.mark.parametrize(
    "arguments", [["show"], ["show", UNKNOWN, "--last"], ["verify"], ["list", "--since", "tomorrow"], ["list", "--limit", "0"]]
)
def test_wrong_arguments_are_usage(state: StateDirectory, arguments: list[str]) -> None:
    assert state.run(*arguments).code == 2


def test_what_is_not_there_is_no_verdict_and_no_empty_answer(state: StateDirectory) -> None:
    nothing = state.run("show", "--last")
    assert (nothing.code, nothing.output) == (4, "")
    assert "There is no receipt" in nothing.errors
    assert state.run("verify", UNKNOWN).code == 3  # no key either: nothing was judged
    state.append(1)
    for arguments in (["verify", UNKNOWN], ["verify", "nonsense"], ["verify", "--log", "0123456789ab"]):
        ended = state.run(*arguments)
        assert (ended.code, ended.output) == (3, ""), arguments
        assert "receipt-not-found" in ended.errors
    assert state.run("show", UNKNOWN).code == 4


def test_a_list_goes_back_no_further_than_asked(state: StateDirectory) -> None:
    stored = state.append(3)
    assert [r["id"] for r in json.loads(state.run("list", "--since", "1h", "--limit", "2", "--json").output)] == [
        s.id for s in stored[:0:-1]
    ]
    assert json.loads(state.run("list", "--since", "0s", "--json").output) == []
    assert len(json.loads(state.run("list", "--since", "2020-02-29T12:00+01:00", "--json").output)) == 3
    assert json.loads(state.run("list", "--since", "2100-01-01", "--json").output) == []


@pytest.mark.parametrize("text", [b"{bad", b"[]", b"\xff", b"[" * 100_000])
def test_a_response_that_is_no_answer_is_wrong_usage_and_not_a_wrong_receipt(state: StateDirectory, text: bytes) -> None:
    state.append(1)
    file = state.home / "response.json"
    file.write_bytes(text)
    ended = state.run("verify", "--last", "--response", file)
    assert ended.code == 2
    assert "--response" in ended.errors
