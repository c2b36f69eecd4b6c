"""An MCP server over HTTP: streamable HTTP (a POST a message) and the older SSE (answers come over one open stream).

Built on httpx2 and not on the SDK's transports: those read a JSON answer of any size into memory, put our id on an answer that has
another, and turn every status of 400 and above into one sentence. See docs/decisions/0016.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import anyio

from search_router.adapters.remote.eras import enveloped, routing_headers
from search_router.adapters.remote.framing import Broken, EventReader, Line, Message, Noise, decode_message
from search_router.adapters.remote.link import Link, SessionLost, Target
from search_router.adapters.remote.rpc import Exchange, Reply, read_answer, request_bytes, silence
from search_router.errors import ExpertError, FailureClass
from search_router.observing import trace_headers
from search_router.redact import scrub

if TYPE_CHECKING:
    import httpx2

SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ERROR_BYTES = 2000
CLOSE_SECONDS = 0.5
UNSENT_MESSAGES = 1000


def new_client(headers: Mapping[str, str], url: str) -> httpx2.AsyncClient:
    """A client without time-outs of its own (every wait here has a deadline) or redirects; proxies are for other machines only."""
    import httpx2  # 0.1 s, which only a configuration with such an expert pays

    elsewhere = urlsplit(url).hostname not in LOOPBACK
    asked = {"Accept-Encoding": "identity", **headers}  # see refuse_packed
    return httpx2.AsyncClient(headers=asked, timeout=None, follow_redirects=False, trust_env=elsewhere)


@contextlib.asynccontextmanager
async def transport_failures(url: str) -> AsyncGenerator[None]:
    """What httpx2 raises as the failure classes: `unavailable` before there is an answer, `crashed` in the midst of one."""
    import httpx2

    where = site(url)
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        raise ExpertError(
            FailureClass.UNAVAILABLE, f"Cannot connect to {where}: {scrub(str(error))[:200] or 'no reason given'}."
        ) from error
    except (httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.WriteError, httpx2.CloseError) as error:
        raise ExpertError(
            FailureClass.CRASHED, f"{where} closed the connection in the midst of a call ({type(error).__name__})."
        ) from error
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise ExpertError(FailureClass.UNCONFIGURED, f"{where} is not a URL that can be asked: {error}.") from error
    except httpx2.HTTPError as error:
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"{where}: {type(error).__name__}: {scrub(str(error))[:200]}.") from error


def site(url: str) -> str:
    """Scheme, host and port of a URL: no path, query or password, which may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


async def read_capped(response: httpx2.Response, limit: int) -> Line:
    """The body of an answer, of which at most `limit` bytes are kept; the rest is read and counted."""
    parts: list[bytes] = []
    kept = cut = 0
    async for chunk in response.aiter_bytes():
        room = max(0, limit - kept)
        parts.append(chunk[:room])
        kept += min(room, len(chunk))
        cut += max(0, len(chunk) - room)
    return Line(b"".join(parts), cut)


def refuse_packed(response: httpx2.Response, url: str) -> None:
    """Raise ExpertError `protocol-error` for a compressed body: it was not asked for, and 100 kilobytes of it can be 100 gigabytes."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in ("", "identity"):
        said = f"{site(url)} compressed its answer with {scrub(packed)[:40]!r}, which it was asked not to do."
        raise ExpertError(FailureClass.PROTOCOL_ERROR, said)


async def refuse_status(response: httpx2.Response, url: str) -> None:
    """Raise what a status that is no answer means; return for a success. Raises for a compressed body as `refuse_packed`."""
    refuse_packed(response, url)
    status = response.status_code
    if 200 <= status < 300:
        return
    words = " ".join(scrub((await read_capped(response, ERROR_BYTES)).data.decode("utf-8", "replace")).split())[:200]
    said = f"{site(url)} answered HTTP {status}{f': {words}' if words else '.'}"
    if 300 <= status < 400:
        raise ExpertError(FailureClass.UNCONFIGURED, f"{said} Redirects are not followed.", remedy="Configure the URL that it names.")
    if status in (401, 403, 407):
        raise ExpertError(FailureClass.UNCONFIGURED, said, remedy="Check the key that `headers` names.")
    if status in (404, 405, 410):
        raise ExpertError(FailureClass.UNCONFIGURED, said, remedy="Check the path in `url`.")
    if status in (408, 425, 429, 503):
        raise ExpertError(FailureClass.BUSY, said)
    raise ExpertError(FailureClass.REJECTED if status < 500 else FailureClass.UNAVAILABLE, said)


class HttpLink:
    """A session of streamable HTTP. Calls are independent of each other. Made by `open_http`."""

    def __init__(self, client: httpx2.AsyncClient, target: Target) -> None:
        self._client = client
        self._target = target
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._version: str | None = None
        self._never = asyncio.Event()
        self._noise = 0

    @property
    def noise(self) -> int:
        return self._noise

    async def call(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> Reply:
        request_id = next(self._ids)
        strays: list[str] = []
        try:
            async with asyncio.timeout(seconds), transport_failures(self._target.url):
                body = request_bytes(request_id, method, enveloped(params, self._version))
                return await self._post(request_id, body, strays, routing_headers(method, params, self._version))
        except TimeoutError:
            raise silence(method, seconds, strays) from None

    async def notify(self, method: str) -> None:
        async with transport_failures(self._target.url), self._stream(request_bytes(None, method, None)) as response:
            await self._check(response)

    async def ended(self) -> str:
        await self._never.wait()  # there is no connection that could end
        return ""

    def agree(self, version: str) -> None:
        self._version = version

    async def close_session(self) -> None:
        """Tell the server that the session is over."""
        import httpx2

        if self._session is not None:
            with contextlib.suppress(httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._client.delete(self._target.url, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **({SESSION: self._session} if self._session else {}),
            **({VERSION: self._version} if self._version else {}),
        }

    def _stream(self, body: bytes, more: Mapping[str, str] | None = None) -> contextlib.AbstractAsyncContextManager[httpx2.Response]:
        headers = {**self._headers(), **trace_headers(), **(more or {})}
        return self._client.stream("POST", self._target.url, content=body, headers=headers)

    async def _check(self, response: httpx2.Response) -> None:
        if response.status_code == 404 and self._session is not None:
            raise SessionLost
        await refuse_status(response, self._target.url)

    async def _post(self, request_id: int, body: bytes, strays: list[str], more: Mapping[str, str]) -> Reply:
        async with self._stream(body, more) as response:
            refuse_packed(response, self._target.url)
            refused = response.status_code == 400 or (response.status_code == 404 and self._session is None)
            if refused and response.headers.get("content-type", "").startswith("application/json"):
                line = await read_capped(response, ERROR_BYTES)
                if isinstance(message := decode_message(line), Message) and message.is_answer:
                    return read_answer(message)  # a refusal in JSON-RPC's own words
            await self._check(response)
            self._session = response.headers.get(SESSION) or self._session
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                async for line in _messages(response, self._target.max_bytes):
                    if (reply := self._accept(line, request_id, strays)) is not None:
                        return reply
            elif kind == "application/json":
                line = await read_capped(response, self._target.max_bytes)
                if (reply := self._accept(line, request_id, strays)) is not None:
                    return reply
            else:
                words = f"HTTP {response.status_code} with {kind or 'no content type'}"
                raise ExpertError(FailureClass.PROTOCOL_ERROR, f"The server answered a request with {words}, which is no MCP.")
        sent = f"{strays[0]}, and " if strays else ""
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"The server sent {sent}no answer before the end of its response.")

    def _accept(self, line: Line, request_id: int, strays: list[str]) -> Reply | None:
        """The answer, when this is it; what is of no use is remembered."""
        message = decode_message(line)
        stray = ""
        if isinstance(message, Noise):
            self._noise += 1
            stray = "something that is no JSON-RPC message"
        elif isinstance(message, Broken):
            stray = f"a message that cannot be read: {message.why}"
        elif message.is_answer:
            if message.id == request_id or (message.id is None and (message.cut or "error" in message.body)):
                return read_answer(message)  # an error without an id is about this very request: it is the only one in this response
            stray = f"an answer with the id {str(message.id)[:40]!r} to the request {request_id}"
        if stray and not strays:  # the first says it; a flood of them is not to be kept
            strays.append(stray)
        return None


async def _messages(response: httpx2.Response, limit: int) -> AsyncIterator[Line]:
    events = EventReader(limit)
    async for chunk in response.aiter_bytes():
        for name, line in events.feed(chunk):
            if name == "message":
                yield line


@contextlib.asynccontextmanager
async def open_http(target: Target) -> AsyncGenerator[Link]:
    """A session over streamable HTTP; nothing is sent before the first call."""
    async with new_client(dict(target.headers), target.url) as client:
        link = HttpLink(client, target)
        try:
            yield link
        finally:
            with anyio.CancelScope(shield=True):
                await link.close_session()


# ------------------------------------------------------------------ SSE


class SseLink:
    """The transport of 2024-11-05: messages are posted, answers come over one stream. Made by `open_sse`."""

    def __init__(self, client: httpx2.AsyncClient, target: Target) -> None:
        self._client = client
        self._target = target
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue(UNSENT_MESSAGES)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._why = ""
        self._exchange = Exchange(self._send, lambda: [{"uri": r.as_uri(), "name": r.name} for r in target.roots])

    @property
    def noise(self) -> int:
        return self._exchange.noise

    async def call(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> Reply:
        return await self._exchange.call(method, params, seconds)

    async def notify(self, method: str) -> None:
        self._exchange.notify(method)

    async def ended(self) -> str:
        await self._gone.wait()
        return self._why

    def agree(self, version: str) -> None:
        self._exchange.version = version

    async def run(self) -> None:
        """Read the stream and post messages until the stream ends."""
        error = ExpertError(FailureClass.CRASHED, f"{site(self._target.url)} ended its event stream.")
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._post_all)
                await self._read()
                tasks.cancel_scope.cancel()
        except* ExpertError as group:
            error = next(e for e in group.exceptions if isinstance(e, ExpertError))
        self._why = error.message
        self._exchange.end(error)
        self._gone.set()

    def _send(self, message: bytes) -> None:
        try:
            self._unsent.put_nowait(message)
        except asyncio.QueueFull:
            raise ExpertError(FailureClass.BUSY, f"The server has not taken its last {UNSENT_MESSAGES} messages.") from None

    async def _read(self) -> None:
        url = self._target.url
        async with transport_failures(url), self._client.stream("GET", url, headers={"Accept": "text/event-stream"}) as response:
            await refuse_status(response, url)
            events = EventReader(self._target.max_bytes)
            async for chunk in response.aiter_bytes():
                for name, line in events.feed(chunk):
                    if name == "endpoint":
                        self._learn_endpoint(line.data.decode("utf-8", "replace"))
                    elif name == "message":
                        self._exchange.receive(line)

    def _learn_endpoint(self, text: str) -> None:
        endpoint = urljoin(self._target.url, text)
        if site(endpoint) != site(self._target.url):
            raise ExpertError(FailureClass.PROTOCOL_ERROR, f"The server wants messages sent to another origin, {site(endpoint)}.")
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    async def _post_all(self) -> None:
        endpoint = await self._endpoint
        while True:
            message = await self._unsent.get()
            posting = self._client.stream("POST", endpoint, content=message, headers={"Content-Type": "application/json"})
            async with transport_failures(endpoint), posting as response:
                await refuse_status(response, endpoint)


@contextlib.asynccontextmanager
async def open_sse(target: Target) -> AsyncGenerator[Link]:
    """A connection over SSE."""
    async with new_client(dict(target.headers), target.url) as client:
        link = SseLink(client, target)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.run)
            try:
                yield link
            finally:
                tasks.cancel_scope.cancel()
