"""The cards of the embedded experts: what is known of each without importing it."""

from __future__ import annotations

from search_router.adapters.base import declare_embedded
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES
from search_router.config.experts import (
    AnyExpertConfig,
    CallGraphConfig,
    DocsConfig,
    GrepConfig,
    HistoryConfig,
    PythonTypesConfig,
    ScipConfig,
    ScriptedConfig,
    SymbolsConfig,
)
from search_router.schema import ExpertCard, PrecisionClass

_INDEXED = "live: every call compares the index with the work tree; hits carry the hash of what was indexed"
_PYTHON = frozenset({"python"})


def embedded_card(expert_id: str, config: AnyExpertConfig) -> ExpertCard:
    """The card of one embedded expert."""
    languages = frozenset(config.languages)
    match config:
        case GrepConfig():
            return declare_embedded(expert_id, config, freshness="live: reads the work tree at every call")
        case HistoryConfig():
            return declare_embedded(expert_id, config, freshness="live", serves_history=True)
        case SymbolsConfig() | CallGraphConfig():
            known = languages & SYNTAX_LANGUAGES if languages else SYNTAX_LANGUAGES
            return declare_embedded(expert_id, config, freshness=_INDEXED, languages=known)
        case PythonTypesConfig():
            return declare_embedded(expert_id, config, freshness="live: jedi reads the files as they are", languages=languages or _PYTHON)
        case ScipConfig():
            return declare_embedded(expert_id, config, freshness="indexed: by the side-car's hashes or commit, else by the files' times")
        case DocsConfig():
            return declare_embedded(expert_id, config, freshness="none: what is installed is read once a version")
        case ScriptedConfig():
            is_history = config.precision_class is PrecisionClass.HISTORY
            return declare_embedded(expert_id, config, freshness=config.freshness, serves_history=is_history)
        case _:
            return declare_embedded(expert_id, config, freshness=_INDEXED)
