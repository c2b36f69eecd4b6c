"""Where the index stands, in the console's words. Pure but for asking whether a work tree is still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from search_router.adapters.local.index_survey import ProjectIndex
from search_router.console.records import IndexStore, LeftOutFile, Repositories, RepositoryIndex
from search_router.errors import ExpertError
from search_router.router.index_life import IndexStatus
from search_router.schema import Project
from search_router.wire_text import encodable

SHOWN_FILES: Final = 200


def tell_repositories(status: IndexStatus, projects: Mapping[str, Project], read_us: int, whole_store: bool) -> Repositories:
    """Every project; with `whole_store` also what this machine's index holds of other workspaces."""
    told = [_tell(p) for p in status.projects]
    told += [_tell_failure(projects[name], error) for name, error in status.failures.items()]
    store = None
    if whole_store:
        found = status.store
        store = IndexStore(
            path=encodable(str(found.path)),
            bytes=found.bytes,
            rows=found.rows,
            unused_rows=found.unused,
            orphans=tuple(encodable(str(root)) for root, _ in found.roots if not root.is_dir()),
        )
    return Repositories(projects=tuple(told), store=store, notes=tuple(map(encodable, status.notes)), read_us=read_us)


def _tell(found: ProjectIndex) -> RepositoryIndex:
    project = found.project
    return RepositoryIndex(
        id=encodable(project.id),
        root=encodable(str(project.root)),
        kind=project.kind,
        branch=None if project.branch is None else encodable(project.branch),
        head=project.head,
        indexed=found.indexed,
        waiting=len(found.waiting),
        damaged=len(found.damaged),
        left_out=len(found.left_out),
        files_left_out=tuple(LeftOutFile(path=encodable(x.path), reason=encodable(x.reason)) for x in found.left_out[:SHOWN_FILES]),
        languages=dict(found.languages),
    )


def _tell_failure(project: Project, error: ExpertError) -> RepositoryIndex:
    return RepositoryIndex(
        id=encodable(project.id),
        root=encodable(str(project.root)),
        kind=project.kind,
        branch=None if project.branch is None else encodable(project.branch),
        head=project.head,
        indexed=0,
        waiting=0,
        damaged=0,
        left_out=0,
        files_left_out=(),
        languages={},
        failure=encodable(str(error)),
    )
