"""Files for the identity step: read at once, kept while they are the same, and not parsed when the time is up."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.sources import SourceReader
from search_router.schema import Definition, Project

pytestmark = pytest.mark.anyio
ONE = (Definition("f", "function", 1, 1),)


def project(root: Path, files: int) -> Project:
    for number in range(files):
        (root / f"{number}.py").write_text(f"def f{number}(): pass\n")
    return Project("p", root, "directory")


async def test_files_are_defined_until_the_time_is_up_and_the_rest_are_still_read(tmp_path: Path) -> None:
    defined: list[str] = []

    async def slowly(_: Project, path: str, __: str) -> tuple[Definition, ...]:
        await anyio.sleep(0.1)  # the work itself, not a wait for something
        defined.append(path)
        return ONE

    work = project(tmp_path, 30)
    keys = [("p", f"{number}.py") for number in range(30)]
    reader = SourceReader(slowly)
    began = time.monotonic()
    facts, undefined = await reader.read(keys, {"p": work}, 0.35)
    assert time.monotonic() - began < 2
    assert set(facts) == set(keys) and all(facts[key].text.startswith("def f") for key in keys)
    assert 0 < undefined < 30 and len(defined) == 30 - undefined
    assert {path for _, path in keys if facts["p", path].definitions} == set(defined)
    again, undefined = await reader.read(keys, {"p": work})
    assert undefined == 0 and all(again[key].definitions == ONE for key in keys)
    assert sorted(defined) == sorted(path for _, path in keys), "what was defined is kept, what was not is defined now"


async def test_a_missing_file_is_not_in_the_result(tmp_path: Path) -> None:
    facts, undefined = await SourceReader().read([("p", "0.py"), ("p", "gone.py")], {"p": project(tmp_path, 1)})
    assert (set(facts), undefined) == ({("p", "0.py")}, 0)
