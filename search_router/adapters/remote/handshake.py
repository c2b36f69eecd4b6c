"""The opening words with an MCP server, in both eras of the protocol; `tools/list`; and what is checked before its tool is called.

Up to 2025-11-25 a session begins with `initialize`. From 2026-07-28 on there is none: every request says its version, and `server/discover`
tells what the server is. `initialize` comes first, because every server that serves both accepts it; one that refuses it is asked again
in the newer way, and that it had to be is told with the connection.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from search_router.adapters.remote.eras import CLIENT, MODERN_VERSIONS, SERVER_INFO
from search_router.adapters.remote.link import Link
from search_router.adapters.remote.rpc import RpcError
from search_router.adapters.remote.template import placeholders_in
from search_router.errors import ExpertError, FailureClass
from search_router.redact import scrub

ASKED_VERSION = "2025-06-18"
KNOWN_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
OTHER_ERA = frozenset({-32600, -32601, -32602, -32020, -32021, -32022})
"""Errors with which a server of the newer era refuses `initialize`: no such method, no envelope, not this version. Any other is a server's
own trouble."""
MAX_PAGES = 20
MAX_WORD = 80


@dataclass(frozen=True, slots=True)
class Connected:
    """A server that is ready: its name and version as it says, and the input schema of each of its tools.

    `why` says what the server answered to `initialize`, when it is spoken with in the newer way.
    """

    link: Link
    server_name: str
    server_version: str
    protocol: str
    tools: Mapping[str, Mapping[str, Any]]
    why: str = ""


async def shake_hands(link: Link, seconds: float) -> Connected:
    """Initialize a session; or, with a server that has none, learn what it is.

    Raises:
        ExpertError: `unavailable`, when the server refuses; `protocol-error`, when it speaks no version that we know; else as `Link.call`.
    """
    until = time.monotonic() + seconds
    try:
        return await _initialize(link, until)
    except RpcError as error:
        refused = f"{scrub(error.message, 300)} (code {error.code})"
        if error.code not in OTHER_ERA:
            raise ExpertError(FailureClass.UNAVAILABLE, f"The server refused to start a session: {refused}.") from error
    try:
        return await discover(link, until - time.monotonic(), refused)
    except RpcError as error:
        again = f"{scrub(error.message, 300)} (code {error.code})"
        raise ExpertError(
            FailureClass.UNAVAILABLE,
            f"The server refused to start a session: {refused}; and server/discover of {MODERN_VERSIONS[-1]} as well: {again}.",
        ) from error


async def _initialize(link: Link, until: float) -> Connected:
    params: dict[str, Any] = {"protocolVersion": ASKED_VERSION, "capabilities": {"roots": {}}, "clientInfo": CLIENT}
    said = (await link.call("initialize", params, max(0.05, until - time.monotonic()))).result
    version = said.get("protocolVersion")
    if version not in KNOWN_VERSIONS:
        raise ExpertError(
            FailureClass.PROTOCOL_ERROR,
            f"The server speaks MCP {_word(version) or 'of no version'}; this client asked for {ASKED_VERSION} "
            f"and knows {', '.join(KNOWN_VERSIONS)}.",
        )
    link.agree(version)
    await link.notify("notifications/initialized")
    return _connected(link, said.get("serverInfo"), version, await _list_tools(link, until), "")


async def discover(link: Link, seconds: float, why: str = "") -> Connected:
    """Speak with a server in the way of 2026-07-28: no session, every request with its version.

    Raises:
        RpcError: it refuses this as well.
        ExpertError: `protocol-error`, when it names no version that we know; else as `Link.call`.
    """
    until = time.monotonic() + seconds
    link.agree(MODERN_VERSIONS[-1])
    said = (await link.call("server/discover", {}, max(0.05, seconds))).result
    offered: Any = said.get("supportedVersions")
    offers = [each for each in cast("list[Any]", offered) if isinstance(each, str)] if isinstance(offered, list) else []
    if not (mutual := [version for version in MODERN_VERSIONS if version in offers]):
        raise ExpertError(
            FailureClass.PROTOCOL_ERROR,
            f"The server refuses `initialize` and offers {_word(', '.join(offers)) or 'no version'}; "
            f"this client knows {', '.join((*KNOWN_VERSIONS, *MODERN_VERSIONS))}.",
        )
    link.agree(mutual[-1])
    meta = said.get("_meta")
    about = cast("dict[str, Any]", meta).get(SERVER_INFO) if isinstance(meta, dict) else None
    return _connected(link, about, mutual[-1], await _list_tools(link, until), why)


def _connected(link: Link, about: Any, version: str, tools: Mapping[str, Mapping[str, Any]], why: str) -> Connected:
    info = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
    return Connected(link, _word(info.get("name")), _word(info.get("version")), version, tools, why)


async def _list_tools(link: Link, until: float) -> dict[str, Mapping[str, Any]]:
    tools: dict[str, Mapping[str, Any]] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = {"cursor": cursor} if cursor else {}
        page = (await link.call("tools/list", params, max(0.05, until - time.monotonic()))).result
        listed = page.get("tools")
        for tool in cast("list[Any]", listed) if isinstance(listed, list) else []:
            if isinstance(tool, dict) and isinstance(name := cast("dict[str, Any]", tool).get("name"), str):
                schema = cast("dict[str, Any]", tool).get("inputSchema")
                tools[name] = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        cursor = page.get("nextCursor") if isinstance(page.get("nextCursor"), str) else None
        if not cursor:
            break
    return tools


def check_tool(tools: Mapping[str, Mapping[str, Any]], tool: str, arguments: Mapping[str, Any]) -> None:
    """Whether a server can be asked as configured. Pure.

    Raises:
        ExpertError: `unavailable`, when it has no such tool, or a literal argument is not among the values that its schema lists.
    """
    if tool not in tools:
        there = ", ".join(sorted(tools)[:12]) or "none"
        raise ExpertError(FailureClass.UNAVAILABLE, f"The server has no tool {tool!r}; it has {there}.", remedy="Set `tool`, or update it.")
    properties = tools[tool].get("properties")
    for name, value in arguments.items():
        schema: Any = cast("dict[str, Any]", properties).get(name) if isinstance(properties, dict) else None
        allowed: Any = cast("dict[str, Any]", schema).get("enum") if isinstance(schema, dict) else None
        if isinstance(allowed, list) and not placeholders_in(value) and value not in allowed:
            choices = ", ".join(repr(choice) for choice in cast("list[Any]", allowed)[:12])
            raise ExpertError(FailureClass.UNAVAILABLE, f"As it runs now, {tool}'s {name} can only be {choices}, not {value!r}.")


def _word(value: object) -> str:
    """A short word of the server's, on one line."""
    return " ".join(str(value).split())[:MAX_WORD] if isinstance(value, str | int | float) else ""
