"""Two minutes of questions to a router over a real repository: memory, open files and threads stay where they were."""

from __future__ import annotations

import json
import os
import time
from itertools import count
from pathlib import Path

import anyio
import pytest

from search_router.benchmark.served import Resources, resources_of
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Status
from tests.real_servers import Home, make_work

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
WARM_SHARE = 0.25
AT_ONCE = 3


async def ask_for(router: Router, seconds: float, numbers: count[int]) -> int:
    """Ask questions of every kind, some at once, some cancelled; how many were answered."""
    until, answered = time.monotonic() + seconds, 0

    async def one() -> None:
        nonlocal answered
        while time.monotonic() < until:
            number = next(numbers)
            kinds = (
                {"question": f"where is function_{number % 40}_{number % 30} defined"},
                {"question": f"how does function {number} return a value"},
                {"question": f"when was function_{number % 40}_1 introduced", "intent": "history"},
                {"question": f"no such thing as qwertz{number}"},
                {"question": "", "limit": number},
            )
            with anyio.move_on_after(0.02 if number % 13 == 0 else 30):
                answer = await router.search(kinds[number % len(kinds)])
                answered += answer.status is Status.ANSWERED

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(one)
    return answered


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(400)
async def test_two_minutes_of_questions_leak_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    work = Path(os.environ["SOAK_ROOT"]) if "SOAK_ROOT" in os.environ else make_work(tmp_path / "work", files=120, commits=400)
    numbers, seen = count(), list[Resources]()
    async with open_router(roots=[work], environ=home.environ) as router:
        await ask_for(router, SECONDS * WARM_SHARE, numbers)
        seen.append(resources_of(os.getpid()))
        answered = 0
        for _ in range(3):
            answered += await ask_for(router, SECONDS * (1 - WARM_SHARE) / 3, numbers)
            seen.append(resources_of(os.getpid()))
    print(json.dumps({"answered": answered, "asked": next(numbers), "resources": [str(r) for r in seen]}))
    assert answered > 20
    first, last = seen[0], seen[-1]
    assert last.files <= first.files + 2
    assert last.threads <= first.threads + 4
    assert last.rss_mib <= first.rss_mib * 1.2 + 20
