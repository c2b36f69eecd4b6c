"""From fused candidates to the evidence an agent reads: ids, snippets, flags, links. Pure.

An evidence id says where it is, so that any process can fetch it: `project/path#L3-L9@hash` for code (hash: 12 digits of the file's
SHA-256), `project@commit:sha` for a commit, `project@docs:pypi/name:version#entry` for documentation of a library,
`project@document:digest` for a document from elsewhere, which nobody can fetch. Path bytes outside the URL-safe set are percent-encoded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.canonical import sha256_hex
from search_router.config.schema import OutputConfig
from search_router.errors import EvidenceError
from search_router.router.fuse import Fused
from search_router.router.identity import Candidate, FileKey
from search_router.router.tiers import STALE, judge_trust, sub_scores
from search_router.schema import DocumentFacts, Evidence, ExpertCard, FileFacts, SearchRequest, Shape, Source
from search_router.wire_text import encodable

HASH_DIGITS = 12
ID_SAFE = "/._-+@~,()[] "
CODE_ID = re.compile(r"^(?P<project>[^/@#]+)/(?P<path>[^#]+)#L(?P<start>[1-9]\d{0,8})-L(?P<end>[1-9]\d{0,8})@(?P<hash>[0-9a-f]{12})$")
COMMIT_ID = re.compile(r"^(?P<project>[^/@#]+)@commit:(?P<commit>[0-9a-f]{7,64})$")
DOCUMENT_ID = re.compile(r"^(?P<project>[^/@#]+)@document:(?P<name>[0-9a-f]{12})$")
LIBRARY_ID = re.compile(r"^(?P<project>[^/@#]+)@docs:(?P<library>[^:#]+):(?P<version>[^:#]+)#(?P<entry>.+)$")
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
ELISION = "⋯"


@dataclass(frozen=True, slots=True)
class CodeAddress:
    project: str
    path: str
    start_line: int
    end_line: int
    hash_prefix: str


@dataclass(frozen=True, slots=True)
class CommitAddress:
    project: str
    commit: str


@dataclass(frozen=True, slots=True)
class LibraryAddress:
    project: str
    library: str
    version: str
    entry: str


def code_id(project: str, path: str, start: int, end: int, content_hash: str) -> str:
    return f"{project}/{quote(encode_path(path), safe=ID_SAFE)}#L{start}-L{end}@{content_hash[:HASH_DIGITS]}"


def commit_id(project: str, commit: str) -> str:
    return f"{project}@commit:{commit}"


def document_id(project: str, name: str) -> str:
    return f"{project}@document:{name[:HASH_DIGITS]}"


def library_id(project: str, library: str, version: str, entry: str) -> str:
    return f"{project}@docs:{quote(library, safe='/@')}:{quote(version)}#{quote(entry, safe=ID_SAFE)}"


def parse_evidence_id(text: str) -> CodeAddress | CommitAddress | LibraryAddress:
    """The address in an id. Raises EvidenceError `bad-evidence-id` for anything that search_knowledge did not make."""
    if (found := CODE_ID.match(text)) and int(found["start"]) <= int(found["end"]):
        path = decode_path(unquote_to_bytes(found["path"]))
        return CodeAddress(found["project"], path, int(found["start"]), int(found["end"]), found["hash"])
    if found := COMMIT_ID.match(text):
        return CommitAddress(found["project"], found["commit"])
    if DOCUMENT_ID.match(text):
        raise EvidenceError(
            "The text of a document from elsewhere is kept nowhere.",
            remedy="Search again with detail: full, or open its url.",
            code="evidence-not-kept",
        )
    if found := LIBRARY_ID.match(text):
        return LibraryAddress(found["project"], unquote(found["library"]), unquote(found["version"]), unquote(found["entry"]))
    raise EvidenceError(
        f"Not an evidence id: {text[:120]!r}.", remedy="Pass an `id` from search_knowledge unchanged.", code="bad-evidence-id"
    )


def readable_path(path: str) -> str:
    """A path as text: bytes that are not UTF-8 are shown as \\xNN."""
    return encode_path(path).decode("utf-8", "backslashreplace")


def make_evidence(
    fused: Sequence[Fused],
    facts: Mapping[FileKey, FileFacts],
    cards: Mapping[str, ExpertCard],
    request: SearchRequest,
    output: OutputConfig,
) -> tuple[Evidence, ...]:
    """One page of evidence, in the order given, with items of identical text linked to each other."""
    items = [_one_item(f, facts, cards, request, output) for f in fused]
    twins: dict[str, list[str]] = defaultdict(list)
    keys: list[str] = []
    for item in items:
        text = sha256_hex(item.snippet.encode("utf-8", "surrogatepass")) if item.path is not None and item.snippet.strip() else item.id
        keys.append(text)
        twins[text].append(item.id)
    return tuple(
        item.model_copy(update={"linked": tuple(i for i in twins[key] if i != item.id)}) if len(twins[key]) > 1 else item
        for item, key in zip(items, keys, strict=True)
    )


def _one_item(
    fused: Fused, facts: Mapping[FileKey, FileFacts], cards: Mapping[str, ExpertCard], request: SearchRequest, output: OutputConfig
) -> Evidence:
    candidate = fused.candidate
    sources = tuple(Source(expert=v.expert, rank=v.rank, native_score=_finite(v.hit.native_score)) for v in candidate.votes)
    flags = {flag for v in candidate.votes for flag in v.hit.flags}
    if candidate.key[0] == "document":
        return _document_item(fused, cards, sources, flags, request, output)
    if candidate.key[0] == "library":
        return _library_item(fused, cards, sources, flags)
    if candidate.path is None:
        return _commit_item(fused, cards, sources, flags)
    file = facts[candidate.project, candidate.path]
    flags |= set(file.flags)
    if any(v.stale for v in candidate.votes):
        flags.add(STALE)
    start, end = candidate.start_line or 1, candidate.end_line or 1
    document = _document(candidate)
    snippet, long_line = cut_snippet(candidate, file, request, output)
    if document is not None and document.snippet and request.detail == "skim" and request.expected_shape is not Shape.SYMBOL_LIST:
        snippet, long_line = document.snippet, False
    if long_line:
        flags.add("long-line")
    if BIDI.search(snippet):
        flags.add("bidi")
    ordered = tuple(sorted(flags))
    scores = sub_scores(candidate, cards, fused.score, _scope_match(request, candidate.path, file.language))
    trust = judge_trust(candidate, cards, scores, ordered)
    return Evidence(
        id=code_id(candidate.project, candidate.path, start, end, file.content_hash),
        kind=candidate.definition.kind if candidate.definition is not None else "text" if document is None else "document",
        project=candidate.project,
        path=readable_path(candidate.path),
        start_line=start,
        end_line=end,
        symbol=candidate.definition.qualified if candidate.definition is not None else None,
        language=file.language,
        snippet=snippet,
        tier=trust.tier,
        nuance=trust.nuance,
        confidence=trust.confidence,
        flags=ordered,
        sources=sources,
        scores=scores,
        content_hash=file.content_hash,
        **_document_fields(document),
    )


def _document(candidate: Candidate) -> DocumentFacts | None:
    """What a document expert knows of an item; the best-ranked one's word counts."""
    known = [(v.rank, v.expert, v.hit.about) for v in candidate.votes if v.hit.about is not None]
    return min(known, key=lambda k: k[:2])[2] if known else None


def _document_fields(document: DocumentFacts | None) -> dict[str, Any]:
    if document is None:
        return {}
    names = ("title", "heading", "status", "valid_from", "valid_until", "library", "version", "signals")
    return {name: getattr(document, name) for name in names}


def _commit_item(fused: Fused, cards: Mapping[str, ExpertCard], sources: tuple[Source, ...], flags: set[str]) -> Evidence:
    candidate = fused.candidate
    record = candidate.votes[0].hit.commit
    assert record is not None
    scores = sub_scores(candidate, cards, fused.score, 1.0)
    trust = judge_trust(candidate, cards, scores, tuple(flags))
    return Evidence(
        id=commit_id(candidate.project, record.commit),
        kind="commit",
        project=candidate.project,
        snippet=f"{record.author}",
        tier=trust.tier,
        nuance=trust.nuance,
        confidence=trust.confidence,
        flags=tuple(sorted(flags)),
        sources=sources,
        scores=scores,
        commit=record.commit,
        date=record.date,
        subject=record.subject,
        paths=tuple(readable_path(p) for p in record.paths),
    )


def _document_item(
    fused: Fused,
    cards: Mapping[str, ExpertCard],
    sources: tuple[Source, ...],
    flags: set[str],
    request: SearchRequest,
    output: OutputConfig,
) -> Evidence:
    """A document from elsewhere. Its text came with the hit and is kept nowhere: `detail: full` is the way to all of it."""
    candidate = fused.candidate
    document = candidate.votes[0].hit.document
    assert document is not None
    lines = document.text.split("\n")
    width = output.snippet_line_characters
    if request.detail == "full":
        snippet = document.text[: output.fetch_characters]
    else:
        shown = [line if len(line) <= width else f"{line[:width]}{ELISION}" for line in lines[: output.snippet_lines]]
        snippet = "\n".join([*shown, *([ELISION] if len(lines) > len(shown) else [])])
    if BIDI.search(snippet):
        flags.add("bidi")
    ordered = tuple(sorted(flags))
    scores = sub_scores(candidate, cards, fused.score, None)
    trust = judge_trust(candidate, cards, scores, ordered)
    return Evidence(
        id=document_id(candidate.project, candidate.key[2]),
        kind="document",
        project=candidate.project,
        snippet=encodable(snippet),
        tier=trust.tier,
        nuance=trust.nuance,
        confidence=trust.confidence,
        flags=ordered,
        sources=sources,
        scores=scores,
        title=encodable(document.title) if document.title else None,
        url=encodable(document.url) if document.url else None,
    )


def _library_item(fused: Fused, cards: Mapping[str, ExpertCard], sources: tuple[Source, ...], flags: set[str]) -> Evidence:
    candidate = fused.candidate
    hit = candidate.votes[0].hit
    document = hit.about
    assert document is not None and document.library is not None
    scores = sub_scores(candidate, cards, fused.score, 1.0)
    trust = judge_trust(candidate, cards, scores, tuple(flags))
    return Evidence(
        id=library_id(candidate.project, document.library, document.version or "", document.entry or ""),
        kind=hit.kind or "document",
        project=candidate.project,
        symbol=hit.symbol,
        snippet=document.snippet,
        tier=trust.tier,
        nuance=trust.nuance,
        confidence=trust.confidence,
        flags=tuple(sorted(flags | ({"bidi"} if BIDI.search(document.snippet) else set()))),
        sources=sources,
        scores=scores,
        **_document_fields(document),
    )


def cut_snippet(candidate: Candidate, file: FileFacts, request: SearchRequest, output: OutputConfig) -> tuple[str, bool]:
    """(snippet, whether a line was cut): the signature and the lines around the best hit, a symbol list the signature alone."""
    start = candidate.start_line or 1
    whole = file.lines(start, candidate.end_line or 1)
    shown = output.snippet_lines
    if request.expected_shape is Shape.SYMBOL_LIST:
        chosen = whole[:1]
    elif request.detail == "full" or len(whole) <= shown:
        chosen = whole
    else:
        at = min([(v.rank, v.expert, v.start_line) for v in candidate.votes])[2] - start
        if at < shown - 1:
            chosen = [*whole[:shown], ELISION]
        else:
            first = at - 1
            window = whole[first : first + shown - 2]
            chosen = [whole[0], ELISION, *window, *([ELISION] if first + len(window) < len(whole) else [])]
    margin = min([len(line) - len(line.lstrip()) for line in chosen if line and line != ELISION and not line.isspace()], default=0)
    if margin:
        chosen = [line if line == ELISION else line[margin:] for line in chosen]
    width = output.snippet_line_characters
    cut = max(map(len, chosen), default=0) > width
    if cut:
        chosen = [line if len(line) <= width else f"{line[:width]}{ELISION}" for line in chosen]
    return "\n".join(chosen).rstrip(), cut


def _scope_match(request: SearchRequest, path: str, language: str | None) -> float | None:
    """Share of the asked scope fields that the item meets: 1.0 when nothing was asked, None when its language is not known."""
    scope = request.scope
    if scope.language and language is None:
        return None
    asked = [
        *([path == scope.path.strip("/") or path.startswith(scope.path.strip("/") + "/")] if scope.path else []),
        *([language == scope.language] if scope.language else []),
    ]
    return round(sum(asked) / len(asked), 3) if asked else 1.0


def _finite(score: float | None) -> float | None:
    return None if score is None or score != score or score in (float("inf"), float("-inf")) else round(score, 6)
