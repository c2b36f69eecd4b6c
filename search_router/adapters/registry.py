"""From configuration to experts: one door for all of them, embedded or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from search_router.adapters.base import Expert
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.disk_space import Reserve
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.vector_index import VectorIndex
from search_router.config.experts import (
    AnyExpertConfig,
    CallGraphConfig,
    CodeSearchConfig,
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
from search_router.config.remote import CommandConfig, HttpJsonConfig, McpConfig, MilvusConfig
from search_router.config.schema import Config
from search_router.schema import ExpertCard

MAX_FILE_BYTES = 2 * 2**20
WORKERS = 0


class ExpertShelf(Mapping[str, Expert]):
    """Every enabled expert by id, in the order of the configuration. An embedded one is imported and made when it is first taken.

    `cards` tells of all of them, also of those that nobody took; `index` is the one index that they share.
    """

    def __init__(self, config: Config, cache_dir: Path) -> None:
        self.index = shared_index(config, cache_dir)
        self._cache_dir = cache_dir
        self._reserve = reserve_of(config)
        self._llm = config.llm
        self._vectors = VectorIndex(self.index, config.vectors, cache_dir, max_file_bytes=self.index.max_file_bytes)
        self._settings = {name: settings for name, settings in config.experts.items() if settings.enabled}
        self._made: dict[str, Expert] = {}
        remote = {n: s for n, s in self._settings.items() if isinstance(s, McpConfig | CommandConfig | HttpJsonConfig | MilvusConfig)}
        if remote:
            from search_router.adapters.remote.kinds import make_remote_experts  # only who has one pays for it

            self._made.update(make_remote_experts(remote, config.vectors))
        self._settings = {n: s for n, s in self._settings.items() if n in self._made or n not in remote}
        self.cards: Mapping[str, ExpertCard] = {
            n: self._made[n].card if n in self._made else embedded_card(n, s) for n, s in self._settings.items()
        }

    def __getitem__(self, name: str) -> Expert:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name, self._settings[name])
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._settings

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def made(self) -> Mapping[str, Expert]:
        """Those that were taken so far."""
        return self._made

    def has(self, *kinds: type) -> bool:
        """Whether an enabled expert has settings of one of these kinds."""
        return any(isinstance(settings, kinds) for settings in self._settings.values())

    def first(self, kind: type[AnyExpertConfig]) -> str | None:
        """The id of the first expert with settings of this kind."""
        return next((name for name, settings in self._settings.items() if isinstance(settings, kind)), None)

    def _make(self, name: str, settings: AnyExpertConfig) -> Expert:
        """Import one expert and make it: each costs 5 to 20 ms of a start, and a question needs three or four of them."""
        match settings:
            case GrepConfig():
                from search_router.adapters.local.grep import GrepExpert

                return GrepExpert(name, settings, index=self.index)
            case SymbolsConfig():
                from search_router.adapters.local.symbols import SymbolsExpert

                return SymbolsExpert(name, settings, self._cache_dir, self.index)
            case CodeSearchConfig():
                from search_router.adapters.local.codesearch import CodeSearchExpert

                return CodeSearchExpert(name, settings, self.index, self._vectors)
            case CallGraphConfig():
                from search_router.adapters.local.callgraph import CallGraphExpert

                return CallGraphExpert(name, settings, self.index)
            case SemanticConfig():
                from search_router.adapters.local.semantic import SemanticExpert

                return SemanticExpert(name, settings, self.index, self._vectors)
            case HistoryConfig():
                from search_router.adapters.local.history import HistoryExpert

                return HistoryExpert(name, settings, self._cache_dir, reserve=self._reserve, llm=self._llm)
            case ScipConfig():
                from search_router.adapters.local.scip import ScipExpert

                return ScipExpert(name, settings, self._cache_dir, self.index)
            case PythonTypesConfig():
                from search_router.adapters.local.python_types import PythonTypesExpert

                return PythonTypesExpert(name, settings, self._cache_dir, self.index)
            case DocsConfig():
                from search_router.adapters.local.docs import DocsExpert

                return DocsExpert(name, settings, self._cache_dir, reserve=self._reserve)
            case KnowledgeConfig():
                from search_router.adapters.local.knowledge import KnowledgeExpert

                return KnowledgeExpert(name, settings, self._cache_dir, embedding=self._vectors.embedding, reserve=self._reserve)
            case ScriptedConfig():
                from search_router.adapters.local.scripted import ScriptedExpert

                return ScriptedExpert(name, settings)
            case McpConfig() | CommandConfig() | HttpJsonConfig() | MilvusConfig():
                raise KeyError(name)  # made with the shelf, all together


def build_experts(config: Config, cache_dir: Path) -> ExpertShelf:
    """Every enabled expert by id. Nothing is started or read yet."""
    return ExpertShelf(config, cache_dir)


def shared_index(config: Config, cache_dir: Path) -> SymbolIndex:
    """One index for every expert that reads it, with the limits of the first `symbols` block."""
    settings = next((e for e in config.experts.values() if isinstance(e, SymbolsConfig)), None)
    max_bytes, workers = (settings.max_file_bytes, settings.workers) if settings else (MAX_FILE_BYTES, WORKERS)
    return SymbolIndex(DerivedStore(cache_dir, reserve=reserve_of(config)), max_file_bytes=max_bytes, workers=workers)


def reserve_of(config: Config) -> Reserve:
    """What every cache leaves free on its disk."""
    return Reserve(config.index.reserve_mib * 2**20)
