"""Lists: filters and pages over several logs, nothing lost and nothing twice; and what belongs to others is nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from search_router.console import receipt_list
from search_router.console.receipt_list import ReceiptFilter, ReceiptList
from search_router.errors import ReceiptNotFound
from search_router.mcp_http import principal_of
from search_router.receipts.body import Build, ReceiptContext
from search_router.receipts.keys import load_or_create_key
from search_router.receipts.log import log_ids
from search_router.receipts.store import open_store
from search_router.schema import Answer, Status
from tests.console.consoles import API_PATHS, PATHS, TOKEN, console, served
from tests.receipts.samples import make_answer
from tests.scripted_router import hit, scripted_router

pytestmark = pytest.mark.anyio
OWN = principal_of(TOKEN)
ALL = ReceiptFilter()


async def write(directory: Path, key: Path, plan: list[tuple[str, str, Status]], logs: int = 2) -> list[str]:
    """Receipts of (principal, operation, status) in turn over so many logs; their ids in order of time."""
    import itertools
    import secrets
    from contextlib import AsyncExitStack

    from search_router.canonical import tolerant_digest
    from search_router.receipts.body import digest_answer, prepare_statement
    from search_router.receipts.statement import Digest

    signing, clock = load_or_create_key(key), itertools.count(1_700_000_000_000_000, 1_000)
    ids: list[str] = []
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(
                open_store(directory, signing, clock=lambda: next(clock) // 3 * 3, nonce=lambda: secrets.token_hex(16))
            )
            for _ in range(logs)
        ]
        for number, (principal, operation, status) in enumerate(plan):
            answer: Answer = make_answer(1, status=status)
            context = ReceiptContext(Build(), "1", 1, principal=principal, operation=operation)  # type: ignore[arg-type] - one of the words, from a table
            made = prepare_statement(answer, digest_answer(answer), Digest(*tolerant_digest({})), context, signing)
            ids.append((await stores[number % logs].append(made)).id)
    return ids


def all_pages(listed: ReceiptList, only: ReceiptFilter = ALL, limit: int = 7) -> list[str]:
    """Every page after the other, as somebody who presses Older, and loads again while the search goes on."""
    found: list[str] = []
    before: str | None = None
    for _ in range(10_000):
        page = listed.page(only, limit, before)
        assert len(page.rows) <= limit and page.looked_at <= receipt_list.LOOKED_AT
        found += [row.id for row in page.rows]
        if page.before is None and not page.still_searching:
            return found
        before = page.before or (found[-1] if found else None)
    raise AssertionError("the pages have no end")


PLAN = [
    (OWN if n % 5 == 0 else ("local" if n % 2 else "token:00000000"), "fetch" if n % 3 == 0 else "search", list(Status)[n % 4])
    for n in range(120)
]


async def test_pages_over_several_logs_lose_nothing_and_show_nothing_twice(tmp_path: Path) -> None:
    ids = await write(tmp_path / "receipts", tmp_path / "key.pem", PLAN, logs=3)
    assert len(log_ids(tmp_path / "receipts")) == 3
    whole = ReceiptList(tmp_path / "receipts", None)
    for limit in (1, 7, 40, 119, 120, 121, 999):
        found = all_pages(whole, limit=limit)
        assert len(found) == len(set(found)) == len(PLAN) and set(found) == set(ids)
    status = Status(PLAN[0][2])
    for only, keep in (
        (ReceiptFilter(status=status.value), [p[2] is status for p in PLAN]),
        (ReceiptFilter(operation="fetch"), [p[1] == "fetch" for p in PLAN]),
        (ReceiptFilter(expert="grep"), [True] * len(PLAN)),
        (ReceiptFilter(expert="history"), [False] * len(PLAN)),
        (ReceiptFilter(intent="typed-symbol", status=status.value), [p[2] is status for p in PLAN]),
        (ReceiptFilter(intent="docs"), [False] * len(PLAN)),
    ):
        assert set(all_pages(whole, only)) == {i for i, kept in zip(ids, keep, strict=True) if kept}, only
    times = [row.time_us for row in whole.page(ReceiptFilter(), 999, None).rows]
    assert times == sorted(times, reverse=True)


async def test_the_last_page_does_not_offer_an_older_one(tmp_path: Path) -> None:
    await write(tmp_path / "receipts", tmp_path / "key.pem", PLAN[:10])
    page = ReceiptList(tmp_path / "receipts", None).page(ReceiptFilter(), 10, None)
    assert (len(page.rows), page.before) == (10, None)


async def test_a_page_reads_a_bounded_number_of_receipts_and_goes_on_from_there(tmp_path: Path) -> None:
    await write(tmp_path / "receipts", tmp_path / "key.pem", [("local", "search", Status.ANSWERED)] * 50)
    whole = ReceiptList(tmp_path / "receipts", None, read=30)
    first = whole.page(ReceiptFilter(operation="fetch"), 10, None)
    assert (first.rows, first.looked_at) == ((), 30) and first.before is not None
    second = whole.page(ReceiptFilter(operation="fetch"), 10, first.before)
    assert (second.looked_at, second.before) == (20, None)
    assert len(all_pages(whole, limit=40)) == 50


async def test_a_principal_pages_through_its_own_receipts_alone_and_cannot_tell_where_others_are(tmp_path: Path) -> None:
    ids = await write(tmp_path / "receipts", tmp_path / "key.pem", PLAN, logs=3)
    own = {i for i, p in zip(ids, PLAN, strict=True) if p[0] == OWN}
    mine = ReceiptList(tmp_path / "receipts", OWN)
    for limit in (1, 5, 24, 999):
        assert sorted(all_pages(mine, limit=limit)) == sorted(own)
    page = mine.page(ReceiptFilter(), 5, None)
    assert page.looked_at == 5 and page.before in own
    assert set(all_pages(mine, ReceiptFilter(operation="fetch"))) == {
        i for i, p in zip(ids, PLAN, strict=True) if p[0] == OWN and p[1] == "fetch"
    }
    others = next(i for i in ids if i not in own)
    with pytest.raises(ReceiptNotFound) as foreign:
        mine.page(ReceiptFilter(), 5, others)
    with pytest.raises(ReceiptNotFound) as missing:
        mine.page(ReceiptFilter(), 5, "0" * 12 + ":1")
    assert str(foreign.value).replace(others, "") == str(missing.value).replace("0" * 12 + ":1", "")


async def test_own_receipts_are_found_part_by_part_and_new_ones_come_first(tmp_path: Path) -> None:
    many = [("local", "search", Status.ANSWERED)] * 150
    first = [(OWN, "search", Status.ANSWERED)]
    ids = await write(tmp_path / "receipts", tmp_path / "key.pem", [*first, *many, *first], logs=1)
    mine = ReceiptList(tmp_path / "receipts", OWN, searched=120)
    page = mine.page(ReceiptFilter(), 10, None)
    assert ([row.id for row in page.rows], page.still_searching, page.looked_at) == ([ids[-1]], True, 1)
    page = mine.page(ReceiptFilter(), 10, None)
    assert ([row.id for row in page.rows], page.still_searching) == ([ids[-1], ids[0]], False)
    later = await write(tmp_path / "receipts", tmp_path / "key.pem", [*first, ("local", "search", Status.ANSWERED)], logs=1)
    assert set(all_pages(mine)) == {ids[0], ids[-1], later[0]}


@pytest.mark.network
async def test_what_others_asked_is_in_no_page_count_chart_or_filter_of_a_principal(tmp_path: Path) -> None:
    """One store: first the owner and another token ask, then a token's holder looks, before and after asking one question."""
    foreign = {"alien": [{"when": "*", "hits": [hit()]}], "other": [{"when": "*", "fault": "crashed"}]}
    flags = ['enrich.paper_slug="secret-experiment"']
    hidden: list[str] = []
    async with scripted_router(tmp_path, foreign, flags=flags) as router:
        for principal in ("local", "token:00000000") * 3:
            answer = await router.search({"question": "start the app", "intent": "history"}, session="s-foreign", principal=principal)
            assert answer.receipt is not None
            hidden.append(answer.receipt.id)
        alien_hash = router.config_ref.hash[:12]
    words = (*hidden, "secret-experiment", "alien", "s-foreign", "token:00000000", alien_hash)

    own = {"mine": [{"when": "*", "hits": [hit()]}]}
    async with scripted_router(tmp_path, own) as router, served(router, TOKEN) as it:
        await it.log_in()
        for asked in (0, 1):
            if asked:
                assert (await it.ask("start the app")).status_code == 200
            slug = "secret-experiment"
            more = (f"/console/experiments?paper_slug={slug}", f"/api/experiments?paper_slug={slug}", "/console/receipts?expert=alien")
            for path in (*PATHS, *API_PATHS, *more):
                text = (await it.web.get(path)).text.replace(f'value="{slug}"', "").replace("drift", "")
                for word in words:
                    named = (word == slug and slug in path) or (word == "alien" and word in path)
                    assert named or word not in told_of_requests(path, text), (path, word)
            overview = (await it.web.get("/api/overview")).json()
            counted = ("requests", "receipts", "receipted", "calls")
            assert [overview[name] for name in counted] == [asked] * 4
            assert sum(c["count"] for c in overview["per_hour"]) == asked
            told = (await it.web.get(f"/api/experiments?paper_slug={slug}")).json()
            assert (told["requests"], told["calls"], told["arms"], told["configs"], told["created_us"]) == (0, 0, [], [], None)
            listed = (await it.web.get("/api/receipts")).json()
            assert (len(listed["rows"]), listed["looked_at"], listed["before"], listed["still_searching"]) == (asked, asked, None, False)
            assert (await it.web.get("/api/doctor/repos")).json()["store"] is None
        for receipt_id in hidden:
            for path in (f"/console/receipts/{receipt_id}", f"/api/receipts/{receipt_id}", f"/api/receipts?before={receipt_id}"):
                assert (await it.web.get(path)).status_code == 404
            assert (await it.web.get(f"/console/receipts/{receipt_id}/envelope.json")).status_code == 404
        comparison = await it.web.get(f"/api/experiments/comparison?paper_slug={slug}&a={alien_hash}&b={alien_hash}")
        assert (comparison.json()["arms_a"], comparison.json()["arms_b"]) == ([], [])
    async with scripted_router(tmp_path, own) as router, served(router) as it:
        overview = (await it.web.get("/api/overview")).json()
        assert (overview["requests"], overview["receipts"]) == (7, 7), "and the owner sees all"


def told_of_requests(path: str, text: str) -> str:
    """What a page says but for the notes about the configuration's drift, which are the server's and no principal's."""
    if path.startswith("/api/"):
        told: Any = json.loads(text)
        return json.dumps({**told, "notes": []})
    head, mark, rest = text.partition('<ul class="notes"')
    return head + rest.partition("</ul>")[2] if mark else text


@pytest.mark.network
async def test_a_new_receipt_is_on_the_next_page_load(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        for count in (1, 2, 3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.router.search, {"question": "start the app"})
            assert (await it.web.get("/api/overview")).json()["requests"] == count
            assert len((await it.web.get("/api/receipts")).json()["rows"]) == count
