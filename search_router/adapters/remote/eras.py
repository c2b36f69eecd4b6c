"""What a request of the era of 2026-07-28 carries that older ones do not: its envelope, and the headers that repeat it. Pure.

Source: the specification of 2026-07-28, basic/index ("per-request protocol fields") and transports ("standard headers").
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, cast

MODERN_VERSIONS = ("2026-07-28",)
CLIENT = {"name": "search-router", "version": "1"}
"""The version of this client, not of the package, which this room may not import."""
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def is_modern(version: str | None) -> bool:
    """Whether every request says this version by itself."""
    return version in MODERN_VERSIONS


def enveloped(params: Mapping[str, Any] | None, version: str | None) -> Mapping[str, Any] | None:
    """The parameters of a request as this version wants them."""
    if not is_modern(version):
        return params
    given: Mapping[str, Any] = params or {}
    meta = cast("Mapping[str, Any]", given.get("_meta") or {})
    return {**given, "_meta": {**meta, PROTOCOL_VERSION: version, CLIENT_INFO: CLIENT, CLIENT_CAPABILITIES: {}}}


def routing_headers(method: str, params: Mapping[str, Any] | None, version: str | None) -> dict[str, str]:
    """The headers over HTTP that repeat the method and the name of what is asked for, so that a proxy need not read bodies."""
    if not is_modern(version):
        return {}
    name = (params or {}).get(NAMED.get(method, ""))
    return {"Mcp-Method": method, **({"Mcp-Name": header_value(name)} if isinstance(name, str) else {})}


def header_value(text: str) -> str:
    """A text in a header: as it is, or in base64 between `=?base64?` and `?=` where it is not plain ASCII or looks like that."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
