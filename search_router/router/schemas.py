"""The published JSON Schemas (draft 2020-12) of every request and answer."""

from __future__ import annotations

from typing import Any

from search_router.answers import FetchAnswer, FetchRequest, OutcomeAnswer, OutcomeRequest, ReceiptAnswer, RegistryAnswer
from search_router.schema import Answer, SearchRequest


def published_schemas() -> dict[str, Any]:
    """Name to JSON Schema, for the names `request`, `answer`, `fetch_request`, `fetch_answer`, `registry`, `receipt`,
    `outcome_request`, `outcome_answer`."""
    return {
        "request": SearchRequest.model_json_schema(),
        "answer": Answer.model_json_schema(mode="serialization"),
        "fetch_request": FetchRequest.model_json_schema(),
        "fetch_answer": FetchAnswer.model_json_schema(mode="serialization"),
        "registry": RegistryAnswer.model_json_schema(mode="serialization"),
        "receipt": ReceiptAnswer.model_json_schema(mode="serialization"),
        "outcome_request": OutcomeRequest.model_json_schema(),
        "outcome_answer": OutcomeAnswer.model_json_schema(mode="serialization"),
    }
