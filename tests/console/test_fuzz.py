"""Schemathesis against our own OpenAPI document: no 500, no hang, the document is true, and nothing is read without the token.

`scripts/console-check` runs it; the program is looked for in $CONSOLE_TOOLS/venv/bin and on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import anyio.to_thread
import httpx2
import jsonschema
import pytest

from search_router.console.api import ENDPOINTS
from search_router.console.bench_folders import RunFolders
from tests.console.bench_results import make_run
from tests.console.consoles import TOKEN, Served, console

pytestmark = [pytest.mark.anyio, pytest.mark.network, pytest.mark.timeout(180)]
SECONDS = 60
LEFT_OUT = "negative_data_rejection"
"""A faulty question is an answer of 200 with status `rejected` and a receipt, by design."""


async def fuzz(it: Served, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    tools = Path(os.environ.get("CONSOLE_TOOLS", "")) / "venv" / "bin" / "schemathesis"
    program = str(tools) if tools.is_file() else shutil.which("schemathesis")
    if program is None:
        pytest.skip("not there: schemathesis; scripts/console-check --install fetches it")
    # One worker, and examples bounded so that the server's own limit of requests a minute is not what is tested.
    argv = [program, "run", f"{it.url}/api/openapi.json", "--max-examples=15", "--seed=1", "--request-timeout=10", f"--max-time={SECONDS}"]
    argv += ["--phases=examples,coverage,fuzzing", f"--exclude-checks={LEFT_OUT}", "--no-color", *arguments]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=SECONDS * 2, check=False)

    return await anyio.to_thread.run_sync(run)


@pytest.mark.browser
async def test_the_document_is_true_and_nothing_that_can_be_sent_makes_a_500_or_a_hang(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one")
    async with console(tmp_path, flags=[f'http.bench_results="{tmp_path / "runs"}"']) as it:
        await it.router.search({"question": "start the app"})
        done = await fuzz(it, tmp_path, "--rate-limit=1000/m")
        print(done.stdout[-2000:])
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert (await it.web.get("/healthz")).status_code == 200


@pytest.mark.browser
async def test_with_the_token_the_document_is_true_as_well_and_without_it_only_401_comes_back(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        header = f"--header=Authorization: Bearer {TOKEN}"
        done = await fuzz(it, tmp_path, header, "--rate-limit=1000/m", "--exclude-path=/api/search", "--max-examples=5")
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


async def test_every_endpoint_is_401_without_the_token_whatever_else_is_sent(tmp_path: Path) -> None:
    async with console(tmp_path, TOKEN) as it:
        for endpoint in ENDPOINTS:
            path = endpoint.path.replace("{receipt_id}", "0123456789ab:1").replace("{run_id}", "0123456789ab")
            for headers in (
                {},
                {"Authorization": "Bearer x"},
                {"Authorization": f"Basic {TOKEN}"},
                {"Cookie": "search_router_console=1.2.3"},
            ):
                answer = await it.web.request(endpoint.method, f"{path}?x=1", headers=headers, json={} if endpoint.body else None)
                assert answer.status_code == 401, (path, headers)
                assert answer.json().keys() == {"error", "message", "remedy"}


async def test_answers_are_as_the_document_says(tmp_path: Path) -> None:
    """The same without schemathesis, over one answer of each endpoint and each kind of refusal."""
    make_run(tmp_path / "runs" / "one")
    (run,) = RunFolders(tmp_path / "runs").listed()
    async with console(tmp_path, flags=[f'http.bench_results="{tmp_path / "runs"}"']) as it:
        answer = await it.router.search({"question": "start the app"})
        assert answer.receipt is not None
        document = (await it.web.get("/api/openapi.json")).json()
        hashed = it.router.config_ref.hash
        checked = 0
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                real = path.replace("{receipt_id}", answer.receipt.id).replace("{run_id}", run.id)
                required = [p["name"] for p in operation["parameters"] if p["required"] and p["in"] == "query"]
                query = "&".join(f"{name}={run.id if '/runs' in path else hashed}" for name in required)
                for more, status in (("", 200), ("&surprise=1", 400)):
                    body = {"question": "start the app"} if method == "post" else None
                    got = await it.web.request(method, f"{real}?{query}{more}", json=body)
                    assert got.status_code == status, (real, got.text[:300])
                    check_answer(document, operation, got)
                    checked += 1
        assert checked == 2 * len(ENDPOINTS)


def check_answer(document: dict[str, object], operation: dict[str, object], answer: httpx2.Response) -> None:
    responses: dict[str, dict[str, dict[str, dict[str, object]]]] = operation["responses"]  # type: ignore[assignment] - an OpenAPI document as JSON
    content = responses[str(answer.status_code)]["content"]
    assert answer.headers["content-type"] in content
    schema = {**content["application/json"]["schema"], "components": document["components"]}  # type: ignore[dict-item] - an OpenAPI document as JSON
    jsonschema.Draft202012Validator(schema).validate(json.loads(answer.text))
