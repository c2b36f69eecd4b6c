"""A folder of documents, a real expert over it, and its answer to one question."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from search_router.adapters.local.knowledge import KnowledgeExpert
from search_router.config.experts import KnowledgeConfig
from search_router.config.loader import load_config
from search_router.schema import DocumentFilters, ExpertCall, ExpertResult, Intent, Project, QueryForm, SubQuery

TODAY = datetime.date(2026, 6, 1)


def default_config(**changes: object) -> KnowledgeConfig:
    config = load_config(roots=[], environ={"HOME": "/nonexistent", "SEARCH_ROUTER_HOME": "/nonexistent"}).config.experts["knowledge"]
    assert isinstance(config, KnowledgeConfig)
    return config.model_copy(update={"weights": config.weights.model_copy(update=changes)})


def write(root: Path, files: Mapping[str, str | bytes]) -> Project:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Project(id=root.name, root=root, kind="directory")


@asynccontextmanager
async def expert_over(folder: Path, config: KnowledgeConfig | None = None, **more: object) -> AsyncGenerator[KnowledgeExpert]:
    expert = KnowledgeExpert("knowledge", config or default_config(), folder / "cache", today=lambda: TODAY, **more)  # type: ignore[arg-type] - keywords by name
    try:
        yield expert
    finally:
        await expert.aclose()


def call_for(question: str, *projects: Project, limit: int = 20, path: str | None = None, **filters: Any) -> ExpertCall:
    asked: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in filters.items()}
    return ExpertCall(
        expert="knowledge",
        sub_query=SubQuery(QueryForm.KEYWORDS, (), question),
        projects=projects,
        path=path,
        language=None,
        limit=limit,
        budget_ms=20_000,
        prior=1000,
        reason="test",
        intent=Intent.DOCS,
        filters=DocumentFilters(**asked),
    )


def paths(result: ExpertResult) -> list[str]:
    return [hit.path or "" for hit in result.hits]
