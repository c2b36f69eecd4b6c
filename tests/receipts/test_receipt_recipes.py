"""The recipes of docs/receipts.md accept what we export and refuse edited copies."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.receipts.stores import StateDirectory

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "receipts.md"
RECIPES = dict(re.findall(r"<!-- example: (\w+) -->\n```\w*\n(.*?)\n```", DOCUMENT.read_text("utf-8"), re.S))
PROGRAMS = {"securesystemslib": (sys.executable, ".py"), "node": ("node", ".cjs"), "openssl": ("bash", ".sh")}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Receipts of two keys, exported."""
    folder = tmp_path_factory.mktemp("exported")
    state = StateDirectory(folder / "home")
    state.append(2)
    state.rotate()
    state.append(2)
    ended = state.run("export", folder / "out", *(f"{state.log().stem}:{seq}" for seq in (1, 3, 5)))
    assert ended.code == 0 and "5 envelopes of 1 logs" in ended.output
    assert (folder / "out" / "keys" / "first").read_text() == state.pins.read_text().split("\n")[1].split()[0] + "\n"
    return folder / "out"


def check(recipe: str, exported: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    program, suffix = PROGRAMS[recipe]
    if shutil.which(program) is None or (shutil.which(recipe) is None and recipe == "openssl"):
        pytest.skip(f"no {program} here")
    script = folder / f"recipe{suffix}"
    script.write_text(RECIPES[recipe])
    return subprocess.run([program, script, exported], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("recipe", PROGRAMS)
def test_a_recipe_accepts_what_is_exported(recipe: str, exported: Path, tmp_path: Path) -> None:
    ended = check(recipe, exported, tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert {"openssl": ended.stdout.count("Verified Successfully") == 3}.get(recipe, ended.stdout == "5 valid\n"), ended.stdout


@pytest.mark.parametrize("recipe", PROGRAMS)
def test_a_recipe_refuses_an_edited_copy(recipe: str, exported: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    (log,) = (copy / "envelopes").glob("*.jsonl")
    first, *rest = log.read_text().splitlines(keepends=True)
    envelope = json.loads(first)
    envelope["payload"] = envelope["payload"][:400] + ("A" if envelope["payload"][400] != "A" else "B") + envelope["payload"][401:]
    log.write_text("".join([json.dumps(envelope) + "\n", *rest]))
    (single,) = (copy / "receipts").glob("*-1.pae")
    single.write_bytes(single.read_bytes().replace(b'"answered"', b'"rejected"'))

    assert check(recipe, copy, tmp_path).returncode != 0


def test_node_sees_a_broken_chain(exported: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    (log,) = (copy / "envelopes").glob("*.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:1], *lines[2:]]))

    assert "broken chain" in check("node", copy, tmp_path).stderr
