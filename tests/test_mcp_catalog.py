"""What the server says about itself stays true, valid and portable."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from search_router.mcp_catalog import INSTRUCTIONS, tools
from search_router.schema import Intent, SearchRequest
from tests.server_child import PRODUCT, ROOT, child_env


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sub-schema with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}.{key}")
    for number, child in enumerate(schema.get("anyOf", [])):
        yield from nodes(child, f"{path}.anyOf{number}")


ALL = [(f"{t.name} {side}", s) for t in tools() for side, s in (("in", t.input_schema), ("out", t.output_schema or {}))]


@pytest.mark.parametrize(("name", "schema"), ALL, ids=[name for name, _ in ALL])
def test_every_schema_is_valid_and_free_of_references_titles_and_type_lists(name: str, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    for path, node in nodes(schema):
        assert not {"$ref", "$defs", "allOf", "oneOf"} & node.keys(), path
        assert not isinstance(node.get("title"), str), path
        assert not isinstance(node.get("type"), list), path
        assert {"type", "anyOf", "enum"} & node.keys(), path


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_every_parameter_is_described_and_no_unknown_one_is_allowed(tool: Any) -> None:
    for path, node in nodes(tool.input_schema):
        if node["type"] == "object":
            assert node["additionalProperties"] is False, path
        for name, child in node.get("properties", {}).items():
            assert child.get("description"), f"{path}.{name}"
            assert {"type": "null"} not in child.get("anyOf", []), f"{path}.{name}"


def test_the_search_schema_carries_the_bounds_and_enumerations_of_the_request() -> None:
    properties = tools()[0].input_schema["properties"]
    assert properties.keys() == SearchRequest.model_fields.keys()
    assert properties["intent"]["enum"] == [i.value for i in Intent]
    assert (properties["limit"]["minimum"], properties["limit"]["maximum"]) == (1, 100)
    assert properties["budget"]["properties"]["latency_ms"] == {
        "description": "Time for the whole request, in milliseconds.",
        "minimum": 1,
        "maximum": 600_000,
        "type": "integer",
    }
    assert "envelope" not in (tools()[0].output_schema or {})["properties"]["receipt"]["anyOf"][0]["properties"]


PUBLISHED = {
    "search_knowledge": ("request", "answer"),
    "fetch_evidence": ("fetch_request", "fetch_answer"),
    "expert_registry": (None, "registry"),
    "get_receipt": (None, "receipt"),
    "report_outcome": ("outcome_request", "outcome_answer"),
}


def resolved(node: Any, definitions: dict[str, Any]) -> Any:
    """A schema with its references put in and its titles left out."""
    if isinstance(node, list):
        return [resolved(child, definitions) for child in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return resolved(definitions[node["$ref"].removeprefix("#/$defs/")] | {k: v for k, v in node.items() if k != "$ref"}, definitions)
    return {k: resolved(v, definitions) for k, v in node.items() if k != "$defs" and not (k == "title" and isinstance(v, str))}


def test_the_output_schemas_are_the_published_ones_but_for_the_envelope_which_travels_in_meta() -> None:
    done = subprocess.run([*PRODUCT, "schema", "--json"], cwd=ROOT, env=child_env(), capture_output=True, timeout=60, check=True)
    published = json.loads(done.stdout)
    assert published.keys() == {name for pair in PUBLISHED.values() for name in pair if name}
    for schema in published.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for tool in tools():
        schema = published[PUBLISHED[tool.name][1]]
        whole = resolved(schema, schema.get("$defs", {}))
        for branch in whole["properties"].get("receipt", {}).get("anyOf", []):
            branch.get("properties", {}).pop("envelope", None)
        assert tool.output_schema == whole


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_descriptions_say_what_comes_back_and_when_not_to_use_the_tool(tool: Any) -> None:
    assert "Returns" in tool.description
    assert "Not " in tool.description
    assert "Use it " in tool.description
    assert len(tool.description) <= 800


def test_the_instructions_are_short_and_teach_what_matters() -> None:
    assert len(INSTRUCTIONS) <= 1200
    for word in ("ONE question", "Split", "scope", "tier", "nuance", "fetch_evidence", "empty", "failed"):
        assert word in INSTRUCTIONS


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").glob("conformance-baseline-*.yml")), ids=lambda path: path.stem)
def test_every_expected_failure_of_the_conformance_suite_has_its_reason(path: Path) -> None:
    entries = [line for line in path.read_text().splitlines() if line.startswith("  - ")]
    assert entries
    assert all(len(line.partition(" # ")[2]) > 20 for line in entries)
