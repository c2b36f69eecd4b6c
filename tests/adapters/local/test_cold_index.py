"""The first question on a large tree: answered soon from what is ready, with progress, the likely files first; the next finds more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from search_router.adapters.local.changed_files import in_order
from search_router.adapters.local.symbol_state import Changed
from search_router.adapters.local.symbol_store import FileStamp
from search_router.router.opening import open_router
from search_router.schema import Answer, ExpertStatus, Status
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio
CAP_MS = 8000
FLAGS = (
    f"experts.codesearch.cap_ms={CAP_MS}",
    f"experts.symbols.cap_ms={CAP_MS}",
    f"budget.latency_ms={CAP_MS}",
    "experts.symbols.workers=1",
)


def make_tree(root: Path, files: int) -> None:
    """So many files of some work each, of which `parcel/labels.py` is asked for; by its name it comes in the middle."""
    body = "".join(f"def step_{n}(order, value):\n    return compute_total(order.items[{n}], value, rate={n})\n" for n in range(150))
    for folder in ("aaa", "zzz"):
        (root / folder).mkdir(parents=True)
        for number in range(files // 2):
            (root / folder / f"m{number}.py").write_text(f"def f{number}(): pass\n{body}")
    (root / "parcel").mkdir()
    (root / "parcel" / "labels.py").write_text("def print_parcel_labels(order):\n    return order\n")


def report_of(answer: Answer, expert: str) -> tuple[ExpertStatus, str]:
    return next((each.status, each.reason) for each in answer.experts if each.id == expert)


async def test_a_cold_question_is_answered_soon_from_the_likely_files_and_the_next_finds_more(tmp_path: Path) -> None:
    make_tree(tmp_path / "work", 2600)
    told: list[tuple[str, float]] = []

    async def progress(message: str, done: float, total: int) -> None:
        told.append((message, done))

    async with open_router(roots=[tmp_path / "work"], environ=environ(tmp_path), flags=FLAGS) as router:
        began = time.monotonic()
        first = await router.search({"question": "how are parcel labels printed"}, progress=progress)
        took = time.monotonic() - began
        status, reason = report_of(first, "codesearch")
        assert status is ExpertStatus.OK and "of 2601 files; ask again for the rest" in reason
        assert first.status is Status.ANSWERED and first.evidence[0].path == "parcel/labels.py"
        assert took < 0.75 * CAP_MS / 1000, "it did not wait to the end of its budget"
        counted = [(message, done) for message, done in told if "indexed" in message and "of 2601 files" in message]
        assert counted and [done for _, done in told] == sorted(done for _, done in told)
        second = await router.search({"question": "how are parcel labels printed"})

    def ready(text: str) -> int:
        return int(text.partition("indexed ")[2].partition(" of")[0] or 2601)

    assert ready(report_of(second, "codesearch")[1]) > ready(reason)


def test_paths_with_the_words_of_the_question_come_first_then_source_then_tests_then_the_rest() -> None:
    def changed(path: str, language: str = "python") -> Changed:
        return Changed(path, language, FileStamp(1, 1, 1))

    files = [
        changed("docs/cart.md", "markdown"),
        changed("vendor/x.py"),
        changed("tests/test_cookie.py"),
        changed("a.py"),
        changed("readme.md", "markdown"),
        changed("net/cookie_jar.py"),
        changed("tests/test_a.py"),
    ]
    assert [each.path for each in in_order(files, {"cook", "jar"})] == [
        "net/cookie_jar.py",
        "tests/test_cookie.py",
        "a.py",
        "tests/test_a.py",
        "docs/cart.md",
        "readme.md",
        "vendor/x.py",
    ]
