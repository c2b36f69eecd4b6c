"""The tuner: verified receipts in, a new version of the configuration out. What nobody could check is written only on demand."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from search_router.config.loader import LoadedConfig, load_config
from search_router.router.enrich.logged import Logged, read_verified_logs
from search_router.router.enrich.tuned_file import (
    TunedFile,
    TunedFileError,
    describe,
    make_tuned_file,
    put_in_place,
    stronger_layers,
    write_tuned_file,
)
from search_router.router.enrich.tuning import ClassTuning, tune


class FixtureScores(NamedTuple):
    """NDCG@10 over the fixtures' questions of the tuned classes, with the former configuration and with the tuned one."""

    before: float
    after: float
    questions: int


Check = Callable[[Path | None, Path, tuple[str, ...]], FixtureScores | None]
"""(the user's file or None, the tuned file, the classes that changed) → scores, or None where the fixtures are not built here."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the receipts say, class by class; `file` is None when nothing changes."""

    logged: Logged
    classes: tuple[ClassTuning, ...]
    file: TunedFile | None
    notes: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """For people."""
        yield from (f"verified: {each}" for each in self.logged.ranges)
        yield from map(describe, self.classes)
        for each in self.classes:
            changes = (f"{n} {each.before[n] / 1000:g} → {each.after[n] / 1000:g}" for n in each.after if each.after[n] != each.before[n])
            if each.changed:
                yield f"  priors.{each.task_class}: {', '.join(changes)}"
        yield from (f"note: {note}" for note in self.notes)
        if self.file is None:
            yield "Nothing changes."

    def as_json(self, written: Written | None) -> dict[str, Any]:
        """For machines."""
        return {
            "logs": [asdict(each) for each in self.logged.ranges],
            "classes": [asdict(each) | {"changed": each.changed} for each in self.classes],
            "version": self.file.version if self.file else None,
            "difference": self.file.difference() if self.file else "",
            "notes": list(self.notes),
            "written": str(written.place) if written else None,
            "fixtures": written.scores._asdict() if written and written.scores else None,
        }


@dataclass(frozen=True, slots=True)
class Written:
    """Where the file is, what the fixtures said (None: not checked), and where the user's former file is kept."""

    place: Path
    scores: FixtureScores | None
    kept: Path | None
    version: str

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.place}: {self.version}, {_checked(self.scores)}"
        if self.kept is not None:
            yield f"the former file is {self.kept}"


class Tuner:
    """Tunes one configuration from the receipts of its state directory. Blocking; for the command line."""

    def __init__(self, loaded: LoadedConfig, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._loaded = loaded
        self._now = now

    def find(self, qrels: Path | None = None) -> Found:
        """Verify, read, estimate. Writes nothing.

        Raises:
            LogsRefused, ReceiptNotFound, KeyUnusable: the receipts do not verify, or there are none.
            QrelsUnusable: the judgements cannot be read, or are of other answers.
        """
        loaded = self._loaded
        logged = read_verified_logs(loaded.paths, qrels)
        sources = [] if qrels is None else [f"qrels {qrels.name}, sha256 {_sha256(qrels)}"]
        enabled = {name for name, expert in loaded.config.experts.items() if expert.enabled}
        priors = {
            intent.value: {name: round(prior * 1000) for name, prior in of_class.items() if name in enabled}
            for intent, of_class in loaded.config.priors.items()
        }
        classes = tune(logged.used, priors, loaded.config.fusion.k, round(loaded.config.gate.min_prior * 1000))
        notes = (*logged.notes, *stronger_layers(loaded, classes))
        if not any(each.changed for each in classes):
            return Found(logged, classes, None, notes)
        date = self._now().isoformat(timespec="seconds")
        return Found(logged, classes, make_tuned_file(loaded, classes, logged.ranges, sources, date), notes)

    def write(self, found: Found, check: Check, *, unchecked: bool = False, in_place: bool = False) -> Written:
        """Check the tuned file on the fixtures, and write it.

        Raises:
            TunedFileError: it is worse on the fixtures; or they are not built here and `unchecked` is not given; or it cannot be written.
            ConfigError: the tuned file is no configuration, which would be a defect of ours.
        """
        tuned = found.file
        if tuned is None:
            raise ValueError("nothing changes, so there is nothing to write")
        changed = tuple(each.task_class for each in found.classes if each.changed)
        with tempfile.TemporaryDirectory(prefix="search-router-tune-") as folder:
            candidate = Path(folder) / "tuned.toml"
            candidate.write_text(tuned.text, "utf-8")
            load_config(roots=[Path(folder)], environ={"SEARCH_ROUTER_HOME": folder}, user_file=candidate)
            scores = check(tuned.user_file if tuned.user_text else None, candidate, changed)
        if scores is None and not unchecked:
            raise TunedFileError(
                "The fixtures are not built here, so nobody can tell whether the tuned configuration is worse on them.",
                remedy="Build them with `search-router bench fixtures`, or write it unchecked with --unchecked.",
            )
        if scores is not None and scores.after < scores.before:
            raise TunedFileError(
                f"The tuned configuration is worse on the fixtures: NDCG@10 {scores.after:.4f} after {scores.before:.4f}.",
                remedy="Nothing was written. Look at what was reported as success, or keep the priors.",
            )
        write_tuned_file(tuned, extra=[_checked(scores)])
        kept = put_in_place(tuned) if in_place else None
        return Written(tuned.user_file if in_place else tuned.place, scores, kept, tuned.version)


def _checked(scores: FixtureScores | None) -> str:
    if scores is None:
        return "fixtures: not checked"
    return f"fixtures: NDCG@10 {scores.before:.4f} before, {scores.after:.4f} after, {scores.questions} questions"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
