"""What a package manager installed is not the project: it is left out of the index, told with its reason, and still read by grep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from search_router.adapters.local.index_survey import survey_index
from search_router.adapters.local.installed import INSTALLED, installed_folders
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.router.opening import open_router
from search_router.schema import Project
from tests.adapters.local.knowledge_workspace import call_for, expert_over, paths
from tests.repositories import write_files

ENVIRONMENT = {
    "env/pyvenv.cfg": "home = /usr/bin\n",
    "env/lib/python3.11/site-packages/quagga/core.py": "def striped_quagga():\n    return 1\n",
    "env/lib/python3.11/site-packages/quagga/README.md": "# Quagga\n\nthe striped quagga\n",
}
OWN = {"src/app.py": "def start():\n    return 0\n", "src/notes.md": "# Notes\n\nthe quagga is striped\n"}


@pytest.mark.parametrize(
    ("listed", "folders"),
    [
        (["env/pyvenv.cfg", "env/a.py"], ("env/",)),
        (["a/.venv/pyvenv.cfg", "b/node_modules/.package-lock.json"], ("a/.venv/", "b/node_modules/")),
        (["node_modules/.yarn-integrity", "node_modules/.modules.yaml"], ("node_modules/",)),
        (["conda/conda-meta/history"], ("conda/",)),
        (["pyvenv.cfg", "conda-meta/history"], ()),  # the project itself
        (["docs/my-pyvenv.cfg", "not_node_modules/.package-lock.json", "env/pyvenv.cfg.md"], ()),
    ],
)
def test_a_marked_folder_is_named_and_nothing_else(listed: list[str], folders: tuple[str, ...]) -> None:
    assert installed_folders(listed) == folders


@pytest.mark.anyio
async def test_it_is_left_out_with_the_reason_for_as_long_as_it_is_marked(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write_files(root, ENVIRONMENT | OWN)
    project, store = Project("work", root, "directory"), DerivedStore(tmp_path / "cache")
    index = SymbolIndex(store, max_file_bytes=1 << 16, workers=1)
    try:
        report = await index.refresh(project)
        assert set(report.left_out) == {LeftOut(path, INSTALLED) for path in ENVIRONMENT}
        survey = await survey_index(project, store, max_bytes=1 << 16)
        assert (survey.indexed, survey.waiting) == (2, ())
        assert {left.path for left in survey.left_out if left.reason == INSTALLED} == {left.path for left in report.left_out}
        (root / "env/pyvenv.cfg").unlink()
        report = await index.refresh(project)
        assert (report.files, report.left_out) == (4, ())
    finally:
        await index.aclose()


@pytest.mark.anyio
async def test_documents_in_it_are_not_the_projects_own(tmp_path: Path) -> None:
    write_files(tmp_path / "work", ENVIRONMENT | OWN)
    async with expert_over(tmp_path) as expert:
        found = await expert.search(call_for("striped quagga", Project("work", tmp_path / "work", "directory")))
    assert paths(found) == ["src/notes.md"]


@pytest.mark.anyio
async def test_grep_still_finds_it(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write_files(root, ENVIRONMENT | OWN)
    environ = {"SEARCH_ROUTER_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    async with open_router(roots=[root], environ=environ) as router:
        await router.catch_up()
        answer = await router.search({"question": "striped_quagga", "intent": "identifier"})
    assert [item.path for item in answer.evidence] == ["env/lib/python3.11/site-packages/quagga/core.py"]
