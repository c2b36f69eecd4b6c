"""Mistakes that no single value shows: names that point at nothing, experts that nothing would ever pick."""

from __future__ import annotations

import re
from collections.abc import Iterator

from search_router.config.keys import Table, as_array, as_table, show_value, value_at, walk_leaves
from search_router.config.layers import Finding
from search_router.config.mistakes import did_you_mean
from search_router.config.remote_checks import KINDS, check_remote

EXPERT_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def check_across(tree: Table) -> Iterator[Finding]:
    """Every mistake between the parts of a merged tree whose single values are sound (parts may be missing)."""
    experts = as_table(tree.get("experts")) or {}
    yield from _check_ids(experts)
    yield from _check_default_set(tree, experts)
    yield from _check_reserve(tree, experts)
    yield from _check_priors(tree, experts)
    yield from _check_groups(tree)
    yield from _check_advisers(tree)
    for name, block in experts.items():
        if (table := as_table(block)) is not None and table.get("kind") in KINDS:
            yield from check_remote(name, table)


def check_decimals(values: Table) -> Iterator[Finding]:
    """Every number with a fraction is a weight, and receipts carry weights per mille: more than three decimals would be lost."""
    for path, value in walk_leaves(values):
        if isinstance(value, float) and abs(value * 1000 - round(value * 1000)) > 1e-9:
            yield path, f"must have at most 3 decimals, got {value}"


def _check_ids(experts: Table) -> Iterator[Finding]:
    """An expert's id stands in receipts, texts and command lines."""
    for name in experts:
        if not EXPERT_ID.fullmatch(name):
            yield ("experts", name), "is no id: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"


def _check_default_set(tree: Table, experts: Table) -> Iterator[Finding]:
    for index, name in enumerate(as_array(value_at(tree, ("gate", "default_set"))) or ()):
        if name not in experts:
            yield ("gate", "default_set", index), f"names an unknown expert {show_value(name)}{_hint(name, experts)}"


def _check_reserve(tree: Table, experts: Table) -> Iterator[Finding]:
    for name, other in (as_table(value_at(tree, ("gate", "reserve"))) or {}).items():
        for each in (name, other):
            if each not in experts:
                yield ("gate", "reserve", name), f"names an unknown expert {show_value(each)}{_hint(each, experts)}"


def _check_priors(tree: Table, experts: Table) -> Iterator[Finding]:
    named: set[str] = set()
    for intent, priors in (as_table(tree.get("priors")) or {}).items():
        for name in as_table(priors) or {}:
            named.add(name)
            if name not in experts:
                yield ("priors", intent, name), f"names an unknown expert{_hint(name, experts)}"
    for name, block in experts.items():
        enabled = (as_table(block) or {}).get("enabled", True)
        if enabled and name not in named:
            yield ("experts", name), f"is enabled but has no prior for any intent; set priors.<intent>.{name}, or enabled = false"


def _check_groups(tree: Table) -> Iterator[Finding]:
    for group, members in (as_table(value_at(tree, ("workspace", "groups"))) or {}).items():
        ids = as_array(members) or ()
        if not ids:
            yield ("workspace", "groups", group), "has no members"
        seen: set[str] = set()
        for index, member in enumerate(ids):
            if member == "":
                yield ("workspace", "groups", group, index), "must not be empty"
            elif member in seen:
                yield ("workspace", "groups", group, index), f"names {show_value(member)} twice"
            seen.add(member)


NEEDED = {
    "rerank": {"cross-encoder": {"model": "the folder of a model"}, "http": {"url": "the whole address of a server"}},
    "llm": {"chat-completions": {"url": "the address of a server up to and with /v1", "model": "the name of a model"}},
}
"""What a kind of reranker or language model cannot do without."""


def _check_advisers(tree: Table) -> Iterator[Finding]:
    for section, kinds in NEEDED.items():
        settings = as_table(tree.get(section)) or {}
        for key, what in kinds.get(str(settings.get("kind")), {}).items():
            if settings.get(key) == "":
                yield (section, "kind"), f"is {show_value(settings.get('kind'))}, which needs {section}.{key}, {what}"


def _hint(name: object, experts: Table) -> str:
    known = tuple(experts)
    return did_you_mean(name, known) or f"; there are {', '.join(known)}"
