"""A desk with every layer on it: real files in a temporary directory, and an environment that is not the process's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from search_router.config.loader import LoadedConfig, load_config
from search_router.errors import ConfigError, ConfigProblem


@dataclass(frozen=True)
class Desk:
    """Writes the layers and loads them. `home` is the state directory, `root` the workspace root."""

    home: Path
    root: Path
    user_file: Path

    @property
    def project_file(self) -> Path:
        return self.root / ".search-router.toml"

    def write_user(self, text: str) -> None:
        self.user_file.write_text(text, encoding="utf-8")

    def write_project(self, text: str) -> None:
        self.project_file.write_text(text, encoding="utf-8")

    def environ(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"SEARCH_ROUTER_HOME": str(self.home), "SEARCH_ROUTER_CONFIG": str(self.user_file), **(variables or {})}

    def load(self, variables: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> LoadedConfig:
        return load_config(roots=[self.root], environ=self.environ(variables), flags=flags)

    def problems(self, variables: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> tuple[ConfigProblem, ...]:
        with pytest.raises(ConfigError) as caught:
            self.load(variables, flags)
        return caught.value.problems

    def found(self, variables: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> list[tuple[str, int, str]]:
        """(short source, line, key) of each problem."""
        short = {str(self.user_file): "user", str(self.project_file): "project"}
        return [(short.get(p.source, p.source), p.line, p.key) for p in self.problems(variables, flags)]


def make_desk(place: Path) -> Desk:
    desk = Desk(place / "home", place / "work", place / "user.toml")
    desk.root.mkdir(parents=True)
    desk.write_user("")
    return desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path)
