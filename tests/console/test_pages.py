"""Every page and every path of the API over a real server, with receipts of every kind."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from search_router.console.guard import HEADERS
from search_router.receipts.log import log_ids, log_path
from search_router.receipts.rotate import rotate_key
from tests.console.consoles import API_PATHS, BIDI, NASTY, PATHS, Served, console, read_page, tampered

pytestmark = [pytest.mark.anyio, pytest.mark.network]
HOSTILE = (
    NASTY,
    "where <b>is</b> 'start' \"here\"",
    BIDI + "שלום",
    "nul\0inside",
    "x" * 4097,
    "",
    "lone \udcff surrogate",
    "\u0000",
    "{{ config }}{% raw %}",
    "a\r\nSet-Cookie: x=y",
)


def assert_dressed(answer: httpx2.Response) -> None:
    """Never a 500, always the headers; a page has nothing that runs."""
    assert answer.status_code < 500, (answer.url, answer.text[:500])
    for name, value in HEADERS.items():
        if name == "Cache-Control" and answer.url.path.endswith((".css", ".svg")):
            continue
        assert answer.headers.get(name) == value, (answer.url, answer.status_code, name)
    if answer.headers.get("content-type", "").startswith("text/html"):
        page = read_page(answer.text)
        assert page.dangers == [], answer.url
        assert len(page.ids) == len(set(page.ids)), answer.url


async def ask_for_every_status(it: Served) -> dict[str, str]:
    """Status to the id of a receipt that ended so."""
    router, made = it.router, dict[str, str]()
    for raw in (
        {"question": "start the app"},
        {"question": "nothing of the kind"},
        {"question": "start", "surprise": 1},
        {"question": ""},
        {"question": "start", "scope": {"project": "no-such-project"}},
        {"question": "which commit did it"},
        *({"question": q} for q in HOSTILE),
    ):
        answer = await router.search(raw, session=NASTY[:100], principal="local")
        assert answer.receipt is not None
        made[answer.status.value] = answer.receipt.id
        if answer.evidence:
            fetched = await router.fetch({"ids": [e.id for e in answer.evidence] + [NASTY]})
            assert fetched.receipt is not None
            made["fetch"] = fetched.receipt.id
            outcome = {"receipt": answer.receipt.id, "outcome": "success", "evidence": [NASTY]}
            told = await router.report_outcome(outcome, session=NASTY[:100], principal="local", owns=True)
            assert told.receipt is not None
            made["outcome"] = told.receipt.id
    with anyio.move_on_after(0.3):
        await router.search({"question": "hang now"})
    return made


async def test_every_page_and_every_path_of_the_api_answers_over_receipts_of_every_kind(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        made = await ask_for_every_status(it)
        listed = (await it.web.get("/api/receipts?limit=999")).json()
        statuses = {row["status"] for row in listed["rows"]}
        assert {"answered", "rejected", "cancelled", "declined"} <= statuses, statuses
        assert {"fetch", "outcome"} <= made.keys()
        for path in (*PATHS, *API_PATHS, "/console/console.css", "/console/icon.svg", "/"):
            answer = await it.web.get(path, follow_redirects=True)
            assert answer.status_code == 200, path
            assert_dressed(answer)
        for row in listed["rows"]:
            for path in (f"/console/receipts/{row['id']}", f"/api/receipts/{row['id']}", f"/console/receipts/{row['id']}/envelope.json"):
                answer = await it.web.get(path)
                assert answer.status_code == 200, (path, answer.text[:300])
                assert_dressed(answer)
                assert path.endswith(".json") or "valid" in answer.text
        overview = (await it.web.get("/api/overview")).json()
        assert overview["requests"] == overview["receipted"] == overview["receipts"] == len(listed["rows"])
        assert {c["name"] for c in overview["failures"]} >= {"bad: crashed"}
        assert sum(c["count"] for c in overview["per_hour"]) == overview["requests"]


async def test_a_page_tells_what_the_receipt_says_and_the_download_is_the_stored_envelope(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        answer = await it.router.search({"question": "start the app"})
        assert answer.receipt is not None
        page = (await it.web.get(f"/console/receipts/{answer.receipt.id}")).text
        assert "Verification: <strong>valid</strong>" in page
        for words in ("good#1", "crashed", "Timeline of the request", "notes.txt", "&lt;script&gt;alert(1)&lt;/script&gt;"):
            assert words in page, words
        proof = await it.web.get(f"/console/receipts/{answer.receipt.id}/envelope.json")
        assert proof.headers["content-disposition"].startswith('attachment; filename="receipt-')
        assert proof.json() == answer.receipt.envelope
        view = (await it.web.get(f"/api/receipts/{answer.receipt.id}")).json()
        assert (view["verdict"]["verdict"], view["statement"]["predicate"]["status"]) == ("valid", "answered")


async def test_a_hostile_question_in_the_form_leaves_a_receipt_and_runs_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        fields = {"form_token": await it.form_token(), "intent": "", "project": "", "limit": ""}
        odd = {"intent": NASTY[:20], "project": NASTY, "limit": "9" * 30}
        for question in HOSTILE:
            for more in ({}, odd):
                encoded = "&".join(f"{k}={quoted(v)}" for k, v in {**fields, **more, "question": question}.items())
                headers = {"content-type": "application/x-www-form-urlencoded"}
                answer = await it.web.post("/console/search", content=encoded.encode(), headers=headers)
                assert answer.status_code == 200, question
                assert_dressed(answer)
                assert re.search(r"/console/receipts/[0-9a-f]{12}:\d+", answer.text)
        assert (await it.web.get("/api/receipts")).json()["looked_at"] == 2 * len(HOSTILE)


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text.encode("utf-8", "surrogateescape"), safe="")


async def test_the_search_form_narrows_by_class_project_and_number(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        (project,) = it.router.workspace.projects
        page = await it.ask("start the app", intent="identifier", project=project.id, limit="1")
        assert page.text.count("<li><p><strong>") == 1 and "identifier in" in page.text
        assert f"<option selected>{project.id}</option>" in page.text
        rows = (await it.web.get("/api/receipts")).json()["rows"]
        assert [(r["intent"], r["items"], r["principal"]) for r in rows] == [("identifier", 1, "local")]


async def test_file_names_that_are_not_utf_8_and_left_out_files_are_shown(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    odd = str(tmp_path / "work").encode() + b"/caf\xe9<i>.py"
    Path(odd.decode("utf-8", "surrogateescape")).write_bytes(b"def start():\n    pass\n")
    (tmp_path / "work" / "<img onerror=x>.bin").write_bytes(b"\0" * 100)
    flags = ["experts.grep.enabled=true", 'gate.default_set=["grep"]']
    async with console(tmp_path, flags=flags) as it:
        asked = await it.ask("start", intent="identifier")
        assert_dressed(asked)
        assert "caf\\xe9&lt;i&gt;.py" in asked.text
        for path in (*PATHS, *API_PATHS):
            answer = await it.web.get(path)
            assert answer.status_code == 200, path
            assert_dressed(answer)
        repositories = (await it.web.get("/console/repositories")).text
        assert "&lt;img onerror=x&gt;.bin" in repositories
        (project,) = (await it.web.get("/api/doctor/repos")).json()["projects"]
        assert project["left_out"] == len(project["files_left_out"]) > 0


async def test_a_key_rotation_has_a_page(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        await it.router.search({"question": "start the app"})
        paths = it.router.loaded.paths
    rotate_key(paths.receipts, paths.key, paths.pins, clock=lambda: time.time_ns() // 1000, nonce=lambda: secrets.token_hex(16))
    async with console(tmp_path) as it:
        rows = (await it.web.get("/api/receipts")).json()["rows"]
        (rotation,) = [row for row in rows if row["status"] == "rotated"]
        page = await it.web.get(f"/console/receipts/{rotation['id']}")
        assert page.status_code == 200 and "<strong>valid</strong>" in page.text
        assert_dressed(page)
        assert (await it.web.get("/console/receipts")).text.count("rotated") >= 1


PREDICATES: tuple[Any, ...] = (
    None,
    [],
    "text",
    {"budget": "x", "experts": {"a": 1}, "items": 7, "stages": [1, None], "plan": [], "notes": {"a": 1}},
    {"budget": {"used_us": -1, "latency_us": 10**400}, "experts": [{"expert": 1, "server": []}], "items": [{"sources": [3]}]},
    {"experts": [{"expert": NASTY, "status": NASTY, "error": NASTY, "latency_us": 1}] * 300, "notes": [NASTY] * 300},
    {"stages": [{"stage": NASTY, "active": True, "time_us": 1}, {"stage": "fanout", "active": True, "time_us": 2**60}]},
    {"cache": NASTY, "hints": [NASTY, {"of": "0123456789ab:1"}, []], "outcomes": [{"of": "0123456789ab:1", "outcome": NASTY}, 1]},
    {"classification": [], "operation": NASTY, "principal": [NASTY], "code": 1, "config": "c", "question": {"text": NASTY * 300}},
)


PAYLOADS: tuple[bytes | None, ...] = (
    *(json.dumps({"predicate": p}).encode() for p in PREDICATES),
    *(json.dumps(statement).encode() for statement in ({}, [], "x")),
    *(b"", b"\xff\xfe", b"[" * 100_000, b'{"a":"\\ud800"}', None),
)


async def test_receipts_that_somebody_wrote_over_are_shown_as_invalid_and_break_no_page(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        for number, payload in enumerate(PAYLOADS, 1):
            answer = await it.router.search({"question": "nothing"})
            assert answer.receipt is not None and answer.receipt.seq == number
            await write_over(it.router.loaded.paths.receipts, number, payload)
            await look_at(it, answer.receipt.id)
        for path in ("/console/receipts", "/console/receipts?expert=good&operation=search", "/api/receipts", "/console/"):
            answer = await it.web.get(path)
            assert answer.status_code == 200, (path, answer.text[:300])
            assert_dressed(answer)
        assert len((await it.web.get("/api/receipts")).json()["rows"]) == len(PAYLOADS)


async def write_over(directory: Path, seq: int, payload: bytes | None) -> None:
    (log,) = log_ids(directory)
    database = sqlite3.connect(log_path(directory, log))
    (envelope,) = database.execute("SELECT CAST(envelope AS BLOB) FROM receipts WHERE seq = ?", (seq,)).fetchone()
    written = b"\x00rubbish" if payload is None else tampered(envelope, payload)
    database.execute("UPDATE receipts SET envelope = ?, status = ? WHERE seq = ?", (written, NASTY, seq))
    database.commit()
    database.close()


async def look_at(it: Served, receipt_id: str) -> None:
    page = await it.web.get(f"/console/receipts/{receipt_id}")
    assert page.status_code == 200, page.text[:300]
    assert_dressed(page)
    assert "<strong>invalid</strong>" in page.text or "<strong>unchecked</strong>" in page.text
    assert (await it.web.get(f"/console/receipts/{receipt_id}/envelope.json")).status_code == 200
    assert (await it.web.get(f"/api/receipts/{receipt_id}")).status_code == 200


async def test_a_damaged_log_is_told_on_the_pages_that_need_it_and_no_other_breaks(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        await it.router.search({"question": "start the app"})
        (it.router.loaded.paths.receipts / "0123456789ab.sqlite").write_bytes(b"rubbish" * 1000)
        for path, status in (("/console/", 503), ("/console/receipts", 503), ("/api/receipts", 503), ("/console/experts", 200)):
            answer = await it.web.get(path)
            assert answer.status_code == status, path
            for name in ("Content-Security-Policy", "X-Content-Type-Options"):
                assert answer.headers[name] == HEADERS[name]
            assert status == 200 or "receipts repair" in answer.text


WRONG = (
    ("/console/nothing", 404),
    ("/console-of-another", 404),
    ("/api/nothing", 404),
    ("/console/receipts/0123456789ab:1", 404),
    ("/console/receipts/0123456789ab:1/envelope.json", 404),
    ("/console/receipts/%00", 400),
    ("/console/receipts/..%2f..%2fetc", 404),
    ("/console/receipts/<script>", 400),
    ("/console/receipts?status=%3Cscript%3E", 400),
    ("/console/receipts?surprise=1", 400),
    ("/console/receipts?status=failed&status=failed", 400),
    ("/console/receipts?before=0123456789ab:1", 404),
    ("/console/experiments?paper_slug=../etc", 400),
    ("/api/receipts?limit=0", 400),
    ("/api/receipts?limit=1000", 400),
    ("/api/receipts/x", 400),
    ("/api/receipts/0123456789ab:1", 404),
    ("/api/experiments?paper_slug=%ff", 400),
    ("/api/experiments/comparison", 400),
    ("/api/search", 405),
)


async def test_what_is_wrong_or_not_there_is_said_in_kind(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        for path, status in WRONG:
            answer = await it.web.get(path)
            assert answer.status_code == status, path
            assert_dressed(answer)
            if path.startswith("/api/"):
                assert answer.json().keys() == {"error", "message", "remedy"}
            else:
                assert answer.headers["content-type"].startswith("text/html") and "<h1>" in answer.text


JSON = "application/json"
BODIES = (
    (b"{}", "text/plain", 400),
    (b"{", JSON, 400),
    (b"[" * 60_000, JSON, 400),
    (b'"\xff"', JSON, 400),
    (b" " * (64 * 1024 + 1), JSON, 413),
    (b"[]", JSON, 200),
    (b'{"question":"start","limit":NaN}', JSON, 200),
    (b'{"question":"\\ud800"}', JSON, 200),
)


async def test_a_posted_body_is_bounded_and_a_faulty_request_is_an_answer_with_a_receipt(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        for content, kind, status in BODIES:
            answer = await it.web.post("/api/search", content=content, headers={"content-type": kind})
            assert answer.status_code == status, (content[:20], answer.text[:300])
            assert_dressed(answer)
            assert status != 200 or answer.json()["receipt"]["id"]


async def test_an_experiment_is_chosen_from_a_list_and_two_configurations_stand_side_by_side(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        await it.router.search({"question": "start the app"})
        first = it.router.config_ref.hash
    async with console(tmp_path, flags=["output.text_characters=5000"]) as it:
        await it.router.search({"question": "nothing of the kind"})
        second = it.router.config_ref.hash
        assert first != second
        page = (await it.web.get(f"/console/experiments?a={first[:12]}&b={second[:12]}")).text
        assert page.count(f'value="{first[:12]}" selected') == page.count(f'value="{second[:12]}" selected') == 1
        told = (await it.web.get(f"/api/experiments/comparison?a={first}&b={second[:8]}")).json()
        assert [(a["arm"], a["events"], a["hits"]) for a in told["arms_a"]] == [("router", 1, 1), ("bad", 1, 0), ("good", 1, 1)]
        assert [(a["arm"], a["events"], a["hits"]) for a in told["arms_b"]] == [("router", 1, 0), ("bad", 1, 0), ("good", 1, 0)]
        slug = it.router.enrichment.settings.paper_slug
        assert (await it.web.get("/api/experiments/slugs")).json() == {"slugs": [slug]}
        whole = (await it.web.get("/api/experiments")).json()
        assert (whole["requests"], whole["calls"], len(whole["configs"])) == (2, 4, 2)
        assert (await it.web.get("/console/experiments?paper_slug=unknown")).status_code == 200
