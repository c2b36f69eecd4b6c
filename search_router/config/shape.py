"""What the schema says about a place in the tree: which keys may stand there, and what a value must be, in words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel

from search_router.config.experts import AnyExpertConfig
from search_router.config.keys import KeyPath, Table, as_array, as_table, value_at
from search_router.config.schema import Config
from search_router.schema import Intent

EXPERT_MODELS: dict[str, type[BaseModel]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(AnyExpertConfig)[0])
}
EXPERT_KEYS = tuple(dict.fromkeys(name for model in EXPERT_MODELS.values() for name in model.model_fields))


def child_keys(path: KeyPath, tree: Table) -> tuple[str, ...]:
    """The keys that may stand directly below a path; for names that users choose, those that the tree has there."""
    match path:
        case ():
            return tuple(Config.model_fields)
        case ("experts", _):
            kind = value_at(tree, (*path, "kind"))
            return tuple(EXPERT_MODELS[kind].model_fields) if isinstance(kind, str) and kind in EXPERT_MODELS else EXPERT_KEYS
        case ("priors",):
            return tuple(intent.value for intent in Intent)
        case ("priors", _):
            return tuple(dict.fromkeys((*(as_table(tree.get("experts")) or {}), *(as_table(value_at(tree, path)) or {}))))
        case ("experts",) | ("workspace", "names" | "groups"):
            return tuple(as_table(value_at(tree, path)) or {})
        case (str(section),) if section in Config.model_fields:
            model = Config.model_fields[section].annotation
            return tuple(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else ()
        case _:
            return ()


def known_keys(tree: Table) -> tuple[KeyPath, ...]:
    """Every key path of two or three names that the schema has for this tree."""
    sections = [(name,) for name in Config.model_fields]
    experts = [("experts", name) for name in child_keys(("experts",), tree)]
    return tuple(
        (*path, name) for path in (*sections, *experts) if path not in (("experts",), ("priors",)) for name in child_keys(path, tree)
    )


@lru_cache(maxsize=1)
def _json_schema() -> Table:
    return Config.model_json_schema()


def node_at(path: KeyPath, tree: Table) -> Table:
    """The JSON Schema of the value at a path; empty when the schema has no such place."""
    node = _json_schema()
    for end, part in enumerate(path, start=1):
        properties, others = as_table(node.get("properties")), as_table(node.get("additionalProperties"))
        if isinstance(part, int):
            below = node.get("items")
        elif properties is not None:
            below = properties.get(part)
        else:
            below = others
        node = _dereference(as_table(below) or {}, value_at(tree, (*path[:end], "kind")))
    return node


def _dereference(node: Table, kind: object) -> Table:
    mapping = as_table(value_at(node, ("discriminator", "mapping")))
    if mapping is None:
        return _definition(node.get("$ref")) or node
    if isinstance(kind, str) and kind in mapping:
        return _definition(mapping[kind])
    # A block without a sound kind: what any kind says of a key is better than nothing.
    properties = {name: below for reference in mapping.values() for name, below in _definition(reference)["properties"].items()}
    return {"type": "object", "properties": properties}


def _definition(reference: object) -> Table:
    if not isinstance(reference, str):
        return {}
    return as_table(value_at(_json_schema(), tuple(reference.removeprefix("#/").split("/")))) or {}


def choices_of(node: Table) -> tuple[str, ...]:
    """The allowed values, when there is a list of them."""
    if "const" in node:
        return (str(node["const"]),)
    return tuple(str(choice) for choice in as_array(node.get("enum")) or ())


def words_for_type(node: Table) -> str:
    """What kind of value belongs there: `a whole number between 1 and 64`, `an array of strings`."""
    if choices := choices_of(node):
        return f"one of {', '.join(choices)}"
    if node.get("type") == "array":
        items = _dereference(as_table(node.get("items")) or {}, None)
        return f"an array of {_PLURAL.get(items.get('type'), 'values')}"
    range_ = words_for_range(node)
    return f"{_SINGULAR.get(node.get('type'), 'another type')}{f' {range_}' if range_ else ''}"


def words_for_range(node: Table) -> str:
    """`between 1 and 64`, `of at least 1024`, or nothing."""
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"of at least {low}" if low is not None else f"of at most {high}" if high is not None else ""


_SINGULAR: dict[Any, str] = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "object": "a table",
}
_PLURAL: dict[Any, str] = {"string": "strings", "integer": "whole numbers", "number": "numbers"}
