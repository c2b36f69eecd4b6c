"""A server of the user's own choice that is asked with one POST of JSON: for rerankers and language models. Text leaves this process.

Therefore nothing is sent unless the configuration allows it. A key is read from the environment variable whose name is configured, when a
request is made, and is in no error.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import SplitResult, urlsplit

from search_router.errors import ExpertError, FailureClass

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """Where a configured server is. `section` is the configuration's name for it, for errors."""

    section: str
    url: str
    api_key_env: str
    allow_remote: bool

    def check(self) -> None:
        """Raise ExpertError `unconfigured` for what would send text unasked, send a key in the clear, or could not work."""
        name, problem = self.section, ""
        parts = _split(self.url)
        if not self.allow_remote:
            problem = f"sends source text to a server, which {name}.allow_remote does not allow"
        elif parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            problem = f"needs {name}.url, beginning with http:// or https://"
        elif parts.username or parts.password:
            problem = f"has credentials in {name}.url; name a variable in {name}.api_key_env instead"
        elif parts.scheme == "http" and self.api_key_env and not is_loopback(parts.hostname):
            problem = "would send its key unencrypted; use https"
        if problem:
            raise ExpertError(FailureClass.UNCONFIGURED, f"[{name}] {problem}.", remedy="Set it in the user's configuration file.")

    def headers(self) -> dict[str, str]:
        """The bearer token, if one is configured. Raises ExpertError `unconfigured` when its variable holds none."""
        if not self.api_key_env:
            return {}
        value = os.environ.get(self.api_key_env, "")
        if not value.isascii() or not value.isprintable() or not value:
            raise ExpertError(
                FailureClass.UNCONFIGURED,
                f"[{self.section}] needs a key, and the variable {self.api_key_env} holds none.",
                remedy=f"Set {self.api_key_env}.",
            )
        return {"Authorization": f"Bearer {value}"}


class JsonService:
    """Speaks with one `Service`. Nothing is opened before it is asked; safe for concurrent requests on one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._client: httpx2.AsyncClient | None = None

    @property
    def site(self) -> str:
        """Scheme, host and port: what of the address may be told."""
        parts = _split(self._service.url)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}" if parts else "no address"

    async def post(self, body: Mapping[str, Any], seconds: float) -> Any:
        """The JSON of the answer to one POST, within `seconds`. It is sent once: nothing is tried again.

        Raises:
            ExpertError: `unconfigured` (a setting, the key, the path), `unavailable`, `busy`, `rejected`, `crashed`, `timeout`, or
                `protocol-error` for an answer that is no JSON, or larger than MAX_ANSWER_BYTES.
        """
        self._service.check()
        headers = self._service.headers()
        try:
            async with asyncio.timeout(seconds):
                return _decode(await self._send(body, headers), self.site)
        except TimeoutError:
            raise ExpertError(
                FailureClass.TIMEOUT, f"No answer from {self.site} within {round(seconds * 1000)} ms.", remedy="Raise the budget."
            ) from None

    async def _send(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
        from search_router.adapters.remote.http import new_client, read_capped, refuse_status, transport_failures

        url = self._service.url
        if self._client is None:
            self._client = new_client({}, url)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        async with transport_failures(url):
            request = self._client.build_request("POST", url, content=content, headers={"Content-Type": "application/json", **headers})
            response = await self._client.send(request, stream=True)
            try:
                await refuse_status(response, url)
                line = await read_capped(response, MAX_ANSWER_BYTES)
            finally:
                await response.aclose()
        if line.cut:
            raise ExpertError(FailureClass.PROTOCOL_ERROR, f"{self.site} gave more than {MAX_ANSWER_BYTES} bytes.")
        return line.data

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(url: str) -> SplitResult | None:
    """The parts of a URL, None for what is none."""
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None  # asking for the port is what checks it
    except ValueError:
        return None


def _decode(data: bytes, site: str) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"{site} gave an answer that is no JSON ({type(error).__name__}).") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
