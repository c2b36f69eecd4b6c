"""A suite's questions and labels from its sources: people's questions in hand.tsv, and those that code answers by itself.

hand.tsv has tab-separated lines: class, source, question, targets, origin. A target is `project/path=GRADE`, of one definition with
`#NAME`, of lines with `@FIRST-LAST`; `project@VERSION=GRADE` is a commit; `=regex` stands for every file that the question's regex matches.
Everything else is drawn by a fixed seed: names and their callers from a typed index by another engine than the router's (`fixture_edges`),
imports across projects and texts from the code itself. The same archives give the same labels.
"""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from search_router.benchmark.fixture_build import head_of
from search_router.benchmark.fixture_edges import Called, Place, definitions_of, importers_of, read_edges
from search_router.benchmark.fixture_gold import gold_experts
from search_router.benchmark.fixture_hostile import hostile_questions
from search_router.benchmark.fixture_suite import COMMIT, DIGITS, HEADER, FixtureQuestion, Label, digest_of
from search_router.benchmark.questions import UnusableData

SEED: Final = 20261130
DRAWN: Final = {"typed": 62, "impact": 48, "texts": 56, "sole": 12}
MOST_CALLERS: Final = 8
MOST_FILES: Final = 5
TYPED_WORDS: Final = (
    "{s}",
    "where is {s} defined",
    "definition of {s}",
    "show me the implementation of {s}",
    "{s}()",
    "go to {s}",
    "what is the signature of {s}",
    "find {s}",
)
IMPACT_WORDS: Final = (
    "who calls {s}()",
    "callers of {s}",
    "what breaks if I change {s}",
    "which functions call {s}",
    "where is {s} called",
    "what depends on {s}",
    "if I rename {s}, what else has to change",
    "what code is affected when {s} changes",
)
TEXT_WORDS: Final = (
    '"{s}"',
    'where does the text "{s}" appear',
    "grep for '{s}'",
    'find the string "{s}"',
    'which file contains "{s}"',
    'where does the message "{s}" come from',
)
_REGEX: Final = re.compile(r"/(.+)/")
_TARGET: Final = re.compile(
    r"(?P<project>[\w-]+)(?:@(?P<version>[\d.]+)|/(?P<path>[^#@=]+)(?:#(?P<symbol>[\w.]+)|@(?P<lines>\d+-\d+))?)=(?P<grade>[123])"
)


@dataclass(slots=True)
class Draft:
    """A question under way and its labels, whose query is filled in later."""

    question: FixtureQuestion
    labels: list[Label]


def label_suite(folder: Path, projects: Path) -> tuple[int, int]:
    """Write queries.jsonl and qrels.tsv; (questions, labels). Raises UnusableData for a line of hand.tsv that does not fit the code."""
    chosen = random.Random(SEED)  # noqa: S311 - reproducible sample, no secret
    edges = read_edges(projects)
    drafts = [
        *_hand(folder / "hand.tsv", projects),
        *_typed(edges, projects, chosen),
        *_impact(edges, projects, chosen),
        *_imported(projects),
        *_texts(projects, chosen),
        *(Draft(question, []) for question in hostile_questions()),
    ]
    rows, labels = _number(drafts)
    (folder / "queries.jsonl").write_text("".join(q.model_dump_json(exclude_defaults=True) + "\n" for q in rows), "utf-8")
    lines = ["\t".join(HEADER), *("\t".join(_cells(label)) for label in labels)]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return len(rows), len(labels)


def _number(drafts: Sequence[Draft]) -> tuple[list[FixtureQuestion], list[Label]]:
    """Ids by class and text, and halves: of each class every other question in the order of a hash of its text."""
    by_kind: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        by_kind[draft.question.kind].append(draft)
    rows: list[FixtureQuestion] = []
    labels: list[Label] = []
    for kind, found in by_kind.items():
        order = sorted(found, key=lambda d: hashlib.sha256(d.question.text.encode()).digest())
        halves = {id(d): ("dev", "test")[n % 2] for n, d in enumerate(order)}
        for number, draft in enumerate(found, start=1):
            name = f"{kind}-{number:03d}"
            rows.append(FixtureQuestion.model_validate(draft.question.model_dump() | {"id": name, "half": halves[id(draft)]}))
            labels += [
                replace(label, query=name) for label in sorted(draft.labels, key=lambda x: (-x.grade, x.project, x.path, x.start or 0))
            ]
    return rows, labels


def _cells(label: Label) -> list[str]:
    start, end = ("" if n is None else str(n) for n in (label.start, label.end))
    return [label.query, label.project, label.path, start, end, label.symbol, str(label.grade), label.digest]


def _draft(kind: str, source: str, text: str, labels: list[Label], experts: tuple[str, ...], **more: str) -> Draft:
    row = {"id": "x", "text": text, "kind": kind, "half": "dev", "source": source, "experts": experts, **more}
    return Draft(FixtureQuestion.model_validate(row), labels)


def _at(projects: Path, place: Place, grade: int, *, lines: bool = True) -> Label:
    digest = digest_of(projects / place.project / place.path)
    return Label("", place.project, place.path, place.start if lines else None, place.end if lines else None, place.symbol, grade, digest)


# ---------------------------------------------------------------- by hand


def _hand(path: Path, projects: Path) -> Iterator[Draft]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        kind, source, text, targets, *origin = line.split("\t")
        if targets == "=regex":
            labels = _matching(projects, _REGEX.findall(text)[0], MOST_CALLERS)
        else:
            labels = [_target(projects, target, f"{path}:{number}") for target in targets.split(" ")]
        python = any(label.path.endswith(".py") for label in labels)
        yield _draft(kind, source, text, labels, gold_experts(kind, python=python), origin=origin[0] if origin else "")


def _target(projects: Path, target: str, where: str) -> Label:
    found = _TARGET.fullmatch(target)
    if found is None:
        raise UnusableData(f"{where}: {target!r} is no target.", remedy="See the head of fixture_label.py.")
    root, grade = projects / found["project"], int(found["grade"])
    if found["version"]:
        commit = head_of(root, found["version"])
        return Label("", found["project"], COMMIT + found["version"], None, None, "", grade, commit[:DIGITS])
    file = root / found["path"]
    if not file.is_file():
        raise UnusableData(f"{where}: {file} is no file.", remedy="Name a file of the built suite.")
    if found["symbol"] and found["symbol"] not in {name for name, _, _ in definitions_of(file)}:
        raise UnusableData(f"{where}: {file} does not define {found['symbol']}.", remedy="Name a definition of that file.")
    start, end = (int(n) for n in found["lines"].split("-")) if found["lines"] else (None, None)
    return Label("", found["project"], found["path"], start, end, found["symbol"] or "", grade, digest_of(file))


# ---------------------------------------------------------------- by a typed index


def _typed(edges: Sequence[Called], projects: Path, chosen: random.Random) -> Iterator[Draft]:
    """Definitions with a name that is there once; some of them in a known file, for one expert alone."""
    names = Counter(name.rpartition(".")[2] for _, _, name, _, _ in _all_definitions(projects))
    functions = [e for e in edges if e.definition.is_product and names[e.shown.rpartition(".")[2]] == 1]
    classes = [
        Called(name, Place(project, path, start, end, name), ())
        for project, path, name, start, end in _all_definitions(projects)
        if "." not in name and name[:1].isupper() and names[name] == 1 and Place(project, path, start, end).is_product and len(name) > 5
    ]
    scripts = [Called(place.symbol, place, ()) for place in _javascript(projects) if names[place.symbol] == 0]
    pool = [*_draw(functions, 26 + DRAWN["sole"], chosen), *_draw(classes, 24, chosen), *_draw(scripts, 12, chosen)]
    for number, each in enumerate(pool):
        labels = [_at(projects, replace(each.definition, symbol=each.shown), 3)]
        if number < DRAWN["sole"]:
            where = {"project": each.definition.project, "path": each.definition.path}
            yield _draft("typed-symbol", "typed", each.shown, labels, gold_experts("typed-symbol", sole=True), **where)
        else:
            text = TYPED_WORDS[number % len(TYPED_WORDS)].format(s=each.shown)
            yield _draft("typed-symbol", "typed", text, labels, gold_experts("typed-symbol"))


def _impact(edges: Sequence[Called], projects: Path, chosen: random.Random) -> Iterator[Draft]:
    """Functions with two to eight callers, those called from other projects first."""
    fit = [e for e in edges if e.definition.is_product and 2 <= len(e.callers) <= MOST_CALLERS]
    across = [e for e in fit if any(c.project != e.definition.project for c in e.callers)]
    rest = [e for e in fit if e not in across]
    for number, each in enumerate([*across, *_draw(rest, DRAWN["impact"] - len(across), chosen)]):
        labels = [_at(projects, caller, 3) for caller in each.callers]
        text = IMPACT_WORDS[number % len(IMPACT_WORDS)].format(s=each.shown)
        yield _draft("cross-repo-impact", "typed", text, labels, gold_experts("cross-repo-impact"))


def _imported(projects: Path) -> Iterator[Draft]:
    """Who imports a package from another project; who imports a name of a package, wherever."""
    wanted = {"h11": ("which files of other projects import h11",), "hpack": (), "hyperframe": (), "wsproto": ()}
    names = {
        "hpack": ("HeaderTuple", "NeverIndexedHeaderTuple", "Encoder"),
        "hyperframe": ("WindowUpdateFrame", "GoAwayFrame", "AltSvcFrame"),
    }
    for package, texts in wanted.items():
        found = importers_of(projects, package, names.get(package, ()))
        asked = {package: texts, **{name: (f"who imports {name} from {package}",) for name in names.get(package, ())}}
        for name, wordings in asked.items():
            for text in wordings:
                places = [Place(project, path, 1, 1) for project, path in found[name]]
                if 1 <= len(places) <= MOST_CALLERS:
                    labels = [_at(projects, p, 3 if p.is_product else 2, lines=False) for p in places]
                    yield _draft("cross-repo-impact", "computed", text, labels, gold_experts("cross-repo-impact"))


def _all_definitions(projects: Path) -> Iterator[tuple[str, str, str, int, int]]:
    for path in sorted(projects.rglob("*.py")):
        relative = path.relative_to(projects)
        if ".git" not in relative.parts:
            for name, start, end in definitions_of(path):
                yield relative.parts[0], Path(*relative.parts[1:]).as_posix(), name, start, end


_SCRIPT: Final = re.compile(r"^(?:const|class|function) ([A-Za-z_]\w{5,})\b(?: = (?:\(|async|function)|[ (])")


def _javascript(projects: Path) -> Iterator[Place]:
    """Top-level functions and classes whose end is the next brace in the first column."""
    for path in sorted(projects.rglob("*.js")):
        relative = path.relative_to(projects)
        lines = path.read_text("utf-8").split("\n")
        for start, line in enumerate(lines, start=1):
            found = _SCRIPT.match(line)
            if found and line.rstrip().endswith("{") and ".git" not in relative.parts:
                end = next((n for n in range(start + 1, len(lines) + 1) if lines[n - 1][:1] == "}"), start)
                yield Place(relative.parts[0], Path(*relative.parts[1:]).as_posix(), start, end, found[1])


def _draw(pool: Sequence[Called], count: int, chosen: random.Random) -> list[Called]:
    return chosen.sample(list(pool), min(count, len(pool)))


# ---------------------------------------------------------------- by the text itself


def _texts(projects: Path, chosen: random.Random) -> Iterator[Draft]:
    """String constants of the product code that stand in at most five files, and every file that has them."""
    found: set[str] = set()
    for path in sorted(projects.rglob("*.py")):
        place = Place(path.relative_to(projects).parts[0], Path(*path.relative_to(projects).parts[1:]).as_posix(), 1, 1)
        if ".git" in path.parts or not place.is_product:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_askable(node.value):
                found.add(node.value)
    taken = 0
    for text in chosen.sample(sorted(found), len(found)):
        labels = _matching(projects, re.escape(text))
        if labels and taken < DRAWN["texts"]:
            yield _draft("identifier", "computed", TEXT_WORDS[taken % len(TEXT_WORDS)].format(s=text), labels, gold_experts("identifier"))
            taken += 1


def _is_askable(text: str) -> bool:
    plain = text.isascii() and text.isprintable() and text == text.strip()
    return plain and 8 <= len(text) <= 60 and not set(text) & set("\"'`\\%{}") and (" " in text or "-" in text or "_" in text)


def _matching(projects: Path, pattern: str, most: int = MOST_FILES) -> list[Label]:
    """Every file with a line that the regex matches; product code is the answer, tests and prose are part of it. None beyond `most`."""
    compiled = re.compile(pattern)
    labels: list[Label] = []
    for path in sorted(p for p in projects.rglob("*") if p.is_file() and ".git" not in p.parts):
        text = path.read_bytes()
        if b"\0" in text[:8192] or compiled.search(text.decode("utf-8", "replace")) is None:
            continue
        relative = path.relative_to(projects)
        place = Place(relative.parts[0], Path(*relative.parts[1:]).as_posix(), 1, 1)
        labels.append(_at(projects, place, 3 if place.is_product else 2, lines=False))
    return labels if len(labels) <= most else []
