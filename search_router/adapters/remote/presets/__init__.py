"""Blocks for systems that people already run: one TOML file a system, written into a configuration by `search-router experts add`."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """One system: what is to be known of it, its expert blocks, and its priors by intent and expert."""

    name: str
    summary: str
    seen: str
    install: str
    program: str
    variables: tuple[str, ...]
    notes: tuple[str, ...]
    experts: Mapping[str, Mapping[str, Any]]
    priors: Mapping[str, Mapping[str, float]]
    text: str
    """The blocks as they are written into a configuration."""


def preset_names() -> tuple[str, ...]:
    """All systems that there is a preset for."""
    files = importlib.resources.files("search_router.adapters.remote.presets").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_preset(name: str) -> Preset:
    """One preset. Raises KeyError for a name that `preset_names` does not have."""
    if name not in preset_names():
        raise KeyError(name)
    text = (importlib.resources.files("search_router.adapters.remote.presets") / f"{name}.toml").read_text("utf-8")
    table = tomllib.loads(text)
    about = table["preset"]
    return Preset(
        name=name,
        summary=about["summary"],
        seen=about["seen"],
        install=about["install"],
        program=about.get("program", ""),
        variables=tuple(about.get("variables", ())),
        notes=tuple(about.get("notes", ())),
        experts=table["experts"],
        priors=table["priors"],
        text=text[text.index("[experts.") :],
    )
