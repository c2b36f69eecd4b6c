"""A real console: a router over real files, behind uvicorn on a real port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2

from search_router.config.schema import HttpConfig
from search_router.mcp_listener import bind, listener_config
from search_router.router.service import Router
from search_router.server import build_http_app
from tests.scripted_router import FILES, hit, scripted_router

TOKEN = "correct-horse-battery-staple"
START_SECONDS = 10
BIDI = "\u202eevil\u2066"
NASTY = f"""<script>alert(1)</script>"><img src=x onerror=alert(1)> ' " & {BIDI} {{{{ 7*7 }}}} </title></textarea>"""
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "good": [
        {"when": "nothing", "hits": []},
        {"when": "hang", "fault": "hang"},
        {
            "when": "commit",
            "hits": [{"commit": {"commit": "c" * 40, "subject": NASTY, "author": NASTY, "paths": ["src/app.py"]}}],
        },
        {"when": "*", "hits": [hit(), hit('src/<b>odd\' "name".py', 1), hit("notes.txt", 1)]},
    ],
    "bad": [{"when": "nothing", "hits": []}, {"when": "*", "fault": "crashed", "message": NASTY + "y" * 4096}],
}
ODD_FILES = {**FILES, 'src/<b>odd\' "name".py': f"# {NASTY}\nx = '{'z' * 4096}'\n"}
PATHS = (
    "/console/",
    "/console/search",
    "/console/receipts",
    "/console/experts",
    "/console/repositories",
    "/console/experiments",
    "/console/experiments/runs",
    "/console/configuration",
)
API_PATHS = (
    "/api/overview",
    "/api/receipts",
    "/api/experts",
    "/api/doctor/repos",
    "/api/experiments",
    "/api/experiments/slugs",
    "/api/experiments/runs",
    "/api/config",
    "/api/openapi.json",
)


@dataclass(frozen=True)
class Served:
    """A router and the client of its server."""

    router: Router
    web: httpx2.AsyncClient
    url: str

    async def form_token(self, path: str = "/console/search") -> str:
        return form_token_in((await self.web.get(path)).text)

    async def ask(self, question: str, **more: str) -> httpx2.Response:
        """The search form, as a browser sends it."""
        return await self.web.post("/console/search", data={"form_token": await self.form_token(), "question": question, **more})

    async def log_in(self, token: str = TOKEN) -> httpx2.Response:
        return await self.web.post("/console/login", data={"form_token": await self.form_token("/console/login"), "token": token})


@contextlib.asynccontextmanager
async def served(router: Router, token: str | None = None, *, pages: bool = True) -> AsyncGenerator[Served]:
    """The router's HTTP server on a free port."""
    http = HttpConfig(host="127.0.0.1", port=0, max_body_bytes=64 * 1024, console=pages)
    with bind(http) as sock:
        port: int = sock.getsockname()[1]
        http = http.model_copy(update={"port": port})
        import uvicorn

        server = uvicorn.Server(listener_config(build_http_app(router, http, token), http))
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined] - not declared, and looked for by uvicorn
        running = asyncio.create_task(server.serve(sockets=[sock]))
        url = f"http://127.0.0.1:{port}"
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=20) as web:
                yield Served(router, web, url)
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, START_SECONDS)


@contextlib.asynccontextmanager
async def console(
    folder: Path,
    token: str | None = None,
    *,
    pages: bool = True,
    scripts: Mapping[str, Sequence[Mapping[str, Any]]] = SCRIPTS,
    files: Mapping[str, str] = ODD_FILES,
    flags: Sequence[str] = (),
) -> AsyncGenerator[Served]:
    """A console over scripted experts, one of which is broken and hostile."""
    async with scripted_router(folder, scripts, files=files, flags=flags) as router, served(router, token, pages=pages) as it:
        yield it


def tampered(envelope: bytes, payload: bytes) -> bytes:
    """An envelope with another payload, as somebody who can write the store would leave it."""
    import base64

    members = json.loads(envelope)
    members["payload"] = base64.b64encode(payload).decode()
    return json.dumps(members, separators=(",", ":")).encode()


class _Reader(HTMLParser):
    """Everything in a page that could run or style something, and what its forms hold."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "hr", "rect"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.dangers: list[str] = []
        self.open: list[str] = []
        self.fields: dict[str, str] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style", "iframe", "object", "embed", "base", "img", "b") or (tag == "meta" and "http-equiv" in given):
            self.dangers.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style" or (name in ("href", "src", "action") and not (value or "").startswith(("/", "#"))):
                self.dangers.append(f"{tag} {name}={value}")
        if tag == "input":
            self.fields[given.get("name") or ""] = given.get("value") or ""
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.dangers.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read_page(text: str) -> _Reader:
    """The page, parsed; it must be whole."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [], f"not closed: {reader.open}"
    return reader


def form_token_in(text: str) -> str:
    return read_page(text).fields["form_token"]
