"""Requests on a store in trouble, to the end: an error and no answer, and every answer that did leave has its receipt in the audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from search_router.errors import StoreUnavailable
from tests.command_line import run_cli
from tests.receipts.disks import filled, mounted_disk, needs_mount, read_only
from tests.receipts.stores import StateDirectory
from tests.repositories import make_repository
from tests.scripted_router import hit, scripted_router

SCRIPT = {"a": [{"hits": [hit()]}]}


@needs_mount
@pytest.mark.anyio
@pytest.mark.behaviour("no-receipt-no-answer")
async def test_on_a_full_disk_requests_fail_and_all_answers_that_left_are_in_the_audit() -> None:
    with mounted_disk(4) as disk:
        client: list[str] = []
        refused = 0
        async with scripted_router(disk, SCRIPT) as router:

            async def ask(times: int) -> int:
                failed = 0
                for number in range(times):
                    try:
                        answer = await router.search({"question": f"where is start {number}"})
                    except StoreUnavailable as error:
                        assert "has room" in error.remedy
                        failed += 1
                    else:
                        client.append(answer.model_dump_json(by_alias=True) + "\n")
                return failed

            assert await ask(3) == 0
            with filled(disk, but=4096):
                refused = await ask(30)
            assert await ask(3) == 0
            state = StateDirectory(disk / "home")
            (state.home / "client.jsonl").write_text("".join(client))

        assert 0 < refused <= 30
        ended = state.run("audit", "--against", state.home / "client.jsonl", "--json")
        found = json.loads(ended.output)
        assert (ended.code, found["verdict"], found["emission_pm"], found["found"]) == (0, "valid", 1000, 36 - refused), ended
        assert state.run("verify", "--all").code == 0


@needs_mount
@pytest.mark.heavy
@pytest.mark.behaviour("no-receipt-no-answer")
def test_from_the_command_line_what_is_printed_is_what_the_audit_finds(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "def zebra_one():\n    return 1\n"})
    with mounted_disk(8) as disk:
        at = {"SEARCH_ROUTER_HOME": str(disk / "home")}

        def search() -> tuple[int, bytes, str]:
            ended = run_cli(tmp_path, "search", "zebra_one", "--json", "--root", str(root), environ=at)
            return ended.code, ended.stdout, ended.stderr

        answers = [search()]
        with read_only(disk):
            code, printed, said = search()
            assert (code, printed) == (4, b"") and "search-router: receipt-store-unavailable: " in said
        answers.append(search())
        (tmp_path / "client.jsonl").write_text("".join(json.dumps(json.loads(printed)) + "\n" for _, printed, _ in answers))

        ended = run_cli(tmp_path, "receipts", "audit", "--against", "client.jsonl", "--json", environ=at)
        assert (ended.code, ended.json["emission_pm"], ended.json["found"]) == (0, 1000, 2), ended
