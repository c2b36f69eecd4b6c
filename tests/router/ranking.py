"""Small makers for the ranking tests: cards, hits, files, and the whole identify-and-fuse step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from search_router.config.schema import FusionConfig
from search_router.router.fuse import Fused, fuse_rankings
from search_router.router.identity import Dropped, FileKey, identify, normalise_path
from search_router.schema import Definition, ExpertCard, FileFacts, Hit, Intent, PrecisionClass, Project

ROOT = Path("/srv/work/demo")
DEMO = Project("demo", ROOT, "git")
FUSION = FusionConfig(k=60, candidates=50, corroboration_bonus=0.25, definition_bonus=0.5, test_penalty=0.15)


def card(name: str, precision: PrecisionClass = PrecisionClass.LEXICAL, engine: str | None = None, freshness: str = "live") -> ExpertCard:
    return ExpertCard(name, "scripted", precision, engine or name, frozenset(Intent), None, "embedded", 1000, freshness)


CARDS = {
    "grep": card("grep"),
    "symbols": card("symbols", PrecisionClass.SYNTACTIC, "tree-sitter"),
    "semantic": card("semantic", PrecisionClass.SEMANTIC, "vectors", "none"),
    "pyright": card("pyright", PrecisionClass.TYPED, "pyright"),
    "scip": card("scip", PrecisionClass.TYPED, "pyright"),
    "ty": card("ty", PrecisionClass.TYPED, "ty"),
    "history": card("history", PrecisionClass.HISTORY, "git"),
}
WEIGHTS = dict.fromkeys(CARDS, 1.0)


def file_facts(text: str, *definitions: Definition) -> FileFacts:
    return FileFacts(hashlib.sha256(text.encode()).hexdigest(), text, "python", definitions)


def numbered(lines: int) -> str:
    return "".join(f"line {n}\n" for n in range(1, lines + 1))


FILES: dict[FileKey, FileFacts] = {
    ("demo", "src/a.py"): file_facts(
        numbered(100),
        Definition("Parser", "class", 10, 60),
        Definition("parse", "method", 20, 40, "Parser"),
        Definition("main", "function", 70, 80),
    ),
    ("demo", "src/b.py"): file_facts(numbered(50)),
    ("demo", "tests/test_a.py"): file_facts(numbered(30), Definition("test_parse", "function", 3, 9)),
}


def fuse(
    answers: Mapping[str, Sequence[Hit]],
    *,
    weights: Mapping[str, float] = WEIGHTS,
    files: Mapping[FileKey, FileFacts] = FILES,
    names: frozenset[str] = frozenset(),
    config: FusionConfig = FUSION,
    dropped: Dropped | None = None,
    sections_first: bool = False,
) -> list[Fused]:
    keys = {
        (h.project, h.path or ""): normalise_path(h.path or "", DEMO, (DEMO,), lambda p: False)
        for hits in answers.values()
        for h in hits
        if h.commit is None
    }
    silent = [name for name, weight in weights.items() if weight == 0]
    candidates = identify(answers, keys, files, dropped if dropped is not None else Dropped(), silent)
    return fuse_rankings(candidates, weights=weights, cards=CARDS, config=config, names=names, sections_first=sections_first)


def order(fused: Sequence[Fused]) -> list[tuple[str, ...]]:
    return [f.candidate.key for f in fused]
