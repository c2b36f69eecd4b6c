"""Canonical bytes and hashes: RFC 8785 (JCS), SHA-256, and the one normal form of a question.

The bottom layer: every room may import it and it imports only the error tree.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

import rfc8785

Json = Any  # what json.loads returns; pyright has no recursive JSON type that rfc8785 accepts


def canonical_bytes(value: Json) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Integers beyond 2**53 - 1, NaN, infinities and lone surrogates are refused with ValueError (`rfc8785` raises its own
    subclasses of it), because two readers could not agree on them.
    """
    try:
        return rfc8785.dumps(value)
    except UnicodeEncodeError as error:
        raise ValueError(f"not canonical JSON: lone surrogate at position {error.start}") from error


def sha256_hex(data: bytes) -> str:
    """Lower-case hexadecimal SHA-256, 64 characters."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Json) -> str:
    """SHA-256 of the canonical bytes of a JSON value."""
    return sha256_hex(canonical_bytes(value))


def tolerant_digest(value: Json) -> tuple[str, str]:
    """(method, SHA-256 hex) of any decoded JSON value, also of one that has no canonical form.

    Method is `jcs`, or `ascii-json` (sorted keys, \\uXXXX escapes) for what RFC 8785 refuses, such as lone surrogates or NaN:
    a rejected request must still be bound to its receipt.
    """
    try:
        return "jcs", digest(value)
    except ValueError:
        text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=repr)
        return "ascii-json", sha256_hex(text.encode("ascii"))


def normal_question(question: str) -> str:
    """NFC, control characters as spaces, runs of white space as one space, trimmed. Case and punctuation stay."""
    text = unicodedata.normalize("NFC", question)
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
