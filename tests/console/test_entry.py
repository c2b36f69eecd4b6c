"""Who gets in: login, cookies, forms of other sites, the bearer token, foreign hosts, too many requests; and a console that is off."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx2
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from search_router.config.schema import HttpConfig
from search_router.console.guard import HEADERS, LOGINS_A_MINUTE, HeaderGuard, Limiter, RateGuard
from search_router.console.session import COOKIE, SECONDS, Sessions
from search_router.mcp_listener import bind
from tests.console.consoles import API_PATHS, PATHS, TOKEN, console, form_token_in
from tests.console.test_pages import assert_dressed

pytestmark = pytest.mark.anyio
network = pytest.mark.network
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@network
async def test_without_the_token_every_page_leads_to_the_login_and_the_api_is_401(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        for path in (*PATHS, "/", "/console/receipts/0123456789ab:1", "/console/nothing"):
            answer = await it.web.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/login"), path
            assert_dressed(answer)
        for path in (*API_PATHS, "/api/nothing", "/metrics"):
            answer = await it.web.get(path)
            assert answer.status_code == 401, path
            assert path == "/metrics" or answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
        for path in ("/console/search", "/console/logout", "/api/search"):
            answer = await it.web.post(path, json={"question": "start"})
            assert answer.status_code == 401, path
            assert_dressed(answer)
        for path in API_PATHS:
            assert (await it.web.get(path, headers=BEARER)).status_code == 200, path
        assert (await it.web.get("/api/receipts", headers=BEARER)).json()["rows"] == []


@network
async def test_the_token_opens_the_pages_until_logout_and_a_kept_cookie_opens_nothing_after_it(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        wrong = await it.log_in("wrong")
        assert wrong.status_code == 401 and "not the token" in wrong.text and COOKIE not in wrong.headers.get("set-cookie", "")
        for odd in ("%ED%A0%80", "%FF%00", ""):
            body = f"form_token={await it.form_token('/console/login')}&token={odd}"
            answer = await it.web.post("/console/login", content=body, headers=FORM)
            assert answer.status_code == 401
            assert_dressed(answer)
        entered = await it.log_in()
        assert (entered.status_code, entered.headers["location"]) == (303, "/console/")
        flags = entered.headers["set-cookie"].lower()
        assert "httponly" in flags and "samesite=strict" in flags and f"max-age={SECONDS}" in flags and TOKEN not in flags
        for path in (*PATHS, *API_PATHS):
            answer = await it.web.get(path)
            assert answer.status_code == 200, path
            assert TOKEN not in answer.text
            assert_dressed(answer)
        assert (await it.ask("start the app")).status_code == 200
        kept = it.web.cookies[COOKIE]
        left = await it.web.post("/console/logout", data={"form_token": await it.form_token()})
        assert left.headers["location"] == "/console/login"
        assert COOKIE not in it.web.cookies
        async with httpx2.AsyncClient(base_url=it.url, cookies={COOKIE: kept}) as other:
            assert (await other.get("/console/")).status_code == 303
            assert (await other.get("/api/overview")).status_code == 401


@network
async def test_a_cookie_opens_neither_mcp_nor_the_other_paths(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        await it.log_in()
        assert (await it.web.post("/mcp", json={})).status_code == 401
        assert (await it.web.get("/nothing")).status_code == 401
        assert (await it.web.get("/metrics")).status_code == 404, "admitted, and there is none"


@network
async def test_a_form_without_our_token_or_with_that_of_another_session_does_nothing(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        stranger = await it.form_token("/console/login")
        await it.log_in()
        async with httpx2.AsyncClient(base_url=it.url) as second:
            page = (await second.get("/console/login")).text
            await second.post("/console/login", data={"form_token": form_token_in(page), "token": TOKEN})
            of_another = form_token_in((await second.get("/console/search")).text)
        for fields in ({}, {"form_token": ""}, {"form_token": "x"}, {"form_token": stranger}, {"form_token": of_another}):
            for path in ("/console/search", "/console/logout", "/console/login"):
                answer = await it.web.post(path, data={**fields, "question": "start", "token": TOKEN})
                assert answer.status_code == 403, (path, fields)
                assert_dressed(answer)
        own = await it.form_token()
        for content, headers in (
            (f"form_token={own}&question=start", {"content-type": "text/plain"}),
            (f"form_token={own}&question=start", {"content-type": "multipart/form-data; boundary=x"}),
            (f"form_token={own}&question={'x' * 70_000}", FORM),
            (f"form_token={own}&" + "&".join(f"f{n}=1" for n in range(30)), FORM),
            (f"form_token={own}&question=\u00e9", FORM),
        ):
            assert (await it.web.post("/console/search", content=content.encode(), headers=headers)).status_code == 403
        assert (await it.web.get("/api/receipts")).json()["rows"] == []
        assert (await it.web.get("/console/")).status_code == 200, "and nobody was logged out"


@network
async def test_without_a_token_forms_still_need_ours_and_there_is_nothing_to_log_in_to(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        assert (await it.web.get("/console/login")).headers["location"] == "/console/"
        assert (await it.web.post("/console/search", data={"question": "start"})).status_code == 403
        assert "Log out" not in (await it.web.get("/console/")).text
        assert (await it.ask("start")).status_code == 200


@network
async def test_a_foreign_host_or_origin_gets_nothing_and_the_headers_all_the_same(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        for path in (*PATHS, *API_PATHS, "/console/console.css"):
            host = await it.web.get(path, headers={"Host": "evil.example"})
            origin = await it.web.get(path, headers={"Origin": "http://evil.example"})
            assert (host.status_code, origin.status_code) == (421, 403), path
            assert_dressed(host)
            assert_dressed(origin)
        posted = await it.web.post("/api/search", json={"question": "start"}, headers={"Origin": "null"})
        assert posted.status_code == 403
        assert (await it.web.get("/api/receipts")).json()["rows"] == []


@network
async def test_logins_are_limited(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        form = await it.form_token("/console/login")
        codes = [
            (await it.web.post("/console/login", data={"form_token": form, "token": "wrong"})).status_code for _ in range(LOGINS_A_MINUTE)
        ]
        assert codes == [401] * LOGINS_A_MINUTE
        refused = await it.web.post("/console/login", data={"form_token": form, "token": TOKEN})
        assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
        assert_dressed(refused)
        assert (await it.web.get("/api/overview", headers=BEARER)).status_code == 200, "who has the token is not locked out"


async def test_too_many_requests_of_one_address_are_refused_and_other_paths_are_not_counted() -> None:
    guard = HeaderGuard(RateGuard(PlainTextResponse("fine"), ("/console",), 5), ("/console",))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=guard), base_url="http://127.0.0.1") as web:
        for _ in range(9):
            assert (await web.get("/healthz")).status_code == 200
        assert [(await web.get("/console/x")).status_code for _ in range(5)] == [200] * 5
        for path in ("/", "/console/x"):
            refused = await web.get(path)
            assert (refused.status_code, refused.json()["error"]) == (429, "too-many-requests")
            assert int(refused.headers["Retry-After"]) >= 1
            assert_dressed(refused)
        assert (await web.get("/healthz")).status_code == 200
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=guard, client=("::1", 1)), base_url="http://[::1]") as other:
        assert (await other.get("/console/x")).status_code == 200


@network
async def test_accepted_connections_send_at_once(tmp_path: Path) -> None:
    """Nagle's algorithm against delayed acknowledgements: 40 ms for every answer on a kept connection."""
    with bind(HttpConfig(host="127.0.0.1", port=0, max_body_bytes=1024)) as sock, socket.create_connection(sock.getsockname()):
        accepted, _ = sock.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_one_caller_does_not_use_up_the_limit_of_another() -> None:
    limiter = Limiter(2)
    assert [limiter.admits("a"), limiter.admits("a"), limiter.admits("a"), limiter.admits("b")] == [True, True, False, True]


@network
@pytest.mark.parametrize("token", [None, TOKEN])
async def test_pages_can_be_switched_off_and_the_api_stays(tmp_path: Path, token: str | None) -> None:
    async with console(tmp_path, token, pages=False) as it:
        for path in (*PATHS, "/", "/console/login", "/console/console.css"):
            answer = await it.web.get(path, headers=BEARER)
            assert answer.status_code == 404, path
        for path in API_PATHS:
            assert (await it.web.get(path, headers=BEARER)).status_code == 200, path
            assert (await it.web.get(path)).status_code == (401 if token else 200), path


def cookie(value: str) -> Headers:
    return Headers({"cookie": f"{COOKIE}={value}"})


def test_a_cookie_is_good_until_it_expires_and_no_letter_of_it_can_be_changed() -> None:
    now = 1_000.0
    sessions = Sessions("secret", clock=lambda: now)
    opened = sessions.open()
    assert sessions.is_open(cookie(opened)) and opened != sessions.open()
    for place in range(len(opened)):
        other = "0" if opened[place] != "0" else "1"
        assert not sessions.is_open(cookie(opened[:place] + other + opened[place + 1 :])), place
    for odd in ("", ".", "..", "9" * 400, f"{2**70}..", "\u0661\u0662.a.b", '"', opened + "."):
        assert not sessions.is_open(Headers(raw=[(b"cookie", f"{COOKIE}={odd}".encode())]))
    assert not Sessions("secret", clock=lambda: now).is_open(cookie(opened)), "of another process"
    now += SECONDS
    assert not sessions.is_open(cookie(opened))


def test_an_ended_cookie_stays_ended_and_is_forgotten_when_it_has_expired() -> None:
    now = 0.0
    sessions = Sessions("secret", clock=lambda: now)
    first, second = sessions.open(), sessions.open()
    sessions.end(cookie(first))
    sessions.end(cookie("rubbish"))
    assert (sessions.is_open(cookie(first)), sessions.is_open(cookie(second))) == (False, True)
    now = SECONDS + 1.0
    sessions.end(cookie("rubbish"))
    assert not sessions.is_open(cookie(first))
