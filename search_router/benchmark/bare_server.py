"""The floor for start-up: a server of the same SDK with one tool that does nothing."""

from __future__ import annotations

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("bare", version="1")


class Pong(BaseModel):
    question: str


@server.tool()
async def search_knowledge(question: str) -> Pong:
    """Give the question back."""
    return Pong(question=question)


if __name__ == "__main__":
    server.run("stdio")
