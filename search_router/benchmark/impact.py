"""Who calls X: recall and precision of the router's callers, against an index that another engine made.

The oracle is an `index.scip`. Functions with at least two call sites in it are drawn by a fixed seed and asked about through an open
router, once with every expert as configured and once without the typed ones. A caller is the innermost function around a call site as the
oracle sees it, else the line itself. An item of the answer finds a caller when its lines hold one of the caller's call sites, or when it
has the caller's name and overlaps it. The asked function's own definition is neither right nor wrong.

Figures are means over the questions; R-precision is the share of callers among as many first items as there are callers. They are
circular where oracle and typed source rest on one engine; the result says so.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from search_router.adapters.local.scip_files import cached_index, engine_of_tool, find_indexes, read_sidecar, sidecar_of
from search_router.adapters.local.scip_reader import FoundDocument, find_symbols, read_table
from search_router.adapters.local.scip_symbols import SymbolName, read_symbol
from search_router.adapters.local.textfile import read_text_file, split_lines
from search_router.config.loader import load_config
from search_router.errors import EvidenceError
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Evidence, PrecisionClass, Project, Tier

MAX_INDEX = 4 << 30
MAX_OCCURRENCES = 50_000_000
ITEMS = 100
WARM_UP_SECONDS = 600.0
METHODS = re.compile(rb"\((?:\+\d+)?\)\.")
CALLED = re.compile(r"\s*(?:<[^()]*>)?\(")


@dataclass(slots=True)
class Caller:
    """A function that calls the one asked about, with the lines of its calls (all 1-based)."""

    name: str
    span: tuple[int, int]
    lines: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class Asked:
    """One function and what the oracle knows of it. `uses` are all lines that mention it, by path; callers by path and span."""

    question: str
    definition: tuple[str, int, int]
    callers: dict[tuple[str, int, int], Caller] = field(default_factory=dict[tuple[str, int, int], Caller])
    uses: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    calls: int = 0


@dataclass(slots=True)
class Tally:
    """Sums over questions of what one way of reading the answers gives."""

    recall: float = 0
    precision: float = 0
    of_uses: float = 0
    at_r: float = 0
    answered: int = 0
    asked: int = 0
    items: int = 0

    def add(self, asked: Asked, items: Sequence[Evidence]) -> None:
        """Count one question. One without an item has no precision."""
        counted = [item for item in items if not _is_definition(asked, item)]
        found = {key for key, caller in asked.callers.items() if any(_finds(item, key[0], caller) for item in counted)}
        self.asked += 1
        self.recall += len(found) / len(asked.callers)
        self.items += len(counted)
        first = counted[: len(asked.callers)]
        self.at_r += sum(any(_finds(i, k[0], c) for k, c in asked.callers.items()) for i in first) / len(asked.callers)
        if counted:
            self.answered += 1
            self.precision += sum(any(_finds(i, k[0], c) for k, c in asked.callers.items()) for i in counted) / len(counted)
            self.of_uses += sum(any(_holds(i, i.path or "", line) for line in asked.uses.get(i.path or "", ())) for i in counted) / len(
                counted
            )

    def figures(self) -> dict[str, float | int | None]:
        """Means, to three digits."""
        return {
            "recall": round(self.recall / self.asked, 3) if self.asked else None,
            "precision_calls": round(self.precision / self.answered, 3) if self.answered else None,
            "precision_uses": round(self.of_uses / self.answered, 3) if self.answered else None,
            "r_precision": round(self.at_r / self.asked, 3) if self.asked else None,
            "items": self.items,
            "questions": self.asked,
            "without_items": self.asked - self.answered,
        }


def _holds(item: Evidence, path: str, line: int) -> bool:
    return item.path == path and (item.start_line or 1) <= line <= (item.end_line or 1)


def _finds(item: Evidence, path: str, caller: Caller) -> bool:
    if item.path != path:
        return False
    if any(_holds(item, path, line) for line in caller.lines):
        return True
    named = item.symbol is not None and item.symbol.rpartition(".")[2] == caller.name
    return named and (item.start_line or 1) <= caller.span[1] and caller.span[0] <= (item.end_line or 1)


def _is_definition(asked: Asked, item: Evidence) -> bool:
    path, start, end = asked.definition
    return item.path == path and (item.start_line or 1) <= end and start <= (item.end_line or 1) and item.kind != "class"


def read_oracle(index: Path, root: Path) -> tuple[str, list[Asked]]:
    """(engine, every function that can be asked about, in an order that only the index decides)."""
    table = read_table(index, max_bytes=MAX_INDEX)
    documents = find_symbols(table, METHODS, most=MAX_OCCURRENCES).documents
    defined: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    spans: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for document in documents:
        for o in document.occurrences:
            name = read_symbol(o.symbol) if o.is_definition else None
            if name is not None and name.kind == "method":
                first, last = o.span or (o.start[0], o.start[0])
                defined[o.symbol].append((document.path, first + 1, last + 1))
                if o.span is not None:
                    spans[document.path].append((first + 1, last + 1, name.name))
    shown = Counter(_shown(name) for symbol in defined if (name := read_symbol(symbol)) is not None)
    wanted: dict[str, Asked] = {}
    for symbol in sorted(defined):
        name = read_symbol(symbol)
        if name is None or len(defined[symbol]) != 1 or shown[_shown(name)] != 1 or not _is_askable(name):
            continue
        wanted[symbol] = Asked(f"who calls {_shown(name)}()", defined[symbol][0])
    for document in documents:
        _count_uses(document, root, sorted(spans[document.path]), wanted)
    engine = engine_of_tool(table.tool)
    return engine, [asked for _, asked in sorted(wanted.items()) if asked.calls >= 2 and asked.callers]


def _shown(name: SymbolName) -> str:
    """As a person would write it: the class in front of a method, nothing in front of a function."""
    container = name.containers[-1] if name.containers else ""
    return f"{container}.{name.name}" if container[:1].isupper() or container[:2].strip("_")[:1].isupper() else name.name


def _is_askable(name: SymbolName) -> bool:
    return len(name.name) > 2 and not name.name.startswith("__") and name.name.isidentifier()


def _count_uses(document: FoundDocument, root: Path, spans: list[tuple[int, int, str]], wanted: dict[str, Asked]) -> None:
    uses = [o for o in document.occurrences if not o.is_definition and o.symbol in wanted]
    if not uses:
        return
    try:
        lines = split_lines(read_text_file(root, document.path, max_bytes=64 << 20).text)
    except EvidenceError:
        return
    for o in uses:
        asked = wanted[o.symbol]
        line = o.start[0] + 1
        asked.uses[document.path].add(line)
        if o.is_import or line > len(lines) or not CALLED.match(lines[line - 1], o.end[1]):
            continue
        first, last, name = _around(spans, line)
        asked.calls += 1
        asked.callers.setdefault((document.path, first, last), Caller(name, (first, last))).lines.add(line)


def _around(spans: Sequence[tuple[int, int, str]], line: int) -> tuple[int, int, str]:
    """The innermost function around a line, else the line itself."""
    holding = [s for s in spans[: bisect_left(spans, (line + 1, 0, ""))] if s[1] >= line]
    return max(holding, key=lambda s: (s[0], -s[1]), default=(line, line, ""))


async def _wait_until_warm(router: Router) -> None:
    """Ask until no expert says that it is still reading."""
    with anyio.fail_after(WARM_UP_SECONDS):
        while True:
            answer = await router.search({"question": "who calls read_the_file()", "intent": "cross-repo-impact"})
            if not any("partial" in e.reason or e.status.value == "timeout" for e in answer.experts):
                return
            await anyio.sleep(0.5)


async def _ask_all(root: Path, home: Path, questions: Iterable[Asked], flags: Sequence[str]) -> tuple[dict[str, Tally], Counter[str]]:
    """The tallies of one configuration: all items; those with a typed source; those that two typed engines agree on."""
    tallies = {"all": Tally(), "typed": Tally(), "confirmed": Tally()}
    outcomes: Counter[str] = Counter()
    environ = {"SEARCH_ROUTER_HOME": str(home), "PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", str(home))}
    async with open_router(roots=[root], flags=flags, environ=environ) as router:
        typed = {n for n, e in router.loaded.config.experts.items() if e.precision_class is PrecisionClass.TYPED}
        await _wait_until_warm(router)
        for asked in questions:
            answer = await router.search({"question": asked.question, "limit": ITEMS})
            tallies["all"].add(asked, answer.evidence)
            tallies["typed"].add(asked, [e for e in answer.evidence if any(s.expert in typed for s in e.sources)])
            tallies["confirmed"].add(asked, [e for e in answer.evidence if e.tier is Tier.TYPED_GRAPH_CONFIRMED])
            outcomes.update(f"{e.id} {e.status.value}" for e in answer.experts if e.status.value != "skipped")
            intent = answer.classification.intent.value if answer.classification else "none"
            outcomes[f"intent {intent}"] += 1
    return tallies, outcomes


def _take_index(root: Path, home: Path) -> list[str]:
    """Give the measured router our own index of this root, if there is one; the engines of all indexes that it will read."""
    user = load_config(roots=[root], environ=os.environ, flags=())
    own, copy = cached_index(user.paths.cache, root), cached_index(home / "cache", root)
    if own.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(own, copy)
        if sidecar_of(own).is_file():
            shutil.copy2(sidecar_of(own), sidecar_of(copy))
    patterns = next((e.files for e in user.config.experts.values() if e.kind == "scip"), ())
    found = find_indexes(Project("measured", root, "directory"), patterns, home / "cache")
    engines: list[str] = []
    for index in found:
        sidecar, _ = read_sidecar(index.file)
        engines.append((sidecar.engine if sidecar else "") or engine_of_tool(read_table(index.file, max_bytes=MAX_INDEX).tool))
    return engines


async def measure(index: Path, root: Path, limit: int, seed: int, flags: Sequence[str]) -> dict[str, Any]:
    engine, functions = read_oracle(index, root)
    random.Random(seed).shuffle(functions)  # noqa: S311 - reproducible sample, no secret
    chosen = functions[:limit]
    with tempfile.TemporaryDirectory() as home:
        engines = _take_index(root, Path(home))
        with_typed, outcomes = await _ask_all(root, Path(home), chosen, flags)
        off = [f"experts.{n}.enabled=false" for n in ("scip", "python-types")]
        without, _ = await _ask_all(root, Path(home), chosen, [*flags, *off])
    return {
        "oracle": engine,
        "indexes": engines,
        "circular": engine in engines,
        "functions": len(functions),
        "asked": len(chosen),
        "callers": sum(len(a.callers) for a in chosen),
        "with_typed_all_items": with_typed["all"].figures(),
        "with_typed_typed_items": with_typed["typed"].figures(),
        "with_typed_two_engines": with_typed["confirmed"].figures(),
        "without_typed": without["all"].figures(),
        "outcomes": dict(sorted(outcomes.items())),
    }


def run(index: Path, root: Path, limit: int, seed: int = 7, flags: Sequence[str] = ()) -> dict[str, Any]:
    """Recall of callers and precision, with and without typed sources. Deterministic for one index, tree and seed."""
    return anyio.run(measure, index, root.resolve(), limit, seed, flags)
