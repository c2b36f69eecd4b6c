"""From configuration to experts: one door for all of them, embedded or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from search_router.adapters.base import Expert
from search_router.adapters.local.callgraph import CallGraphExpert
from search_router.adapters.local.codesearch import CodeSearchExpert
from search_router.adapters.local.docs import DocsExpert
from search_router.adapters.local.grep import GrepExpert
from search_router.adapters.local.history import HistoryExpert
from search_router.adapters.local.knowledge import KnowledgeExpert
from search_router.adapters.local.python_types import PythonTypesExpert
from search_router.adapters.local.scip import ScipExpert
from search_router.adapters.local.semantic import SemanticExpert
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.symbols import SymbolsExpert
from search_router.adapters.local.vector_index import VectorIndex
from search_router.config.remote import AnyRemoteConfig, CommandConfig, HttpJsonConfig, McpConfig
from search_router.config.schema import (
    CallGraphConfig,
    CodeSearchConfig,
    Config,
    DocsConfig,
    GrepConfig,
    HistoryConfig,
    KnowledgeConfig,
    PythonTypesConfig,
    ScipConfig,
    ScriptedConfig,
    SemanticConfig,
    SymbolsConfig,
)

MAX_FILE_BYTES = 2 * 2**20
WORKERS = 0


def build_experts(config: Config, cache_dir: Path) -> Mapping[str, Expert]:
    """Every enabled expert by id, in the order of the configuration. Nothing is started or read yet."""
    experts: dict[str, Expert] = {}
    remote: dict[str, AnyRemoteConfig] = {}
    index, vectors = _shared_indexes(config, cache_dir)
    for name, settings in config.experts.items():
        if not settings.enabled:
            continue
        match settings:
            case GrepConfig():
                experts[name] = GrepExpert(name, settings)
            case SymbolsConfig():
                experts[name] = SymbolsExpert(name, settings, cache_dir, index)
            case CodeSearchConfig():
                experts[name] = CodeSearchExpert(name, settings, index, vectors)
            case CallGraphConfig():
                experts[name] = CallGraphExpert(name, settings, index)
            case SemanticConfig():
                experts[name] = SemanticExpert(name, settings, index, vectors)
            case HistoryConfig():
                experts[name] = HistoryExpert(name, settings, cache_dir)
            case ScipConfig():
                experts[name] = ScipExpert(name, settings, cache_dir, index)
            case PythonTypesConfig():
                experts[name] = PythonTypesExpert(name, settings, cache_dir, index)
            case DocsConfig():
                experts[name] = DocsExpert(name, settings, cache_dir)
            case KnowledgeConfig():
                experts[name] = KnowledgeExpert(name, settings, cache_dir)
            case ScriptedConfig():
                from search_router.adapters.local.scripted import ScriptedExpert  # a test double: its models are not made in vain

                experts[name] = ScriptedExpert(name, settings)
            case McpConfig() | CommandConfig() | HttpJsonConfig():
                remote[name] = settings
    if remote:
        from search_router.adapters.remote.kinds import make_remote_experts  # only who has one pays for it

        made = make_remote_experts(remote)
        experts = {name: found for name in config.experts if (found := made.get(name) or experts.get(name)) is not None}
    return experts


def shared_index(config: Config, cache_dir: Path) -> SymbolIndex:
    """One index for every expert that reads it, with the limits of the first `symbols` block."""
    settings = next((e for e in config.experts.values() if isinstance(e, SymbolsConfig)), None)
    max_bytes, workers = (settings.max_file_bytes, settings.workers) if settings else (MAX_FILE_BYTES, WORKERS)
    return SymbolIndex(DerivedStore(cache_dir), max_file_bytes=max_bytes, workers=workers)


def _shared_indexes(config: Config, cache_dir: Path) -> tuple[SymbolIndex, VectorIndex]:
    """The index, and the vectors of its files."""
    index = shared_index(config, cache_dir)
    return index, VectorIndex(index, config.vectors, cache_dir, max_file_bytes=index.max_file_bytes)
