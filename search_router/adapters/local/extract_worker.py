"""Reads files and extracts their syntax; also the program that does so in a child process: `python -m …extract_worker`.

Standard input carries one JSON object a line: first {"root", "max_bytes"}, then {"path", "language"} for each file. Standard output
answers in the same order: a JSON line {"path", "blob", "content_hash", "bytes"} and that many bytes of packed syntax, or
{"path", "reason"}; or all of these, when the bytes themselves are why there is none. JSON is ASCII with escapes, so a file name that is
not UTF-8 passes as it is.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import BinaryIO, NamedTuple

from search_router.adapters.local.code_terms import derive_terms, pack_terms
from search_router.adapters.local.edge_packing import pack_edges
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES, ExtractionFailed, ExtractionTimedOut
from search_router.adapters.local.languages import text_language
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.minified import is_minified
from search_router.adapters.local.symbol_packing import compact_syntax, join_payload, pack_syntax
from search_router.adapters.local.syntax import Extracted, extract
from search_router.adapters.local.textfile import TextFile, read_text_file
from search_router.errors import EvidenceError


class ReadSyntax(NamedTuple):
    """The packed syntax of one file, with the hashes of the bytes that it was made from.

    With a `reason` there is no payload: whoever reads these bytes again with this version will find none either.
    """

    path: str
    blob: str
    content_hash: str
    payload: bytes
    reason: str = ""


def read_source(root: Path, path: str, *, max_bytes: int) -> TextFile | LeftOut:
    """One source file as text, or why it is not indexed: too large, binary, minified, gone, unreadable. Blocks."""
    try:
        source = read_text_file(root, path, max_bytes=max_bytes)
    except EvidenceError as error:
        return LeftOut(path, error.code.removeprefix("evidence-"))
    if "truncated" in source.flags:
        return LeftOut(path, f"larger than {max_bytes} bytes")
    if "binary" in source.flags:
        return LeftOut(path, "binary")
    return LeftOut(path, "minified") if is_minified(source.text, text_language(path)) else source


def read_syntax(root: Path, path: str, language: str, *, max_bytes: int) -> ReadSyntax | LeftOut:
    """The syntax of one file as it is on disk now, or why it has none. Blocks, for a bounded time."""
    source = read_source(root, path, max_bytes=max_bytes)
    if isinstance(source, LeftOut):
        return source
    try:
        extracted = extract(source.text.encode("utf-8", "replace"), language) if language in SYNTAX_LANGUAGES else Extracted((), ())
    except ExtractionTimedOut as error:
        return LeftOut(path, str(error))
    except ExtractionFailed as error:
        return ReadSyntax(path, source.blob, source.content_hash, b"", str(error))
    terms = derive_terms(source.text, language, extracted.definitions)
    payload = join_payload(pack_syntax(compact_syntax(extracted)), pack_terms(terms), pack_edges(extracted.edges))
    return ReadSyntax(path, source.blob, source.content_hash, payload)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer every request until the input ends."""
    start = json.loads(requests.readline())
    root, max_bytes = Path(start["root"]), int(start["max_bytes"])
    for line in requests:
        wanted = json.loads(line)
        outcome = read_syntax(root, wanted["path"], wanted["language"], max_bytes=max_bytes)
        if isinstance(outcome, LeftOut):
            answers.write(_line({"path": outcome.path, "reason": outcome.reason}))
        else:
            head = {"path": outcome.path, "blob": outcome.blob, "content_hash": outcome.content_hash, "bytes": len(outcome.payload)}
            answers.write(_line(head | ({"reason": outcome.reason} if outcome.reason else {})) + outcome.payload)
        answers.flush()


def _line(value: dict[str, str | int]) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


if __name__ == "__main__":
    gc.set_threshold(100_000, 50, 1000)  # what one file makes has no cycles, and is gone with it
    serve(sys.stdin.buffer, sys.stdout.buffer)
