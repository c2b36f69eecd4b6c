"""The little of jedi's interface that we use, as types: jedi itself is optional, and ships no stubs that say this."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class JediName(Protocol):
    """A definition that jedi found. `line` is 1-based, None for what has no source."""

    @property
    def name(self) -> str: ...
    @property
    def module_path(self) -> Path | None: ...
    @property
    def line(self) -> int | None: ...


class JediScript(Protocol):
    """One file. Lines are 1-based, columns 0-based."""

    def goto(self, line: int, column: int, *, follow_imports: bool, follow_builtin_imports: bool) -> Sequence[JediName]: ...


class Jedi(Protocol):
    """The module."""

    settings: Any

    def Project(self, path: str, *, sys_path: Sequence[str], load_unsafe_extensions: bool, smart_sys_path: bool) -> object: ...  # noqa: N802 - jedi's name
    def Script(self, code: str, *, path: str, environment: object, project: object) -> JediScript: ...  # noqa: N802 - jedi's name
    def InterpreterEnvironment(self) -> object: ...  # noqa: N802 - jedi's name
