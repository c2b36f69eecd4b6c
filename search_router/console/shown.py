"""A receipt's predicate as its page needs it. Whoever can write the store can put anything there, so nothing of it is taken on trust: what
has another shape than ours counts as not there, what is long is cut, and the page says what verification says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

MOST: Final = 200
"""Entries of one list that are shown."""
LONGEST: Final = 4_096
RECEIPT_ID: Final = "[0-9a-f]{12}:[1-9][0-9]{0,17}"
_MENTIONED: Final = re.compile(rf"(?<![0-9a-f]){RECEIPT_ID}(?![0-9])")


class Asked(NamedTuple):
    """One expert call."""

    expert: str
    status: str
    reason: str
    latency_us: int
    results: int
    server: str
    error: str
    sub_query: str


class Stage(NamedTuple):
    name: str
    active: bool
    reason: str
    came_in: int
    went_out: int
    time_us: int


class Item(NamedTuple):
    """One item of evidence; `sources` as `expert#rank`."""

    id: str
    tier: str
    sources: tuple[str, ...]


class Use(NamedTuple):
    """Something of an earlier receipt that was used: what is said of it, and that receipt's id."""

    words: str
    receipt: str | None


class Told(NamedTuple):
    """An outcome that this receipt tells of an earlier one."""

    outcome: str
    source: str
    of: Use
    refused: str
    credited: tuple[str, ...]


class Shown(NamedTuple):
    """All of it; times are microseconds, None where the receipt has none."""

    operation: str
    principal: str | None
    session: str
    intent: str
    abstained: bool
    rules: tuple[str, ...]
    used_us: int | None
    latency_us: int | None
    config_version: str
    config_hash: str
    code_version: str
    code_commit: str
    dirty: bool
    error: str
    question: str
    question_classes: tuple[str, ...]
    asked: tuple[Asked, ...]
    left_out: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    items: tuple[Item, ...]
    item_count: int
    fetched: tuple[str, ...]
    cache: Use | None
    hints: tuple[Use, ...]
    outcomes: tuple[Told, ...]
    notes: tuple[str, ...]


def show_predicate(predicate: object) -> Shown:
    """Whatever can be shown of it."""
    facts = members(predicate)
    classification, budget = members(facts.get("classification")), members(facts.get("budget"))
    config, code, plan = members(facts.get("config")), members(facts.get("code")), members(facts.get("plan"))
    error, question = members(facts.get("error")), members(facts.get("question"))
    sub_queries = {text(c.get("expert")): _sub_query(c.get("sub_query")) for c in records(plan.get("chosen"))}
    items, fetched = records(facts.get("items")), records(facts.get("fetched"))
    return Shown(
        operation=text(facts.get("operation")),
        principal=text(facts.get("principal")) or None,
        session=text(facts.get("session")),
        intent=text(classification.get("intent")),
        abstained=classification.get("abstained") is True,
        rules=tuple(text(rule.get("rule")) for rule in records(classification.get("rules"))),
        used_us=number(budget.get("used_us")),
        latency_us=number(budget.get("latency_us")),
        config_version=text(config.get("version")),
        config_hash=text(config.get("hash")),
        code_version=text(code.get("version")),
        code_commit=text(code.get("commit")),
        dirty=code.get("dirty") is True,
        error=" ".join(filter(None, (text(error.get("code")), text(error.get("message")), text(error.get("remedy"))))),
        question=text(question.get("text")),
        question_classes=words(facts.get("question_classes")),
        asked=tuple(_asked(expert, sub_queries) for expert in records(facts.get("experts"))),
        left_out=tuple((text(e.get("expert")), text(e.get("reason"))) for e in records(plan.get("left_out"))),
        stages=tuple(_stage(stage) for stage in records(facts.get("stages"))),
        items=tuple(_item(item) for item in items),
        item_count=len(listed(facts.get("items"))) or len(listed(facts.get("fetched"))),
        fetched=tuple(text(f.get("id")) for f in fetched),
        cache=_use(facts.get("cache")) if facts.get("cache") else None,
        hints=tuple(_use(hint) for hint in listed(facts.get("hints"))[:MOST]),
        outcomes=tuple(_told(outcome) for outcome in records(facts.get("outcomes"))),
        notes=words(facts.get("notes")),
    )


def text(value: object) -> str:
    """A string, cut to LONGEST; empty for anything else."""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"


def number(value: object) -> int | None:
    """A whole number that is not negative and fits a table; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def members(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[object]:
    """A JSON array; empty for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def records(value: object) -> list[Mapping[str, Any]]:
    """The objects of a JSON array, at most MOST."""
    return [found for each in listed(value)[:MOST] if (found := members(each))]


def words(value: object) -> tuple[str, ...]:
    """The strings of a JSON array, at most MOST."""
    return tuple(text(each) for each in listed(value)[:MOST] if isinstance(each, str))


def _asked(expert: Mapping[str, Any], sub_queries: Mapping[str, str]) -> Asked:
    server, name = members(expert.get("server")), text(expert.get("expert"))
    return Asked(
        expert=name,
        status=text(expert.get("status")),
        reason=text(expert.get("reason")),
        latency_us=number(expert.get("latency_us")) or 0,
        results=number(expert.get("results")) or 0,
        server=f"{text(server.get('name'))} {text(server.get('version'))}".strip(),
        error=text(expert.get("error")),
        sub_query=sub_queries.get(name, ""),
    )


def _sub_query(value: object) -> str:
    return text(value) or text(members(value).get("text"))


def _stage(stage: Mapping[str, Any]) -> Stage:
    return Stage(
        name=text(stage.get("stage")),
        active=stage.get("active") is True,
        reason=text(stage.get("reason")),
        came_in=number(stage.get("in")) or 0,
        went_out=number(stage.get("out")) or 0,
        time_us=number(stage.get("time_us")) or 0,
    )


def _item(item: Mapping[str, Any]) -> Item:
    sources = tuple(f"{text(s.get('expert'))}#{number(s.get('rank'))}" for s in records(item.get("sources")))
    return Item(text(item.get("id")), text(item.get("tier")), sources)


def _use(value: object) -> Use:
    said = text(value) or ", ".join(f"{name} {each}" for name, each in members(value).items() if isinstance(each, str | int))[:LONGEST]
    found = _MENTIONED.search(said)
    return Use(said, found[0] if found is not None else None)


def _told(outcome: Mapping[str, Any]) -> Told:
    credited = tuple(
        f"{text(c.get('expert'))}: {number(c.get('reward_pm'))} ‰ for {text(c.get('evidence'))}" for c in records(outcome.get("credited"))
    )
    of = _use(outcome.get("of"))
    return Told(text(outcome.get("outcome")), text(outcome.get("source")), of, text(outcome.get("refused")), credited)
