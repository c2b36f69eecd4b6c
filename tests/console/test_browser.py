"""The console in a real Chromium: axe-core, light and dark, wide and narrow, with hostile receipts; screenshots are kept.

`scripts/console-check` runs it. The tools are looked for in $CONSOLE_TOOLS (node_modules with axe-core and playwright-core).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from search_router.console.bench_folders import RunFolders
from tests.console.bench_results import make_run, write_summary
from tests.console.consoles import NASTY, TOKEN, Served, console

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.network, pytest.mark.timeout(300)]
NOT_FOUND = "Failed to load resource: the server responded with a status of 404 (Not Found)"
PAGES = {
    "overview": "/console/",
    "search": "/console/search",
    "receipts": "/console/receipts",
    "experts": "/console/experts",
    "repositories": "/console/repositories",
    "experiments": "/console/experiments",
    "runs": "/console/experiments/runs",
    "configuration": "/console/configuration",
    "problem": "/console/nothing",
}


def browser_tools() -> tuple[str, str]:
    """(chromium, node); skips where something is missing and says what."""
    chromium, node = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"), shutil.which("node")
    modules = Path(os.environ.get("CONSOLE_TOOLS", "")) / "node_modules"
    missing = [name for name, found in (("chromium", chromium), ("node", node)) if found is None]
    missing += [name for name in ("axe-core", "playwright-core") if not (modules / name).is_dir()]
    if missing or chromium is None or node is None:
        pytest.skip(f"not there: {', '.join(missing)}; scripts/console-check --install fetches axe-core and playwright-core")
    return chromium, node


def shots_directory(tmp_path: Path) -> Path:
    directory = Path(os.environ.get("CONSOLE_SCREENSHOTS") or tmp_path / "screenshots")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


async def browse(it: Served, pages: Mapping[str, str], shots: Path, *, login: bool = False, question: str = "") -> Any:
    """{"told": what each page looks like, "asked": what the question came to}."""
    chromium, node = browser_tools()
    entry = {"path": "/console/login", "token": TOKEN} if login else None
    wanted = {"chromium": chromium, "base": it.url, "pages": dict(pages), "shots": str(shots), "full": [], "login": entry}
    argv = [node, str(Path(__file__).with_name("browse.mjs")), json.dumps({**wanted, "question": question})]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)

    done = await anyio.to_thread.run_sync(run)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def pages_of_runs(runs: Path) -> dict[str, str]:
    """Of every run its page, and two of them compared."""
    known = {folder.path.name: folder.id for folder in RunFolders(runs).listed()}
    pages = {f"run-{number}": f"/console/experiments/runs/{run_id}" for number, run_id in enumerate(known.values())}
    return {**pages, "run-comparison": f"/console/experiments/runs/comparison?a={known['before']}&b={known['after']}"}


def assert_fit_for_all(told: list[dict[str, Any]]) -> None:
    for page in told:
        where = f"{page['name']} {page['colorScheme']}"
        assert [v for v in page["violations"] if v["impact"] in ("serious", "critical")] == [], where
        assert page["passes"] > 10, where
        assert page["said"] == ([NOT_FOUND] if page["name"] == "problem" else []), where
        assert page["foreign"] == [] and page["styled"], where
        assert page["wide"] <= 0, f"{where}: {page['wide']} pixels wider than the window"
        assert page["first"] == "Skip to the content", where


async def test_every_page_is_accessible_runs_nothing_and_fits_a_narrow_window(tmp_path: Path) -> None:
    browser_tools()
    runs = tmp_path / "runs"
    make_run(runs / "before")
    make_run(runs / "after", ndcg=0.25, run_name=NASTY, flags=[NASTY, "w" * 500])
    write_summary(runs / ("<b>" + "n" * 200), {"arms": "x"})
    async with console(tmp_path, flags=[f'http.bench_results="{runs}"']) as it:
        for question in ("start the app", "nothing of the kind", "which commit did it", NASTY, "א" * 500, "w" * 4000):
            await it.router.search({"question": question}, session=NASTY, principal="local")
        answer = await it.router.search({"question": "start the app"}, principal="local")
        assert answer.receipt is not None
        pages = {**PAGES, "receipt": f"/console/receipts/{answer.receipt.id}", **pages_of_runs(runs)}
        seen = await browse(it, pages, shots_directory(tmp_path))
        assert len(seen["told"]) == 2 * len(pages)
        assert_fit_for_all(seen["told"])


async def test_a_browser_logs_in_asks_and_logs_out_with_the_keyboard(tmp_path: Path) -> None:
    """Also that our own forms pass the check of the Origin as a browser sends it."""
    browser_tools()
    async with console(tmp_path, TOKEN) as it:
        shots = shots_directory(tmp_path)
        assert_fit_for_all((await browse(it, {"login": "/console/login"}, shots))["told"])
        seen = await browse(it, {"overview-of-a-token": "/console/"}, shots, login=True, question=f"start {NASTY}")
        assert_fit_for_all(seen["told"])
        for asked in seen["asked"]:
            assert asked["said"] == [] and asked["wide"] <= 0, asked
            assert asked["receipt"].startswith("Receipt ")
        assert len(seen["asked"]) == 2
