"""An expert that could only repeat what another one's complete index knows waits until nobody finds anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, ExpertStatus, Status
from tests.repositories import write_files
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio

FILES = {
    "src/jar.py": "class CookieJar:\n    def keep_cookie(self, cookie):\n        return cookie\n",
    "data/large.py": "the quagga sleeps here\n" + "# nothing else\n" * 200_000,
}
"""The second is larger than the index takes, and not than grep reads."""


@pytest.fixture
async def router(tmp_path: Path) -> AsyncGenerator[Router]:
    root = tmp_path / "work"
    root.mkdir()
    write_files(root, FILES)
    async with open_router(roots=[root], environ=environ(tmp_path)) as opened:
        yield opened


async def ask(router: Router, question: str, **more: object) -> Answer:
    return await router.search({"question": question, "intent": "conceptual", **more})


def status_of(answer: Answer, expert: str) -> ExpertStatus:
    return next(e.status for e in answer.experts if e.id == expert)


async def test_before_the_index_is_complete_grep_is_asked_at_once(router: Router) -> None:
    answer = await ask(router, "how are cookies kept")
    assert status_of(answer, "grep") is not ExpertStatus.SKIPPED


async def test_with_a_complete_index_grep_waits_and_the_answer_says_so(router: Router) -> None:
    await ask(router, "how are cookies kept")
    answer = await ask(router, "how are cookies kept in the jar")
    grep = next(e for e in answer.experts if e.id == "grep")
    assert (grep.status, grep.reason) == (ExpertStatus.SKIPPED, "in reserve: the complete index of codesearch holds these words")
    assert answer.status is Status.ANSWERED and answer.evidence[0].path == "src/jar.py"


async def test_what_only_grep_can_see_is_found_by_the_reserve(router: Router) -> None:
    await ask(router, "how are cookies kept")
    answer = await ask(router, "where does the quagga sleep")
    assert [e.path for e in answer.evidence] == ["data/large.py"]
    assert status_of(answer, "grep") is ExpertStatus.OK
    assert [e.id for e in answer.experts].count("grep") == 1
    assert [s.stage for s in answer.stages if s.active].count("reserve") == 1


async def test_a_quoted_text_is_searched_at_once(router: Router) -> None:
    await ask(router, "how are cookies kept")
    assert status_of(await ask(router, 'where is "keep_cookie" used'), "grep") is ExpertStatus.OK
