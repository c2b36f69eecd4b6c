"""What an answer is worth: a failure, nothing found, or records. One order of judgement for every kind of remote expert. Pure.

A flag alone proves nothing: some systems report failures as success, and `no such symbol` as an error. So the order is: the configured
`errors`, the configured `empty`, the flag, the form. Text that fits none is a protocol error, never an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from search_router.adapters.remote.records import Record, Unreadable, compiled, read_records, short_lines
from search_router.adapters.remote.rpc import RpcError
from search_router.config.remote import AnswerConfig
from search_router.errors import ExpertError, FailureClass
from search_router.redact import scrub

SHOWN = 200
JUDGED = 20_000
"""Characters of a text that the patterns for failures and for nothing found look at: both stand at its beginning."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came back, whatever it came over. `cut` counts bytes that were left out, `long_lines` lines whose ends patterns do not see."""

    text: str
    structured: Any = None
    is_error: bool = False
    cut: int = 0
    long_lines: int = 0


def read_result(result: Mapping[str, Any], cut: int = 0) -> Received:
    """The parts of an MCP tool result.

    Raises:
        ExpertError: `protocol-error`, when it has neither content nor structuredContent; `rejected`, when it is no answer yet but a
            request for input (2026-07-28).
    """
    kind = result.get("resultType")
    if kind not in (None, "complete"):
        raise ExpertError(FailureClass.REJECTED, f"It wants more before it answers ({said(str(kind), 40)}), and nobody can be asked here.")
    content, structured = result.get("content"), result.get("structuredContent")
    if not isinstance(content, list) and not isinstance(structured, dict):
        raise ExpertError(FailureClass.PROTOCOL_ERROR, "The tool's result has neither content nor structuredContent.")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [text for block in blocks if isinstance(block, dict) and (text := _text_of(cast("dict[str, Any]", block))) is not None]
    return Received("\n\n".join(texts), structured, result.get("isError") is True, cut)


def _text_of(block: Mapping[str, Any]) -> str | None:
    resource = block.get("resource")
    text = cast("dict[str, Any]", resource).get("text") if isinstance(resource, dict) else block.get("text")
    return text if isinstance(text, str) else None


def readable(config: AnswerConfig, received: Received) -> Received:
    """The same with lines that patterns can be let loose on."""
    text, long_lines = short_lines(config, received.text)
    return replace(received, text=text, long_lines=long_lines) if long_lines else received


def judge(config: AnswerConfig, received: Received) -> list[Record]:
    """The records of an answer; an empty list means that it was looked and nothing was found.

    Raises:
        ExpertError: the class of the configured error; `rejected`, for a flagged error that no rule knows; `protocol-error`, for what
            cannot be read.
    """
    head = received.text[:JUDGED]
    for rule in config.errors:
        if compiled(rule.pattern).search(head):
            raise ExpertError(FailureClass(rule.failure), f"It says: {said(head)}", remedy=rule.remedy)
    if any(compiled(pattern).search(head) for pattern in config.empty):
        return []
    if received.is_error:
        raise ExpertError(FailureClass.REJECTED, f"It says: {said(head) or 'an error without a word'}")
    if config.content == "structured" and received.structured is None:
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"Its result has no structuredContent: {said(head)}")
    if config.content == "text" and not head.strip():
        raise ExpertError(FailureClass.PROTOCOL_ERROR, "Its answer has no text.")
    try:
        return read_records(config, received.text, received.structured, cut=received.cut > 0)
    except Unreadable as error:
        shape = f"{len(received.text)} characters beginning with {said(head, 60)!r}"
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"Its answer cannot be read as {config.form}: {error}; {shape}.") from error


def judge_refusal(config: AnswerConfig, error: RpcError) -> ExpertError:
    """A JSON-RPC error as the failure class of the configured rules, else `rejected`: the server lives, it did not want this call."""
    for rule in config.errors:
        if compiled(rule.pattern).search(error.message[:JUDGED]):
            return ExpertError(FailureClass(rule.failure), f"It says: {said(error.message)}", remedy=rule.remedy)
    return ExpertError(FailureClass.REJECTED, f"It refused the call (code {error.code}): {said(error.message)}")


def said(text: str, limit: int = SHOWN) -> str:
    """The beginning of a server's words on one line, without what looks like a secret."""
    return re.sub(r"\s+", " ", scrub(text[:JUDGED])).strip()[:limit]


def best_by_words(records: Sequence[Record], question: str, take: int) -> list[Record]:
    """The records whose fields share most words with the question, in their order among equals; none where none shares any."""
    wanted = _words(question)
    scored = [(len(wanted & _words(" ".join(str(v) for v in record.values() if v is not None))), record) for record in records]
    ranked = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [record for _, record in ranked[:take]]


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) > 2)
