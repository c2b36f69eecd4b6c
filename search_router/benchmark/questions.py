"""Questions with known target files, and the repositories that they are about, read from two data files.

Questions: JSON lines {id, repo, language, category, question, targets: [{path, start_line?, end_line?}]}. Repositories: a JSON list of
{name, language, root}; `root` is the folder that is searched, relative to the checkout. Paths of targets are relative to the checkout.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from search_router.errors import SearchRouterError


class UnusableData(SearchRouterError):
    """A data file or a checkout that a measurement needs is missing or not in shape."""

    code = "unusable-data"


class _Row(BaseModel):
    """Rows carry more than we read, such as licences."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Target(_Row):
    """A file that answers the question; with lines (1-based, closed) a part of it."""

    path: str = Field(min_length=1)
    start_line: int | None = None
    end_line: int | None = None


class Question(_Row):
    id: str
    repo: str
    language: str
    category: str
    question: str
    targets: tuple[Target, ...] = Field(min_length=1)


class Repository(_Row):
    name: str
    language: str
    root: str = "."

    def folder(self, checkouts: Path) -> Path:
        """What is searched. Raises UnusableData when the checkout is not there."""
        found = (checkouts / self.name / self.root).resolve()
        if not found.is_dir():
            raise UnusableData(f"{found} is no directory.", remedy=f"Check {self.name} out below --checkouts.")
        return found

    def from_checkout(self, path: str) -> str:
        """A path below the searched folder, relative to the checkout."""
        return path if self.root in ("", ".") else f"{self.root.strip('/')}/{path}"


def read_questions(path: Path, only: Collection[str] = ()) -> tuple[Question, ...]:
    """All questions, or those about the named repositories. Raises UnusableData for a line that is not one, or when none is left."""
    found: list[Question] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            try:
                found.append(Question.model_validate_json(line))
            except ValidationError as error:
                raise UnusableData(f"{path}:{number}: {_first(error)}", remedy="See docs/benchmarks.md for the shape.") from error
    kept = tuple(q for q in found if not only or q.repo in only)
    if not kept:
        raise UnusableData(f"{path} has no question" + (f" about {', '.join(only)}." if only else "."), remedy="Check --only.")
    return kept


def read_repositories(path: Path, questions: Sequence[Question]) -> tuple[Repository, ...]:
    """The repositories that the questions name, in the order of the file. Raises UnusableData when one is missing."""
    try:
        rows = TypeAdapter(tuple[Repository, ...]).validate_json(_text(path))
    except ValidationError as error:
        raise UnusableData(f"{path}: {_first(error)}", remedy="See docs/benchmarks.md for the shape.") from error
    named = {q.repo for q in questions}
    missing = named - {r.name for r in rows}
    if missing:
        raise UnusableData(f"{path} does not have {', '.join(sorted(missing))}.", remedy="Add them, or leave their questions out.")
    return tuple(r for r in rows if r.name in named)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableData(f"{path} cannot be read: {error}.", remedy="Name a readable file in UTF-8.") from error


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in fault['loc']) or 'the line'}: {fault['msg']}."


def write_run(path: Path, rankings: Sequence[tuple[str, Sequence[Mapping[str, object]]]]) -> None:
    """A run file: JSON lines {id, results: [{path, start, end}]}, best first."""
    path.write_text("".join(json.dumps({"id": name, "results": [dict(r) for r in results]}) + "\n" for name, results in rankings), "utf-8")
