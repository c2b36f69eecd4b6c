"""A real repository, real experts, and the questions of the flywheel's tests."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from search_router.adapters.local.inotify import Inotify
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, ExpertStatus
from tests.repositories import make_repository
from tests.scripted_router import environ

RETRY = """class RetryPolicy:
    def next_delay(self, attempt):
        return 2 ** attempt


def should_retry(error):
    return error.transient
"""
PAYMENT = """from shop.retry import should_retry


def charge_card(order):
    if should_retry(order):
        return 1
    return order.total
"""
ORDERS = """def open_orders(store):
    return [o for o in store if not o.closed]


def close_order(order):
    order.closed = True
"""
FILES = {
    "shop/retry.py": RETRY,
    "shop/payment.py": PAYMENT,
    "shop/orders.py": ORDERS,
    "docs/decisions.md": "# Retries\n\nA charge is retried with a delay that doubles.\n\n# Orders\n\nClosed orders stay.\n",
    "README.md": "# Shop\n\nPayment with retries of a charge.\n",
    ".gitignore": "*.log\n",
}
OFF = ("cache.positive_seconds=0", "cache.negative_seconds=0", "enrich.hints=false")
QUESTIONS = (
    "how does the retry of a charge work",
    "where is should_retry defined",
    "which orders are still open in the store",
    "what was decided about the delay of retries",
    "RetryPolicy",
    '"order.closed"',
)


async def a_queue_of_the_kernel(seconds: float = 60.0) -> None:
    """Wait until this user may watch one more tree: a cache that cannot see changes keeps nothing, and that is tested elsewhere."""
    until = time.monotonic() + seconds
    while True:
        try:
            Inotify().close()
        except OSError as error:
            assert time.monotonic() < until, f"the system gives no inotify queue: {error}"
            await anyio.sleep(0.2)
        else:
            return


@asynccontextmanager
async def workshop(folder: Path, *, flags: Sequence[str] = (), root: Path | None = None) -> AsyncGenerator[Router]:
    """A router over a repository in `folder`, made if it is not there; its index is complete."""
    root = root or folder / "repo"
    if not root.exists():
        make_repository(root, FILES)
    folder.mkdir(exist_ok=True)
    await a_queue_of_the_kernel()
    async with open_router(roots=[root], flags=["budget.latency_ms=60000", *flags], environ=environ(folder)) as router:
        await router.catch_up()
        yield router


async def ask(router: Router, question: str, **more: object) -> Answer:
    """The answer, when everything that comes of it is kept."""
    answer = await router.search({"question": question, **more})
    await router.enrichment.settle()
    return answer


def asked(answer: Answer) -> list[str]:
    return [report.id for report in answer.experts if report.status is not ExpertStatus.SKIPPED]


def told(answer: Answer) -> str:
    """What the stage `cache` says."""
    return next(stage.reason for stage in answer.stages if stage.stage == "cache")


def places(answer: Answer) -> list[tuple[str, str | None]]:
    return [(item.id, item.content_hash) for item in answer.evidence]
