"""A process of its own for the tests: `python -m tests.receipts.child WHAT DIRECTORY KEY`. Prints what happened, a line each."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import sys
from pathlib import Path

from search_router.errors import StoreUnavailable
from search_router.receipts.keys import load_or_create_key
from search_router.receipts.store import ReceiptStore, open_store
from tests.receipts.samples import make_payload, now_us
from tests.receipts.stores import StateDirectory


def say(text: str) -> None:
    print(text, flush=True)


async def append_for_ever(store: ReceiptStore, key_path: Path) -> None:
    payload = make_payload(load_or_create_key(key_path))

    async def client() -> None:
        while True:
            say((await store.append(payload)).id)

    await asyncio.gather(*(client() for _ in range(8)))


async def append_when_told(store: ReceiptStore, key_path: Path) -> None:
    payload = make_payload(load_or_create_key(key_path))
    say(store.log)
    for line in iter(sys.stdin.readline, ""):
        for stored in await asyncio.gather(*(store.append(payload) for _ in range(int(line)))):
            say(stored.id)


async def hit_the_file_size_limit(store: ReceiptStore, key_path: Path) -> None:
    payload = make_payload(load_or_create_key(key_path))
    say((await store.append(payload)).id)
    size = max(path.stat().st_size for path in Path(sys.argv[2]).iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 6000, resource.RLIM_INFINITY))
    failed = 0
    while failed < 3:
        results = await asyncio.gather(*(store.append(payload) for _ in range(3)), return_exceptions=True)
        for result in results:
            if isinstance(result, StoreUnavailable):
                failed += 1
            elif isinstance(result, BaseException):
                raise result
            else:
                say(result.id)
    say("unavailable")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    say((await store.append(payload)).id)


async def main() -> None:
    what, directory, key_path = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    key = load_or_create_key(key_path)
    if what == "as_nobody" and os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        often = {"for_ever": 20, "witnessed_when_told": 1000}.get(what)
        plan = StateDirectory(key_path.parent.parent).plan(every_receipts=often) if often else None
        async with open_store(directory, key, clock=now_us, nonce=lambda: secrets.token_hex(16), checkpoints=plan) as store:
            run = {
                "for_ever": append_for_ever,
                "when_told": append_when_told,
                "witnessed_when_told": append_when_told,
                "limit": hit_the_file_size_limit,
            }.get(what)
            if run is not None:
                await run(store, key_path)
            say("closed")
    except StoreUnavailable as error:
        say(f"refused: {error}")


if __name__ == "__main__":
    asyncio.run(main())
