"""From configuration to experts: one door for all of them, embedded or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from search_router.adapters.base import Expert
from search_router.adapters.local.grep import GrepExpert
from search_router.adapters.local.history import HistoryExpert
from search_router.adapters.local.symbols import SymbolsExpert
from search_router.config.schema import Config, GrepConfig, HistoryConfig, ScriptedConfig, SymbolsConfig


def build_experts(config: Config, cache_dir: Path) -> Mapping[str, Expert]:
    """Every enabled expert by id, in the order of the configuration. Nothing is started or read yet."""
    experts: dict[str, Expert] = {}
    for name, settings in config.experts.items():
        if not settings.enabled:
            continue
        match settings:
            case GrepConfig():
                experts[name] = GrepExpert(name, settings)
            case SymbolsConfig():
                experts[name] = SymbolsExpert(name, settings, cache_dir)
            case HistoryConfig():
                experts[name] = HistoryExpert(name, settings, cache_dir)
            case ScriptedConfig():
                from search_router.adapters.local.scripted import ScriptedExpert  # a test double: its models are not made in vain

                experts[name] = ScriptedExpert(name, settings)
    return experts
