"""What cache and hints save, and what they cost: a repository's own questions asked twice, with other wordings and with edits in between.

Beside the router under test runs an oracle without cache and hints over the same files. The questions are made of the repository's names,
docstrings and headings; the labels of nDCG@10 are the oracle's answers of the first pass, graded by rank.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

import search_router
from search_router.adapters.local.symbols import SymbolsExpert
from search_router.benchmark.ask import environment
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.timing import quantile
from search_router.config.loader import load_config
from search_router.router.evidence import CodeAddress, parse_evidence_id
from search_router.schema import Answer, ExpertStatus

ON: Final = ("cache.positive_seconds=3600", "cache.negative_seconds=600", "enrich.hints=true")
"""Measurements are without them otherwise."""
CAP_MS: Final = 60_000
"""Of every expert and every request: who ran out of time would differ by chance."""
DEPTH: Final = 10
FEWEST_WORDS: Final = 4
_HEADING: Final = re.compile(r"^#{2,4} (.{12,80})$", re.MULTILINE)
_DOC: Final = re.compile(r'"""([A-Z][^".\n]{20,110})')


@dataclass(slots=True)
class Pass:
    """What one router did with one pass over the questions."""

    calls: int = 0
    cached: int = 0
    hinted: int = 0
    cpu_ms: list[float] = field(default_factory=list[float])
    wall_ms: list[float] = field(default_factory=list[float])
    answers: list[Answer] = field(default_factory=list[Answer])

    def add(self, answer: Answer, wall: float, cpu: float) -> None:
        self.answers.append(answer)
        self.calls += answer.budget.asked
        self.cached += answer.status.value == "cached"
        self.hinted += any(r.reason.startswith("hint:") for r in answer.experts if r.status is ExpertStatus.SKIPPED)
        self.wall_ms.append(wall * 1000)
        self.cpu_ms.append(cpu * 1000)

    def summary(self) -> dict[str, object]:
        return {
            "calls": self.calls,
            "cached": self.cached,
            "hinted": self.hinted,
            "cpu_p50_ms": round(statistics.median(self.cpu_ms), 2),
            "wall_p50_ms": round(statistics.median(self.wall_ms), 2),
            "wall_p95_ms": round(quantile(self.wall_ms, 0.95), 2),
        }


def run(root: Path, count: int = 200, edits: int = 10, during: int = 10, seed: int = 7, flags: Sequence[str] = ()) -> dict[str, object]:
    """Both passes; `edits` files change between them, and one more after each `during`-th part of the second.

    Raises:
        UnusableData: `root` is no git checkout, or too small for so many questions.
    """
    folder = Path(tempfile.mkdtemp(prefix="flywheel-"))
    try:
        return anyio.run(_run, folder, copy_checkout(root, folder / "repo"), count, edits, during, seed, tuple(flags))
    finally:
        shutil.rmtree(folder)


async def _run(folder: Path, root: Path, count: int, edits: int, during: int, seed: int, flags: tuple[str, ...]) -> dict[str, object]:
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice
    env, bare = environment(folder / "wheel"), environment(folder / "oracle")
    experts = load_config(roots=[root], environ=bare, flags=flags).config.experts
    patient = [f"budget.latency_ms={CAP_MS}", *(f"experts.{name}.cap_ms={CAP_MS}" for name in experts)]
    async with (
        search_router.open_router(roots=[root], flags=[*patient, *ON, *flags], environ=env) as wheel,
        search_router.open_router(roots=[root], flags=[*patient, *flags], environ=bare) as oracle,
    ):
        await wheel.catch_up()
        await oracle.catch_up()
        questions = make_questions(wheel, count, chance)
        first, before = await _ask_all(wheel, oracle, questions)
        labels = [places(answer) for answer in before.answers]
        for _ in range(edits):
            edit_somewhere(root, chance)
        commit(root)
        second, after = Pass(), Pass()
        stale: list[str] = []
        variants = [vary(question, chance) for question in questions]
        parts = [variants[start :: max(1, during)] for start in range(max(1, during))]
        order = [i for start in range(max(1, during)) for i in range(start, len(variants), max(1, during))]
        for number, part in enumerate(parts):
            if number:
                edit_somewhere(root, chance)
            for question in part:
                mine, theirs = await _ask_both(wheel, oracle, question, second, after)
                stale += stale_items(root, mine, theirs)
    ordered = [labels[i] for i in order]
    ndcg = [statistics.fmean(graded_ndcg(places(a), label) for a, label in zip(p.answers, ordered, strict=True)) for p in (second, after)]
    same = [graded_ndcg(places(mine), places(theirs)) for mine, theirs in zip(second.answers, after.answers, strict=True)]
    return {
        "questions": len(questions),
        "edits": edits + len(parts) - 1,
        "first pass": first.summary(),
        "first pass, oracle": before.summary(),
        "second pass": second.summary(),
        "second pass, oracle": after.summary(),
        "calls_saved": round(1 - second.calls / after.calls, 3),
        "ndcg@10": round(ndcg[0], 4),
        "ndcg@10, oracle": round(ndcg[1], 4),
        "agreement with the oracle (ndcg@10)": round(statistics.fmean(same), 4),
        "stale": len(stale),
        "miss_cpu_ms": round(statistics.median(a - b for a, b in zip(first.cpu_ms, before.cpu_ms, strict=True)), 3),
    }


async def _ask_all(wheel: search_router.Router, oracle: search_router.Router, questions: Sequence[str]) -> tuple[Pass, Pass]:
    first, before = Pass(), Pass()
    for question in questions:
        await _ask_both(wheel, oracle, question, first, before)
    return first, before


async def _ask_both(
    wheel: search_router.Router, oracle: search_router.Router, question: str, one: Pass, other: Pass
) -> tuple[Answer, Answer]:
    """The same question to both, one after the other, in turns; what comes of it is kept before the clock starts again."""
    pair = [(wheel, one), (oracle, other)]
    for router, told in pair if len(one.answers) % 2 else reversed(pair):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = await router.search({"question": question, "limit": DEPTH})
        told.add(answer, time.perf_counter() - wall, time.process_time() - cpu)
        await router.enrichment.settle()
    return one.answers[-1], other.answers[-1]


# ------------------------------------------------------------------ the repository


def copy_checkout(root: Path, to: Path) -> Path:
    """The tracked files of a checkout as a repository of its own, with one commit. Raises UnusableData."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    names = [name for name in listed.stdout.decode("utf-8", "surrogateescape").split("\0") if name]
    if listed.returncode != 0 or not names:
        raise UnusableData(f"{root} is no git checkout with files.", remedy="Name one with --root.")
    for name in names:
        source = root / name
        if source.is_file() and not source.is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, to / name)
    _git(to, "init", "--quiet")
    commit(to)
    return to


def commit(root: Path) -> None:
    """Everything as it is."""
    _git(root, "add", "--all")
    _git(root, "-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "--quiet", "--allow-empty", "--message", "bench")


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def edit_somewhere(root: Path, chance: random.Random) -> None:
    """Change one source file as a person would: a line more in a function, a line less, or a new function."""
    files = sorted(path for path in root.rglob("*.py") if ".git" not in path.parts and path.stat().st_size)
    path = chance.choice(files)
    lines = path.read_text("utf-8").splitlines()
    match chance.randrange(3):
        case 0:
            lines.insert(chance.randrange(len(lines) + 1), f"# note {chance.randrange(10**6)}")
        case 1 if len(lines) > 3:
            del lines[chance.randrange(len(lines))]
        case _:
            lines += ["", "", f"def added_{chance.randrange(10**6)}(value):", "    return value"]
    path.write_text("\n".join(lines) + "\n", "utf-8")


# ------------------------------------------------------------------ the questions


def make_questions(router: search_router.Router, count: int, chance: random.Random) -> list[str]:
    """Questions in words, about names, and for names, each about something that is there. Raises UnusableData when there is too little."""
    index = next(e.index for e in router.experts.values() if isinstance(e, SymbolsExpert))
    names: dict[str, None] = {}
    words: dict[str, None] = {}
    for project in router.workspace.projects:
        for file in sorted(index.table(project).files(), key=lambda f: f.path):
            names |= {d.name: None for d in file.syntax.definitions if len(d.name) > 8 and ("_" in d.name or d.name.lower() != d.name)}
            text = (project.root / file.path).read_text("utf-8", "replace")
            words |= {f"how does it work that {_plain(doc)}": None for doc in _DOC.findall(text)}
        for path in sorted(project.root.rglob("*.md")):
            words |= {f"what do we say about {_plain(heading)}": None for heading in _HEADING.findall(path.read_text("utf-8", "replace"))}
    wanted = {"words": count // 2, "about": count // 4, "alone": count - count // 2 - count // 4}
    chosen = chance.sample(sorted(names), min(len(names), wanted["about"] + wanted["alone"]))
    about = [f"where is {name} defined" for name in chosen[: wanted["about"]]]
    alone = [name if number % 2 else f'"{name}"' for number, name in enumerate(chosen[wanted["about"] :])]
    questions = [*chance.sample(sorted(words), min(len(words), wanted["words"])), *about, *alone]
    if len(questions) < count:
        raise UnusableData(f"The checkout gives {len(questions)} questions, not {count}.", remedy="Ask for fewer, or name a larger one.")
    chance.shuffle(questions)
    return questions


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[`*_\[\]()#]", " ", text).split()).lower().rstrip(".:;,")


def vary(question: str, chance: random.Random) -> str:
    """Another wording that means the same: a mark at the end, a capital at the beginning, white space."""
    if len(question.split()) < FEWEST_WORDS:
        return f" {question} "
    for change in chance.sample((0, 1, 2), chance.randint(1, 3)):
        match change:
            case 0:
                question = f"{question}?"
            case 1:
                question = question[0].upper() + question[1:]
            case _:
                question = question.replace(" ", "  ", 1)
    return question


# ------------------------------------------------------------------ the figures


def places(answer: Answer) -> list[str]:
    """What an answer names, best first: files with the definition in them, commits, entries. Lines move, so they do not count."""
    return [f"{item.project}:{item.path}:{item.symbol}" if item.path else item.id for item in answer.evidence]


def graded_ndcg(found: Sequence[str], label: Sequence[str]) -> float:
    """nDCG@10 (Jaervelin and Kekaelaeinen 2002) where the label's first place is worth 10 and its last 1; 1.0 when both are empty."""
    if not label:
        return 1.0 if not found else 0.0
    worth: Mapping[str, int] = {place: DEPTH - rank for rank, place in reversed(list(enumerate(label[:DEPTH])))}
    seen: set[str] = set()
    gain = 0.0
    for rank, place in enumerate(found[:DEPTH]):
        if place not in seen:
            gain += worth.get(place, 0) / math.log2(rank + 2)
        seen.add(place)
    ideal = sum(value / math.log2(rank + 2) for rank, value in enumerate(sorted(worth.values(), reverse=True)))
    return gain / ideal


def stale_items(root: Path, mine: Answer, theirs: Answer) -> list[str]:
    """Items whose content hash is not that of the file now, as the oracle read it, or as it is on the disk."""
    known = {item.path: item.content_hash for item in theirs.evidence}
    found: list[str] = []
    for item in mine.evidence:
        if item.path is None:
            continue
        now = known.get(item.path)
        if now is None:
            address = parse_evidence_id(item.id)
            path = address.path if isinstance(address, CodeAddress) else item.path
            now = hashlib.sha256((root / path).read_bytes()).hexdigest() if (root / path).is_file() else None
        if now != item.content_hash:
            found.append(item.id)
    return found


def verdict(result: Mapping[str, Any]) -> bool:
    """Whether what must hold holds: 40 % fewer calls, no lower nDCG@10 than the oracle's (to a thousandth), nothing stale."""
    return result["calls_saved"] >= 0.4 and result["ndcg@10"] >= result["ndcg@10, oracle"] - 0.001 and result["stale"] == 0
