"""Judges a tree against the schema, and says what is wrong with it in words for people."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from search_router.config.keys import KeyPath, Table, as_array, as_table, dotted, show_briefly, show_value, value_at
from search_router.config.schema import Config
from search_router.config.section import ExpertConfig
from search_router.config.shape import (
    EXPERT_KEYS,
    EXPERT_MODELS,
    child_keys,
    choices_of,
    known_keys,
    node_at,
    words_for_range,
    words_for_type,
)

MISSING = "missing"
UNKNOWN_KEY = "extra_forbidden"
UNKNOWN_INTENT = "unknown-intent"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the schema refuses: where, pydantic's name for it, and pydantic's words (used only where we have none)."""

    path: KeyPath
    kind: str
    message: str = ""


# ------------------------------------------------------------------ judging


def judge(tree: Table) -> tuple[Config | None, tuple[Fault, ...]]:
    """The configuration, or everything that the schema has against it.

    Strict, and by way of JSON: there a string is not a number, but an array is a tuple and a string can name an intent.
    """
    try:
        return Config.model_validate_json(_as_json(tree), strict=True), ()
    except ValidationError as refusal:
        faults = [fault for error in _errors(refusal) for fault in _read_error(error, tree)]
    # An array whose elements were refused counts as too short; that is no mistake of its own.
    inside = {fault.path[:-1] for fault in faults}
    return None, tuple(fault for fault in faults if fault.kind != "too_short" or fault.path not in inside)


def _as_json(tree: Table) -> str:
    # JSON has no dates: they become null, which no key of ours accepts, so that they are refused as the wrong type.
    return json.dumps(tree, default=lambda _: None)


def _errors(refusal: ValidationError) -> list[ErrorDetails]:
    return refusal.errors(include_url=False, include_input=False, include_context=False)


def _read_error(error: ErrorDetails, tree: Table) -> Iterator[Fault]:
    path, kind = error["loc"], error["type"]
    if path[-1:] == ("[key]",):
        yield Fault(path[:-1], UNKNOWN_INTENT)
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        yield Fault((*path, "kind"), MISSING if kind == "union_tag_not_found" else "enum")
        yield from _judge_without_kind(path, as_table(value_at(tree, path)) or {})
    else:
        # pydantic puts the union's tag (the kind) behind an expert's id.
        path = (*path[:2], *path[3:]) if path[:1] == ("experts",) and len(path) > 2 else path
        yield Fault(path, kind, error["msg"])


def _judge_without_kind(path: KeyPath, block: Table) -> Iterator[Fault]:
    """What can be said of an expert's block whose kind is not known: its common keys, and keys that no kind has."""
    yield from (Fault((*path, key), UNKNOWN_KEY) for key in block if key not in EXPERT_KEYS)
    common = {key: value for key, value in block.items() if key in ExpertConfig.model_fields}
    yield from (Fault((*path, *fault.path), fault.kind, fault.message) for fault in _faults_of(ExpertConfig, common))


def _faults_of(model: type[BaseModel], values: Table) -> Iterable[Fault]:
    try:
        model.model_validate_json(_as_json(values), strict=True)
    except ValidationError as refusal:
        return tuple(Fault(error["loc"], error["type"], error["msg"]) for error in _errors(refusal))
    return ()


# ------------------------------------------------------------------ words


def describe(fault: Fault, tree: Table) -> str:
    """What is wrong, what it must be and what was found, for a person. Secrets are not shown."""
    value, node = value_at(tree, fault.path), node_at(fault.path, tree)
    got = show_briefly(fault.path, value)
    match fault.kind:
        case "extra_forbidden":
            return f"is not a known key{_did_you_mean_key(fault.path, tree)}"
        case "unknown-intent":
            intents = child_keys(("priors",), tree)
            return f"is not an intent: must be one of {', '.join(intents)}{did_you_mean(str(fault.path[-1]), intents)}"
        case "missing":
            return f"is missing: must be {_words(fault.path, node)}"
        case "enum" | "literal_error":
            choices = _choices(fault.path, node)
            return f"must be one of {', '.join(choices)}, got {got}{did_you_mean(value, choices)}"
        case "greater_than_equal" | "less_than_equal":
            return f"must be {words_for_range(node).removeprefix('of ')}, got {got}"
        case "string_pattern_mismatch":
            return f"must match {node.get('pattern')}, got {got}"
        case "string_too_short":
            return "must not be empty"
        case "too_short":
            return f"must have at least {node.get('minItems')} element(s), got {len(as_array(value) or ())}"
        case kind if kind.endswith("_type"):
            quote = "; put it in quotes to make it a string" if node.get("type") == "string" and _is_scalar(value) else ""
            return f"must be {_words(fault.path, node)}, got {got}{quote}"
        case _:
            return fault.message[:1].lower() + fault.message[1:]


def did_you_mean(name: object, candidates: Sequence[str]) -> str:
    """`; did you mean "x"?` when a candidate looks alike, else nothing."""
    close = difflib.get_close_matches(name, candidates, n=1) if isinstance(name, str) else []
    return f"; did you mean {show_value(close[0])}?" if close else ""


def _did_you_mean_key(path: KeyPath, tree: Table) -> str:
    """The sibling that looks alike, else a key of that name in another section."""
    name, above = str(path[-1]), path[:-1]
    close = difflib.get_close_matches(name, child_keys(above, tree), n=1)
    if close:
        return f"; did you mean {dotted((*above, close[0]))}?"
    elsewhere = [known for known in known_keys(tree) if known[-1] == name]
    return f"; did you mean {dotted(elsewhere[0])}?" if elsewhere else ""


def _choices(path: KeyPath, node: Table) -> tuple[str, ...]:
    return tuple(EXPERT_MODELS) if _is_kind(path) else choices_of(node)


def _words(path: KeyPath, node: Table) -> str:
    return f"one of {', '.join(EXPERT_MODELS)}" if _is_kind(path) else words_for_type(node)


def _is_kind(path: KeyPath) -> bool:
    return len(path) == 3 and path[0] == "experts" and path[2] == "kind"


def _is_scalar(value: object) -> bool:
    return value is not None and as_table(value) is None and as_array(value) is None
