"""The front door with the fake router, as a process: `python -m tests.fake_server stdio|http|sse [--port N] [--token T] [--noise]`."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

import anyio

from search_router.config.schema import HttpConfig
from search_router.errors import ConfigError
from search_router.server import claim_standard_streams, serve_http, serve_stdio
from tests.fake_router import FakeRouter


class NoisyRouter(FakeRouter):
    """Prints on every search as a careless library would: through Python, and straight to descriptor 1."""

    async def search(self, *args, **kwargs):
        print("noise from python")
        os.write(1, b"noise from a library\n")
        return await super().search(*args, **kwargs)


async def serve_pipe(noise: bool) -> None:
    with claim_standard_streams() as wire:
        if noise:
            print("noise while starting")
        await serve_stdio(NoisyRouter() if noise else FakeRouter(), wire)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["stdio", "http", "sse"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token")
    parser.add_argument("--max-body-bytes", type=int, default=64 * 1024)
    parser.add_argument("--max-connections", type=int, default=1000)
    parser.add_argument("--header-timeout-ms", type=int, default=10_000)
    parser.add_argument("--body-timeout-ms", type=int, default=20_000)
    parser.add_argument("--noise", action="store_true")
    options = parser.parse_args()
    if options.kind == "stdio":
        anyio.run(serve_pipe, options.noise)
    else:
        http = HttpConfig(
            host=options.host,
            port=options.port,
            max_body_bytes=options.max_body_bytes,
            max_connections=options.max_connections,
            header_timeout_ms=options.header_timeout_ms,
            body_timeout_ms=options.body_timeout_ms,
        )
        try:
            anyio.run(partial(serve_http, FakeRouter(), http, options.kind, options.token))
        except ConfigError as error:
            print(error, file=sys.stderr)
            return 2
    print("ended cleanly", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
