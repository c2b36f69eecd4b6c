"""Real repositories with real odd files, and short ways to ask the grep expert about them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from search_router.adapters.local.grep import GrepExpert
from search_router.adapters.local.grep_engine import EngineChoice
from search_router.config.experts import GrepConfig
from search_router.schema import ExpertCall, ExpertResult, Intent, PrecisionClass, Project, QueryForm, SubQuery

Kind = Literal["git", "worktree", "submodule", "directory"]
GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def grep_config(**changes: object) -> GrepConfig:
    values: dict[str, object] = {
        "kind": "grep",
        "precision_class": PrecisionClass.LEXICAL,
        "engine": "ripgrep",
        "intents": (Intent.IDENTIFIER, Intent.CONCEPTUAL),
        "cap_ms": 2000,
        "threads": 2,
        "max_file_bytes": 16 * 2**20,
        "max_columns": 4096,
    }
    return GrepConfig.model_validate(values | changes)


def expert(engine: EngineChoice = "auto", **changes: object) -> GrepExpert:
    return GrepExpert("grep", grep_config(**changes), engine=engine)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, env=GIT_ENVIRONMENT, check=True, capture_output=True)


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files with these contents below the root; text is written as UTF-8 without any translation of line ends."""
    for name, content in files.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return root


def make_repository(root: Path, files: Mapping[str, str | bytes] | None = None, *, commit: bool = True) -> Path:
    """A git repository; its files are tracked and committed unless an ignore rule matches them."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files or {})
    if commit:
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def as_project(root: Path, kind: Kind = "git", id: str = "p") -> Project:  # noqa: A002 - the project calls it id
    return Project(id, root, kind)


def ask(
    *terms: str,
    projects: tuple[Project, ...],
    form: QueryForm = QueryForm.LITERAL,
    path: str | None = None,
    language: str | None = None,
    limit: int = 50,
    budget_ms: int = 20_000,
    text: str | None = None,
    intent: Intent = Intent.UNKNOWN,
) -> ExpertCall:
    query = SubQuery(form, terms, " ".join(terms) if text is None else text)
    return ExpertCall("grep", query, projects, path, language, limit, budget_ms, 1000, "test", intent)


def places(result: ExpertResult) -> list[tuple[str | None, int | None, int | None]]:
    return [(hit.path, hit.start_line, hit.end_line) for hit in result.hits]


def paths(result: ExpertResult) -> set[str | None]:
    return {hit.path for hit in result.hits}
