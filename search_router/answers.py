"""The other answers' words: fetched evidence, the expert registry, one receipt. Edges like those of `schema.py`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from search_router.schema import ConfigRef, Edge, ExpertStatus, Intent, PrecisionClass, ReceiptRef

MAX_FETCH_IDS = 20


class FetchRequest(Edge):
    """Which pieces of evidence to read in full."""

    ids: tuple[str, ...] = Field(
        min_length=1, max_length=MAX_FETCH_IDS, description="Evidence ids from earlier answers of search_knowledge, 1 to 20 of them."
    )
    max_characters: int | None = Field(
        default=None, ge=500, le=10_000_000, description="Budget of the whole answer in characters; the rest is cut and counted."
    )


class ReceiptRequest(Edge):
    """Which receipt to read."""

    id: str = Field(min_length=1, max_length=256, description="The `receipt.id` of an earlier answer.")


class FetchedItem(Edge):
    """The full text of one piece of evidence as it is now. `start_line` is the number of the text's first line."""

    id: str
    project: str
    path: str | None = Field(default=None, description="POSIX path relative to the project root; null for a commit.")
    start_line: int | None = Field(default=None, ge=1, description="1-based, closed range.")
    end_line: int | None = Field(default=None, ge=1)
    commit: str | None = None
    text: str
    fresh: bool = Field(description="Whether the file still has the content that the search saw.")
    content_hash: str | None = Field(default=None, description="SHA-256 of the file's bytes as read for this answer.")
    cut: int = Field(default=0, ge=0, description="Characters left out at the end of the text.")
    flags: tuple[str, ...] = ()


class FetchProblem(Edge):
    """Why one id (or, with an empty id, the whole request) could not be read, and what to do."""

    id: str
    code: str
    message: str
    remedy: str = ""


class FetchAnswer(Edge):
    """What was read and what was not. No item and at least one problem means that the request failed."""

    items: tuple[FetchedItem, ...] = ()
    problems: tuple[FetchProblem, ...] = ()
    receipt: ReceiptRef | None = None


class RegisteredExpert(Edge):
    """One configured expert: what it declares, whether it can be asked now, and its weight for each intent."""

    id: str
    kind: str
    precision_class: PrecisionClass
    engine: str
    intents: tuple[Intent, ...]
    languages: tuple[str, ...] | None = Field(default=None, description="Null means any language.")
    transport: str
    cap_ms: int
    freshness: str
    enabled: bool = True
    available: bool
    failure: ExpertStatus | None = None
    reason: str
    version: str | None = None
    priors: dict[Intent, float] = Field(default={}, description="Weight of this expert for each intent, 0 to 1.")


class RegistryAnswer(Edge):
    """Every configured expert, the visible projects, and which configuration says so."""

    experts: tuple[RegisteredExpert, ...]
    projects: tuple[str, ...] = ()
    config: ConfigRef


class ReceiptAnswer(Edge):
    """One receipt: the DSSE envelope as signed, and the in-toto statement that it carries, decoded."""

    id: str
    seq: int
    log: str
    keyid: str
    envelope: dict[str, Any]
    statement: dict[str, Any]
