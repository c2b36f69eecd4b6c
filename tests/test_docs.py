"""The examples in the documents are what the product does today."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from search_router.config.loader import load_config
from search_router.router.opening import open_router
from tests.scripted_router import EMBEDDED, environ

TOP = Path(__file__).resolve().parent.parent
EXAMPLE_QUESTION = "how does retry of a charge work"
PATIENT = ["budget.latency_ms=60000", *(f"experts.{name}.cap_ms=60000" for name in EMBEDDED)]
"""What is printed does not depend on how much else the machine has to do."""
EXAMPLE = re.compile(r"<!-- example: (\w+) -->\n```(?:\w*)\n(.*?)\n```", re.S)


def examples(document: str) -> dict[str, str]:
    return dict(EXAMPLE.findall((TOP / document).read_text("utf-8")))


def masked(text: str) -> str:
    """Without what differs from run to run: times and receipt ids."""
    return re.sub(r"receipt [0-9a-f]{12}:\d+", "receipt ID", re.sub(r"\d+ ms", "N ms", text))


async def example_text(folder: Path) -> str:
    shutil.copytree(TOP / "docs/example", folder / "example", ignore=shutil.ignore_patterns("__pycache__"))
    async with open_router(roots=[folder / "example"], environ=environ(folder), flags=PATIENT) as router:
        return router.render(await router.search({"question": EXAMPLE_QUESTION, "limit": 3}))


@pytest.mark.anyio
async def test_the_answer_in_the_readme_is_what_the_product_prints(tmp_path: Path) -> None:
    assert masked(examples("README.md")["answer"]).split("\n")[1:] == masked(await example_text(tmp_path)).split("\n")


def run(folder: Path, *command: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=TOP, env={**os.environ, **environ(folder)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_library_example_runs(tmp_path: Path) -> None:
    out = run(tmp_path, "-W", "error", "-c", examples("README.md")["library"])
    assert re.search(r"^[0-9a-f]{12}:1$", out, re.M)


def test_a_receipt_is_verified_with_the_recipe_and_no_code_of_ours(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(run(tmp_path, "-m", "search_router", "search", "where are receipts signed", "--root", "docs", "--json"), "utf-8")
    script = tmp_path / "verify.py"
    script.write_text(examples("docs/receipts.md")["verify"])
    key = tmp_path / "home/keys/receipt-ed25519.pem.pub"
    assert "search_router" not in script.read_text()
    assert run(tmp_path, str(script), str(answer), str(key)) == "valid\n"
    answer.write_text(answer.read_text("utf-8").replace('"project":"docs"', '"project":"dogs"'), "utf-8")
    run(tmp_path, str(script), str(answer), str(key), code=1)


def test_the_configuration_example_loads(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(\[workspace\].*?)```", (TOP / "docs/configuration.md").read_text("utf-8"), re.S)
    assert block is not None
    user = tmp_path / "user.toml"
    user.write_text(block[1])
    loaded = load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path), "SEARCH_ROUTER_CONFIG": str(user)})
    assert loaded.config.workspace.groups == {"shop": ("api", "frontend")}


def test_the_walk_is_three_commands_of_one_line_that_install_serve_and_ask() -> None:
    """scripts/walk runs them as they stand there; it needs the package index, so here only that they are what it looks for."""
    walked = re.findall(r"<!-- walk: (\w+) -->\n```bash\n(.*?)\n```", (TOP / "docs/console.md").read_text("utf-8"), re.S)
    assert [name for name, _ in walked] == ["install", "serve", "ask"]
    assert all("\n" not in command and ".venv" in command for _, command in walked)


def test_the_versions_agree() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"]
