"""The `callgraph` expert: who calls, uses or imports what, across the projects of the workspace; edges, not text matches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from search_router.adapters.local.callgraph_answer import answer_question
from search_router.adapters.local.callgraph_project import ProjectEdges
from search_router.adapters.local.callgraph_question import read_question
from search_router.adapters.local.callgraph_search import EdgeSpace
from search_router.adapters.local.callgraph_types import TypeFacts
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.index_readiness import bring_up_to_date
from search_router.adapters.local.languages import languages_named
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_space import SearchSpace
from search_router.adapters.local.symbols import scope_path
from search_router.adapters.local.wheels import installed_version
from search_router.config.experts import CallGraphConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Health, Project

REFRESH_SHARE: Final = 0.7
BUILD_SHARE: Final = 0.85
ANSWER_SHARE: Final = 0.8
MAX_SECONDS: Final = 0.5
"""The answer is made on the event loop, so it is cut short there; it says so when it was."""
"""Parts of a call's time after which the answer comes from what is ready."""


class CallGraphExpert:
    """Edges from the index that it shares with `symbols`: calls resolved by imports, scopes, receivers and base types."""

    def __init__(self, expert_id: str, config: CallGraphConfig, index: SymbolIndex) -> None:
        self._config = config
        self._index = index
        self._edges: dict[Path, ProjectEdges] = {}
        self._builds: dict[Path, asyncio.Task[ProjectEdges]] = {}
        self._types: tuple[tuple[tuple[str, int], ...], TypeFacts | None] = ((), None)
        self.card = embedded_card(expert_id, config)

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The edges that the question asks for, certain ones first; each hit's flags say how its edge was resolved.

        A scope's path and language narrow where edges are found; definitions are looked for in all of the call's projects.

        Raises:
            ExpertError: as `symbols`: `timeout` when nothing was ready in time, `rejected` for a path outside the project, …
        """
        began = time.monotonic()
        path = scope_path(call.path)
        # Edges lead from file to file: those of a part would be wrong, so it waits as long as it can.
        ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000, soon=False)
        ready.raise_failure()
        asked = [project for project in call.projects if project.id not in ready.failures]
        until = began + BUILD_SHARE * call.budget_ms / 1000
        graph: list[ProjectEdges] = []
        behind: list[str] = []
        for project in asked:
            edges, current = await self._current(project, until)
            graph.append(edges)
            behind += [] if current else [project.id]
        if behind and len(behind) == len(asked) and all(edges.generation < 0 for edges in graph):
            raise ExpertError(FailureClass.TIMEOUT, "The edges are being read; reading goes on.", remedy="Ask again.")
        tables = tuple((p.id, self._index.table(p)) for p in asked)
        space = SearchSpace(tables, path, languages_named(call.language) or frozenset(self._config.languages))
        question = read_question(call.sub_query)
        where = EdgeSpace.of(space, graph, self._learned(graph))
        self._types = (_state_of(graph), where.types)
        seconds = min((began + call.budget_ms / 1000 - time.monotonic()) * ANSWER_SHARE, MAX_SECONDS)
        found = answer_question(where, question, limit=call.limit, depth=self._config.depth, seconds=seconds)
        said = [ready.partial(), *(f"{name}: the edges of the newest files are not read yet; ask again" for name in behind), found.partial]
        return ExpertResult(
            hits=found.hits,
            partial="; ".join(part for part in said if part) or None,
            notes=(*found.notes, *self._notes(ready.failures, graph)),
            server_name="tree-sitter",
            server_version=installed_version("tree-sitter"),
        )

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Always there: it reads edges when it is asked."""
        return Health(True, "reads edges on demand", version=installed_version("tree-sitter"))

    async def aclose(self) -> None:
        """Wait for what is being built, and release the index; safe to call twice."""
        if builds := [build for build in self._builds.values() if not build.done()]:
            await asyncio.wait(builds)  # a thread cannot be stopped, and must not outlive its loop
        self._builds.clear()
        self._edges.clear()
        await self._index.aclose()

    async def _current(self, project: Project, until: float) -> tuple[ProjectEdges, bool]:
        """(edges, whether they are in step with the table). What is not built until then goes on, and the last ones are given."""
        table = self._index.table(project)
        edges = self._edges.setdefault(project.root, ProjectEdges(project.id))
        while not edges.is_current(table):
            build = self._builds.get(project.root)
            if build is None:
                files, generation = {f.path: f for f in table.files()}, table.generation
                work = asyncio.to_thread(edges.successor, project.root, files, generation)
                build = self._builds[project.root] = asyncio.create_task(work)
            done, _ = await asyncio.wait({build}, timeout=max(0.0, until - time.monotonic()))
            if not done:
                return edges, False
            if self._builds.get(project.root) is build:  # the first who waited for it keeps it, however long ago it was begun
                del self._builds[project.root]
                self._edges[project.root] = build.result()
            edges = self._edges.get(project.root, edges)
        return edges, True

    def _learned(self, graph: Sequence[ProjectEdges]) -> TypeFacts | None:
        """The types as the last question knew them, if nothing has changed since."""
        state, types = self._types
        return types if state == _state_of(graph) else None

    def _notes(self, failures: dict[str, ExpertError], graph: Sequence[ProjectEdges]) -> tuple[str, ...]:
        problems = Counter(problem for edges in graph for problem in edges.problems)
        return (*(f"{project}: {error}" for project, error in failures.items()), *problems, *self._index.notes)


def _state_of(graph: Sequence[ProjectEdges]) -> tuple[tuple[str, int], ...]:
    return tuple((edges.project, edges.generation) for edges in graph)
