"""Start a server quickly: hosts give it ten seconds, and importing the MCP SDK takes most of one.

The SDK is imported in a thread while the router is opened: git, ripgrep and the receipt store are waited for meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio.to_thread

from search_router.collector import collector_paused
from search_router.router.opening import open_router
from search_router.standard_streams import claim_standard_streams


async def serve(transport: Literal["stdio", "sse", "http"], *, roots: Sequence[str | Path] = (), flags: Sequence[str] = ()) -> None:
    """Open a router and serve it. On stdio, standard output is claimed first, so that nothing printed meanwhile reaches the client.

    Raises:
        SearchRouterError: configuration, workspace, key or store cannot be used; nothing has been served.
    """
    with claim_standard_streams() if transport == "stdio" else contextlib.nullcontext() as wire, contextlib.ExitStack() as starting:
        starting.enter_context(collector_paused())
        # An asyncio task: a task group would wrap the errors of this block.
        loading = asyncio.create_task(
            anyio.to_thread.run_sync(importlib.import_module, "search_router.server", abandon_on_cancel=True), name="import the SDK"
        )
        try:
            async with open_router(roots=roots, flags=flags) as router:
                for note in router.notes:
                    sys.stderr.write(f"search-router: {note}\n")
                await router.prepare()
                router.watch()
                await loading
                from search_router import server

                starting.close()
                if transport == "stdio":
                    workspace = router.loaded.config.workspace
                    asks = workspace.client_roots and not roots and not workspace.roots
                    await server.serve_stdio(router, wire, server.ClientRoots(router) if asks else None, router.observer)
                else:
                    http, token = router.loaded.config.http, os.environ.get("SEARCH_ROUTER_TOKEN")
                    await server.serve_http(router, http, transport, token, router.observer)
        finally:
            loading.cancel()
