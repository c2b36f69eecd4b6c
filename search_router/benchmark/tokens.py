"""How much an agent has to read before it has the target: the text of an answer, as the MCP tool gives it, cut after so many tokens.

A target is inside the first N tokens when the whole block of an item that hits it (its heading with the path, and its snippet) ends
before token N. `any` is the share of questions with a target inside; `all` the mean share of a question's targets that are inside.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.benchmark.arms import SHIPPED, ablation_arms, named_arms, read_weights
from search_router.benchmark.asking import Answers, Arm, Asked, ask_everything, failures_of
from search_router.benchmark.gains import is_hit
from search_router.benchmark.quality import Data
from search_router.benchmark.report import circumstances, write_line, write_table
from search_router.benchmark.timing import quantile
from search_router.benchmark.token_counter import TokenCounter, best_counter

BUDGETS: Final = (500, 1000, 2000, 4000)


class Block(NamedTuple):
    """One item in a text: where it begins and ends, in characters."""

    start: int
    end: int


def item_blocks(text: str, ids: Sequence[str]) -> list[Block | None]:
    """Where each item of evidence stands in the text, from its heading to the next item's; None for one that was cut."""
    starts: list[int | None] = []
    position = 0
    for each in ids:
        at = text.find(f". {each}", position)
        starts.append(None if at < 0 else text.rfind("\n", 0, at) + 1)
        position = position if at < 0 else at + 2 + len(each)
    shown = [start for start in starts if start is not None] + [len(text)]
    ends = dict(pairwise(shown))
    return [None if start is None else Block(start, ends[start]) for start in starts]


def tokens_to_targets(asked: Asked, counter: TokenCounter) -> list[float]:
    """For each target the tokens of the text up to the end of the first item that hits it; infinite when none does."""
    blocks = item_blocks(asked.text, asked.ids)
    needed: list[float] = []
    for target in asked.question.targets:
        hits = [b for b, r in zip(blocks, asked.results, strict=True) if b is not None and is_hit(r, target)]
        needed.append(float(counter.tokens_of(asked.text[: hits[0].end].rstrip())) if hits else float("inf"))
    return needed


def run(data: Data, arms: Sequence[str] = (), flags: Sequence[str] = (), *, limit: int = 10) -> dict[str, object]:
    """Shares by budget and tokens an item, of each arm.

    Raises:
        UnusableData, ConfigError
    """
    counter = best_counter()
    with tempfile.TemporaryDirectory() as name:
        plan = data.plan(Path(name), texts=True, limit=limit)
        chosen = named_arms(arms or [SHIPPED], ablation_arms(read_weights(Path(name), flags)))
        answered = ask_everything(plan, [Arm(arm.name, (*flags, *arm.flags)) for arm in chosen])
    return {
        "questions": len(plan.questions),
        "limit": limit,
        "tokens": counter.name,
        "exact": counter.exact,
        "circumstances": circumstances(),
        "arms": {each.arm.name: _figures(each, counter) for each in answered},
    }


def _figures(answers: Answers, counter: TokenCounter) -> dict[str, object]:
    needed = [tokens_to_targets(asked, counter) for asked in answers.asked.values()]
    blocks = [
        counter.tokens_of(asked.text[block.start : block.end])
        for asked in answers.asked.values()
        for block in item_blocks(asked.text, asked.ids)
        if block is not None
    ]
    texts = [counter.tokens_of(asked.text) for asked in answers.asked.values()]
    return {
        "any": {str(n): round(statistics.fmean(min(each) <= n for each in needed), 4) for n in BUDGETS},
        "all": {str(n): round(statistics.fmean(statistics.fmean(t <= n for t in each) for each in needed), 4) for n in BUDGETS},
        "ever": round(statistics.fmean(min(each) < float("inf") for each in needed), 4),
        "tokens_an_item": {"p50": quantile(blocks, 0.5), "p95": quantile(blocks, 0.95)} if blocks else {},
        "tokens_an_answer": {"p50": quantile(texts, 0.5), "p95": quantile(texts, 0.95)},
        "failed_experts": failures_of(answers),
        "flags": list(answers.arm.flags),
    }


def print_shares(result: dict[str, Any]) -> None:
    arms: dict[str, dict[str, Any]] = result["arms"]
    write_line(f"{result['questions']} questions, {result['limit']} items each; tokens: {result['tokens']}; {result['circumstances']}")
    for key in ("any", "all"):
        rows = [
            [
                name,
                *(arm[key][str(n)] for n in BUDGETS),
                arm["ever"] if key == "any" else None,
                arm["tokens_an_item"].get("p50"),
                arm["tokens_an_answer"]["p50"],
            ]
            for name, arm in arms.items()
        ]
        header = ("arm", *(f"{n}" for n in BUDGETS), "ever", "an item p50", "an answer p50")
        write_table(header, rows, f"share with {key} target inside the first N tokens")
