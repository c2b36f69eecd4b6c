"""An HTTP service is an expert: one request a question, its JSON or text read like any other answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from search_router.adapters.remote.expert import State, Told
from search_router.adapters.remote.http import new_client, read_capped, refuse_status, site, transport_failures
from search_router.adapters.remote.judge import Received, judge, readable
from search_router.adapters.remote.session import Circuit
from search_router.adapters.remote.surroundings import fill_texts, with_environment
from search_router.adapters.remote.template import as_text, fill
from search_router.config.remote import AnswerConfig, HttpJsonConfig
from search_router.errors import ExpertError, FailureClass
from search_router.observing import trace_headers
from search_router.schema import Project

if TYPE_CHECKING:
    import httpx2

CONDEMNING = frozenset({FailureClass.UNAVAILABLE, FailureClass.TIMEOUT, FailureClass.CRASHED})


class HttpJsonAsker:
    """Sends the configured request."""

    def __init__(self, config: HttpJsonConfig) -> None:
        self._config = config
        self._client: httpx2.AsyncClient | None = None
        self._circuit = Circuit()

    @property
    def answer(self) -> AnswerConfig:
        return self._config.answer

    @property
    def transport(self) -> Literal["http"]:
        return "http"

    @property
    def templates(self) -> Any:
        config = self._config
        return [config.url, config.headers, config.query, config.body]

    async def ask(self, values: dict[str, Any], project: Project, seconds: float) -> Told:
        config = self._config
        self._circuit.check()
        url = str(fill(config.url, with_environment(values, config.url)))
        headers = fill_texts(config.headers, values)
        query = {name: as_text(value) for name, value in self._filled(config.query, values).items()}
        body = self._filled(config.body, values)
        try:
            async with asyncio.timeout(seconds), transport_failures(url):
                received = await self._send(url, headers, query, body)
        except TimeoutError:
            error = ExpertError(FailureClass.TIMEOUT, f"No answer from {site(url)} within {round(seconds * 1000)} ms.")
            self._circuit.count(error)
            raise error from None
        except ExpertError as error:
            if error.failure in CONDEMNING:
                self._circuit.count(error)
            raise
        self._circuit.close()
        received = readable(config.answer, received)
        return Told(judge(config.answer, received), received.cut, site(url), long_lines=received.long_lines)

    async def _send(self, url: str, headers: Mapping[str, str], query: Mapping[str, str], body: Mapping[str, Any]) -> Received:
        if self._client is None:
            self._client = new_client({}, url)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace") if self._config.method == "POST" else None
        kind = {"Content-Type": "application/json"} if content is not None else {}
        request = self._client.build_request(
            self._config.method, url, params=query or None, content=content, headers={**trace_headers(), **kind, **headers}
        )
        response = await self._client.send(request, stream=True)
        try:
            await refuse_status(response, url)
            line = await read_capped(response, self._config.max_bytes)
        finally:
            await response.aclose()
        return Received(line.data.decode("utf-8", "replace"), cut=line.cut)

    def _filled(self, template: Mapping[str, Any], values: dict[str, Any]) -> Mapping[str, Any]:
        return fill(template, with_environment(values, template))

    @property
    def share_of_start(self) -> float:
        return 1.0

    def state(self) -> State:
        if (left := self._circuit.next_try_in) > 0 and (error := self._circuit.last) is not None:
            return State(f"{error.message} Next try in {left:.1f} s.", failure=error.failure, details=(("next_try_in_s", f"{left:.1f}"),))
        return State("is asked over HTTP")

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
