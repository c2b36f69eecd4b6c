"""`search-router index scip`: make SCIP indexes of the workspace's Python projects with ty-scip. It only translates."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from search_router.cli_frame import echo_json, json_option, run, workspace_options


@click.command("scip")
@click.option("--timeout", type=click.IntRange(1, 86_400), default=600, show_default=True, help="Seconds for one project.")
@workspace_options
@json_option
def index_scip(timeout: int, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Index the Python files of every project with ty-scip, in the cache. Exit code 1 when a project could not be indexed."""
    made = run(lambda: _index_all(roots, flags, timeout))
    if as_json:
        echo_json(made)
    else:
        for one in made:
            click.echo(f"{one['project']}: {one['text']}", err=not one["ok"])
    sys.exit(0 if all(one["ok"] for one in made) else 1)


async def _index_all(roots: Sequence[Path], flags: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """One row a project, in the workspace's order; a failure is a row too."""
    from search_router.adapters.local.scip_indexer import index_python
    from search_router.adapters.registry import reserve_of
    from search_router.config.loader import load_config
    from search_router.errors import ExpertError
    from search_router.router.workspace import discover_workspace

    loaded = load_config(roots=roots, environ=os.environ, flags=flags)
    workspace = await discover_workspace(loaded.config.workspace, list(roots))
    nested = [p.root for p in workspace.projects]
    rows: list[dict[str, Any]] = []
    for project in workspace.projects:
        try:
            made = await index_python(project, loaded.paths.cache, seconds=seconds, nested=nested, reserve=reserve_of(loaded.config))
        except ExpertError as error:
            rows.append({"project": project.id, "ok": False, "code": error.code, "text": str(error)})
            continue
        if made is None:
            rows.append({"project": project.id, "ok": True, "documents": 0, "text": "no Python files"})
            continue
        text = f"{made.documents} files in {made.seconds:.1f} s, {made.left_out} left out; {made.file}"
        rows.append(
            {
                "project": project.id,
                "ok": True,
                "documents": made.documents,
                "left_out": made.left_out,
                "seconds": round(made.seconds, 3),
                "file": str(made.file),
                "text": text,
            }
        )
    return rows
