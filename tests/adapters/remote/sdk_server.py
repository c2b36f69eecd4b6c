"""A server made with the SDK, over the transport that its argument names: `python sdk_server.py stdio|http|sse PORT`."""

from __future__ import annotations

import sys

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("made with the SDK", version="2.3")


class Hits(BaseModel):
    items: list[dict[str, str | int]]


@server.tool()
async def search(question: str) -> Hits:
    """Finds the start."""
    if question == "boom":
        raise ValueError(question)
    return Hits(items=[{"path": "src/app.py", "start": 4, "end": 6}])


if sys.argv[1] == "stdio":
    server.run("stdio")
elif sys.argv[1] == "http":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
