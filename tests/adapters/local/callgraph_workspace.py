"""A workspace of small projects, and the callgraph expert asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from search_router.adapters.local.callgraph import CallGraphExpert
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.config.experts import CallGraphConfig
from search_router.schema import ExpertCall, ExpertResult, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.repositories import write_files


def make_expert(cache: Path, depth: int = 2) -> CallGraphExpert:
    config = CallGraphConfig.model_validate(
        {
            "kind": "callgraph",
            "precision_class": PrecisionClass.SYNTACTIC,
            "engine": "tree-sitter",
            "intents": (Intent.CROSS_REPO_IMPACT,),
            "cap_ms": 2500,
            "depth": depth,
        }
    )
    return CallGraphExpert("callgraph", config, SymbolIndex(DerivedStore(cache), max_file_bytes=2**20, workers=1))


def make_projects(root: Path, projects: Mapping[str, Mapping[str, str]]) -> tuple[Project, ...]:
    for name, files in projects.items():
        write_files(root / name, files)
    return tuple(Project(name, root / name, "directory") for name in projects)


async def ask(expert: CallGraphExpert, projects: tuple[Project, ...], question: str, *names: str, path: str | None = None) -> ExpertResult:
    query = SubQuery(QueryForm.SYMBOL if names else QueryForm.KEYWORDS, names, question)
    call = ExpertCall("callgraph", query, projects, path, None, 50, 20_000, 1000, "a test", Intent.CROSS_REPO_IMPACT)
    return await expert.search(call)


def shown(result: ExpertResult) -> list[str]:
    """One short line a hit: how it was resolved, where, what encloses it."""
    lines: list[str] = []
    for hit in result.hits:
        resolved, *more = sorted(hit.flags, key=lambda flag: not flag.startswith("edge-"))
        extra = "".join(f" [{flag}]" for flag in more)
        lines.append(f"{resolved.removeprefix('edge-')} {hit.project}/{hit.path}:{hit.start_line} {hit.symbol} {hit.kind}{extra}")
    return lines


async def answers(root: Path, files: Mapping[str, str], question: str, *names: str) -> list[str]:
    """The lines for one question about one project that is called `app`."""
    expert = make_expert(root / "cache")
    try:
        return shown(await ask(expert, make_projects(root, {"app": files}), question, *names))
    finally:
        await expert.aclose()
