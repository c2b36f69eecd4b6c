"""The same question for the same files is answered once; and never by an old answer."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_router.router.enrich.database import FILE_NAME
from search_router.schema import EmptyReason, Status
from tests.repositories import commit_all, git
from tests.router.enrich.workshop import FILES, OFF, QUESTIONS, ask, asked, places, told, workshop
from tests.scripted_router import hit, scripted_router

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("cached-answers-name-their-receipt")
async def test_a_question_asked_again_is_a_hit_that_names_the_receipt_that_earned_it(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[0])
        again = await ask(router, QUESTIONS[0])
        assert first.receipt is not None and again.receipt is not None
        assert (first.status, again.status) == (Status.ANSWERED, Status.CACHED)
        assert again.evidence == first.evidence and asked(again) == [] and again.budget.asked == 0
        predicate = (await router.receipt(again.receipt.id)).statement["predicate"]
        assert (predicate["status"], predicate["cache"]) == ("cached", f"hit {first.receipt.id}")
        assert [item["id"] for item in predicate["items"]] == [item.id for item in first.evidence]
        reasons = {report.id: report.reason for report in again.experts}
        assert all(reasons[name] == f"cache: nothing has changed since receipt {first.receipt.id}" for name in asked(first))
        assert len(reasons) == len(router.experts)


async def test_a_question_that_found_nothing_is_remembered_too_and_says_so_with_its_reason(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, "xyzzyplugh")
        again = await ask(router, "xyzzyplugh")
        assert (first.status, first.empty_reason) == (Status.EMPTY, EmptyReason.NO_MATCHES)
        assert (again.status, again.empty_reason, again.evidence) == (Status.CACHED, EmptyReason.NO_MATCHES, ())
        assert "No evidence (no_matches)" in router.render(again)
        (tmp_path / "repo/new.py").write_text("xyzzyplugh = 1\n")
        found = await ask(router, "xyzzyplugh")
        assert [item.path for item in found.evidence] == ["new.py"]


async def test_times_of_zero_switch_either_kind_off(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=["cache.positive_seconds=0"]) as router:
        assert [(await ask(router, QUESTIONS[0])).status for _ in range(2)] == [Status.ANSWERED] * 2
        assert [(await ask(router, "xyzzyplugh")).status for _ in range(2)] == [Status.EMPTY, Status.CACHED]
    async with workshop(tmp_path, flags=OFF) as router:
        assert [(await ask(router, "xyzzyplugh")).status for _ in range(2)] == [Status.EMPTY] * 2
        assert told(await ask(router, QUESTIONS[0])) == "off: switched off in the configuration"


async def test_another_process_finds_what_this_one_has_learned_and_an_edit_in_between_counts(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        await rest(tmp_path / "repo")
        first = await ask(router, QUESTIONS[0])
    async with workshop(tmp_path) as router:
        again = await ask(router, QUESTIONS[0])
        assert (again.status, places(again)) == (Status.CACHED, places(first))
    (tmp_path / "repo/shop/retry.py").write_text("RETRY = 'of a charge'\n")
    async with workshop(tmp_path) as router:
        after = await ask(router, QUESTIONS[0])
        assert after.status is Status.ANSWERED and places(after) != places(first)


async def rest(root: Path) -> None:
    """Make files and folders older than the time in which a stamp proves nothing."""
    old = time.time() - 60
    for path in (root, *root.rglob("*")):
        if ".git" not in path.parts:
            os.utime(path, (old, old))
    # ctime cannot be set back: it is what the house relies on.
    await anyio.sleep(2.1)


async def test_a_setting_that_changes_answers_is_another_question(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        await ask(router, QUESTIONS[0])
        changed: list[dict[str, Any]] = [
            {"limit": 2},
            {"detail": "full"},
            {"expected_shape": "symbol-list"},
            {"scope": {"path": "shop"}},
            {"scope": {"language": "python"}},
            {"filters": {"tags": ["x"]}},
            {"intent": "docs"},
            {"budget": {"max_experts": 1}},
        ]
        for more in changed:
            assert (await ask(router, QUESTIONS[0], **more)).status is not Status.CACHED, more
        assert (await ask(router, QUESTIONS[0], budget={"latency_ms": 59_000})).status is Status.CACHED
    async with workshop(tmp_path, flags=["fusion.test_penalty=0.2"]) as router:
        assert (await ask(router, QUESTIONS[0])).status is Status.ANSWERED


async def test_projects_that_one_may_not_see_have_answers_of_their_own(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        await ask(router, QUESTIONS[0])
        other = tmp_path / "repo/shop"
        view = await router.within([other])
        assert (await ask(view, QUESTIONS[0])).status is Status.ANSWERED


async def test_pages_of_a_cached_answer_belong_together_for_every_wording(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        whole = await ask(router, "how does the retry of a charge work")
        await ask(router, "how does the retry of a charge work", limit=1)
        first = await ask(router, "How does the retry of a charge work?", limit=1)
        assert first.status is Status.CACHED and first.cut.cursor is not None
        second = await ask(router, "How does the retry of a charge work?", limit=1, cursor=first.cut.cursor)
        assert [item.id for item in (*first.evidence, *second.evidence)] == [item.id for item in whole.evidence[:2]]


@pytest.mark.behaviour("partial-answers-are-not-cached")
async def test_an_answer_with_a_failure_or_a_part_left_out_is_not_given_again(tmp_path: Path) -> None:
    fails = {"when": "*", "fault": "unavailable"}
    for name, answer in {"fails": fails, "part": {"when": "*", "hits": [hit()], "partial": "not all was read"}}.items():
        scripts = {"sound": [{"when": "*", "hits": [hit()]}], "other": [answer]}
        async with scripted_router(tmp_path, scripts, flags=['cache.also=["sound","other"]']) as router:
            for _ in range(3):
                assert (await ask(router, f"where does {name} start")).status is Status.ANSWERED


async def test_experts_that_answer_from_elsewhere_are_not_remembered_unless_the_configuration_says_so(tmp_path: Path) -> None:
    scripts = {"remote": [{"when": "*", "hits": [hit()]}]}
    async with scripted_router(tmp_path, scripts) as router:
        assert [(await ask(router, "where does it start")).status for _ in range(2)] == [Status.ANSWERED] * 2
        assert told(await ask(router, "where does it start")) == "off: what remote answers from cannot be told here"
    async with scripted_router(tmp_path, scripts, flags=['cache.also=["remote"]']) as router:
        statuses = [(await ask(router, "where does it start")).status for _ in range(4)]
        assert statuses[-1] is Status.CACHED
        assert (await ask(router, "Where does it start?")).status is Status.ANSWERED  # its wording is nobody's to judge


async def test_identical_questions_at_once_are_asked_once_and_each_has_its_receipt(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        await ask(router, QUESTIONS[4])
        answers: list[Any] = []

        async def one(question: str) -> None:
            answers.append(await router.search({"question": question}))

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(one, QUESTIONS[1] if number % 2 else f"{QUESTIONS[1]}?")
        assert sorted(a.status.value for a in answers) == ["answered", *["cached"] * 7]
        assert len({a.receipt.id for a in answers}) == 8
        earned = next(a.receipt.id for a in answers if a.status is Status.ANSWERED)
        assert {told(a) for a in answers if a.status is Status.CACHED} == {f"shared {earned}"}


async def test_who_leaves_takes_nobody_along(tmp_path: Path) -> None:
    """The first of three is cancelled in the middle: the others get their answers, and one of them asks for both."""
    script = [{"when": "*", "hits": [hit(start=1)], "delay_ms": 300}]
    files = {"src/app.py": "def start():\n    pass\n"}
    async with scripted_router(tmp_path, {"slow": script}, files=files, flags=['cache.also=["slow"]']) as router:
        git(tmp_path / "work", "init", "--quiet")
    async with scripted_router(tmp_path, {"slow": script}, files=files, flags=['cache.also=["slow"]', "budget.latency_ms=20000"]) as router:
        await ask(router, "which parser comes first")
        answers: list[Any] = []

        async def one() -> None:
            answers.append(await router.search({"question": "where does it start"}))

        async with anyio.create_task_group() as tasks:
            leaving = anyio.CancelScope()

            async def first() -> None:
                with leaving:
                    await one()

            tasks.start_soon(first)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(one)
            tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel()
        assert sorted(a.status.value for a in answers) == ["answered", "cached"]


async def test_a_damaged_row_is_asked_anew_and_a_damaged_file_changes_no_answer(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[0])
    with sqlite3.connect(tmp_path / "home" / FILE_NAME) as database:
        database.execute("UPDATE answers SET entry = x'00'")
    database.close()
    async with workshop(tmp_path) as router:
        assert (await ask(router, QUESTIONS[0])).status is Status.ANSWERED
    (tmp_path / "home" / FILE_NAME).write_bytes(b"rubbish" * 5000)
    async with workshop(tmp_path) as router:
        again = await ask(router, QUESTIONS[0])
        assert places(again) == places(first) and any(FILE_NAME in note for note in (await router.registry()).notes)


STEPS = ("edit", "edit", "same size", "new", "delete", "commit", "switch", "back", "rename", "touch", "nothing")


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), steps=st.lists(st.sampled_from(STEPS), min_size=6, max_size=10))
async def test_whatever_happens_to_the_repository_no_answer_is_an_old_one(tmp_path: Path, seed: int, steps: list[str]) -> None:
    await go_through(tmp_path / f"run{time.monotonic_ns()}", seed, steps, 2)


@pytest.mark.behaviour("never-an-old-answer")
async def test_edits_commits_and_switches_never_bring_back_an_old_answer(tmp_path: Path) -> None:
    await go_through(tmp_path / "run", 3, ["nothing", "same size", "commit", "switch", "edit", "back"], 1)


async def go_through(folder: Path, seed: int, steps: list[str], questions: int) -> None:
    """Beside a router with neither cache nor hints: the same items with the same content, after every step."""
    root = folder / "repo"
    folder.mkdir()
    hits = 0
    async with workshop(folder) as router, workshop(folder / "oracle", root=root, flags=OFF) as oracle:
        git(root, "branch", "other")
        chance = random.Random(seed)
        for number, step in enumerate(steps):
            act(root, step, chance, number)
            for question in chance.sample(QUESTIONS[:4], questions):
                answers = [await ask(router, question), await ask(router, question), await ask(oracle, question)]
                content = {item.path: item.content_hash for item in answers[-1].evidence}
                for answer in answers[:2]:
                    assert all(content.get(item.path, item.content_hash) == item.content_hash for item in answer.evidence), (step, question)
                if told(answers[1]).startswith("hit"):
                    hits += 1
                    assert places(answers[1]) == places(answers[-1]), (step, question)
    assert hits
    shutil.rmtree(folder)


def act(root: Path, step: str, chance: random.Random, number: int) -> None:
    names = sorted(name for name in FILES if name.endswith(".py") and (root / name).exists())
    some = root / (chance.choice(names) if names else "shop/retry.py")
    some.parent.mkdir(parents=True, exist_ok=True)
    match step:
        case "edit":
            some.write_text(f"{FILES['shop/retry.py']}\n# a charge, retried {number} times\n")
        case "same size":
            text = some.read_text() if some.exists() else ""
            some.write_text(text.replace("order", "redro") if "order" in text else text.replace("retry", "yrter"))
        case "new":
            (root / f"shop/more{number}.py").write_text(f"def should_retry_{number}(charge):\n    return charge\n")
        case "delete":
            some.unlink(missing_ok=True)
        case "rename":
            if some.exists():
                some.rename(some.with_name(f"renamed{number}.py"))
        case "touch":
            some.touch()
        case "commit":
            (root / "mark.md").write_text(f"retry {number}\n")
            commit_all(root, f"retry of a charge {number}")
        case "switch" | "back":
            git(root, "checkout", "--force", "--quiet", "other" if step == "switch" else "main")
        case _:
            pass
