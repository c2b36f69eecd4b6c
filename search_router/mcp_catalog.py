"""What the server says about itself: its instructions, its five tools and their schemas.

Schemas come from the models at the edges, made portable for tool dialects that know no references: definitions are inlined, titles
dropped, and an input field that may be null is just optional.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mcp_types as types
from pydantic import BaseModel

from search_router.answers import FetchAnswer, FetchRequest, OutcomeAnswer, OutcomeRequest, ReceiptAnswer, ReceiptRequest, RegistryAnswer
from search_router.schema import Answer, SearchRequest

TITLE = "Search router"
DESCRIPTION = "One question to many code-search experts: fused evidence with visible trust, and a signed receipt."
INSTRUCTIONS = """\
search_knowledge asks several search experts at once and returns ranked evidence, never conclusions.
- Ask ONE question per call, in plain words or as one identifier. Split a compound question ("where is X defined and who calls it") \
into several calls.
- Use scope (project, path, language) as soon as you know it: fewer wrong hits.
- Before you trust an item read its tier, confidence and flags: typed-graph-confirmed, symbol-confirmed and hybrid-confirmed are \
agreed between engines; semantic-only and the flag stale-index must be checked in the file. Low items carry a nuance that says why.
- A snippet is a hint and ⋯ marks lines left out. fetch_evidence with the item's id gives the full current text.
- More items than a page: pass cut.cursor as cursor with the same question.
- status empty: found nothing and could not look are different, see empty_reason and experts. Rephrase, widen the scope, or try the \
exact name.
- status declined, rejected or failed: the text says what is at fault and what to do; do not send the same again.
- expert_registry shows what can be asked and why an expert is unavailable; get_receipt proves how an answer was made. \
report_outcome tells what helped."""

RECEIPT_TEMPLATE = types.ResourceTemplate(
    name="receipt",
    title="Signed receipt",
    uri_template="receipt://{id}",
    description="The DSSE envelope of one answer's receipt and the statement that it carries.",
    mime_type="application/json",
)

_READ_ONLY = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
_TELLS = types.ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
_DROPPED = frozenset({"title", "$defs"})


def _inlined(node: Any, definitions: dict[str, Any], *, nullable: bool) -> Any:
    """A schema node without references and titles; with `nullable` False also without null branches and null defaults."""
    if isinstance(node, list):
        return [_inlined(child, definitions, nullable=nullable) for child in node]  # pyright: ignore[reportUnknownVariableType] - any JSON Schema
    if not isinstance(node, dict):
        return node
    schema: dict[str, Any] = dict(node)  # pyright: ignore[reportUnknownArgumentType] - any JSON Schema
    if "$ref" in schema:
        name = str(schema.pop("$ref")).removeprefix("#/$defs/")
        schema = {**definitions[name], **schema}
    branches: list[Any] = schema.get("anyOf", [])
    if not nullable and {"type": "null"} in branches:
        rest = [branch for branch in branches if branch != {"type": "null"}]
        schema.pop("anyOf")
        schema = {**(rest[0] if len(rest) == 1 else {"anyOf": rest}), **schema}
        if schema.get("default", ...) is None:
            schema.pop("default")
        return _inlined(schema, definitions, nullable=nullable)
    return {
        key: {name: _inlined(child, definitions, nullable=nullable) for name, child in value.items()}
        if key == "properties"
        else _inlined(value, definitions, nullable=nullable)
        for key, value in schema.items()
        if key not in _DROPPED
    }


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    schema = model.model_json_schema()
    return _inlined(schema, schema.get("$defs", {}), nullable=False)


def output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of structured content. A receipt reference is without its envelope, which travels in `_meta`."""
    schema = model.model_json_schema(mode="serialization", by_alias=True)
    definitions: dict[str, Any] = schema.get("$defs", {})
    definitions.get("ReceiptRef", {}).get("properties", {}).pop("envelope", None)
    return _inlined(schema, definitions, nullable=True)


@cache
def tools() -> tuple[types.Tool, ...]:
    """The five tools. Nothing here changes while the process lives."""
    return (
        types.Tool(
            name="search_knowledge",
            title="Search code, history and documents",
            description=(
                "Ask several search experts one question about the workspace's code, its history and its documents. "
                "Use it to find where something is defined, used, decided or explained, across all projects, before reading files. "
                "Not for reading a file whose path you know, and not for compound questions: split them. "
                "Returns ranked evidence: id with place, trust tier and confidence, flags, expert#rank for each expert that found it, and "
                "a snippet (detail full: up to the whole definition); a report on every expert asked or left out; the id of a signed "
                "receipt. cut says what is beyond this page: send its cursor with the same question. An empty list says why it is empty."
            ),
            input_schema=input_schema(SearchRequest),
            output_schema=output_schema(Answer),
            annotations=_READ_ONLY,
        ),
        types.Tool(
            name="fetch_evidence",
            title="Read evidence in full",
            description=(
                "Read the full current text of evidence found by search_knowledge, by its ids. "
                "Use it when a snippet is not enough; ask for all the ids you need in one call. Not for paths: ids only. "
                "Returns each text with its line numbers (for a commit its message and changes) and whether it is still what the search "
                "saw; what the budget cut is named with the id that reads the rest; an id that cannot be read is listed with the reason."
            ),
            input_schema=input_schema(FetchRequest),
            output_schema=output_schema(FetchAnswer),
            annotations=_READ_ONLY,
        ),
        types.Tool(
            name="expert_registry",
            title="List the search experts",
            description=(
                "List the configured experts: precision class, engine, intents, languages, time cap, weights, and whether each can be "
                "asked now. Use it when a search was empty or left an expert out and you want to know why. Not needed before a search. "
                "Takes no arguments. Returns one row for each expert, with what to do about an unavailable one, and the projects that are "
                "searched: their ids go into scope.project."
            ),
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
            output_schema=output_schema(RegistryAnswer),
            annotations=_READ_ONLY,
        ),
        types.Tool(
            name="get_receipt",
            title="Read a signed receipt",
            description=(
                "Read the signed receipt of an earlier answer by its receipt id. Use it to prove or to study how an answer was made: "
                "what was asked of whom, what failed, how results were fused. Not for reading evidence: use fetch_evidence. "
                "Returns the DSSE envelope and the decoded in-toto statement."
            ),
            input_schema=input_schema(ReceiptRequest),
            output_schema=output_schema(ReceiptAnswer),
            annotations=_READ_ONLY,
        ),
        types.Tool(
            name="report_outcome",
            title="Tell what became of an answer",
            description=(
                "Tell whether the evidence of an earlier search led to what was wanted: the receipt id of the answer, success, partial or "
                "failure, and the ids of the evidence that was used. Use it once after the work is done, so that later searches weigh "
                "their experts better. Not for opinions on evidence that was not used. Each item counts once. "
                "Returns whom it credits and the id of a signed receipt, or why it was not taken."
            ),
            input_schema=input_schema(OutcomeRequest),
            output_schema=output_schema(OutcomeAnswer),
            annotations=_TELLS,
        ),
    )
