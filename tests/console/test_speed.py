"""Each page in under 100 ms of the server's CPU time, with 100,000 receipts and the events of 100,000 requests in the store."""

from __future__ import annotations

import gc
import sqlite3
import statistics
import time
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest

from search_router.console.bench_folders import RunFolders
from search_router.mcp_http import principal_of
from search_router.receipts.keys import load_or_create_key
from search_router.router.enrich.database import FILE_NAME, open_for_writing
from search_router.server import build_http_app
from tests.console.bench_results import make_run
from tests.console.consoles import API_PATHS, PATHS, TOKEN
from tests.receipts.bulk import write_log
from tests.scripted_router import hit, scripted_router

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]
RECEIPTS = 100_000
LIMIT_MS = 100
TIMES = 5


def write_events(path: Path, log: str, requests: int) -> None:
    """A request and a call for each receipt, all in the last day."""
    database, now = open_for_writing(path), time.time_ns() // 1000

    def rows() -> Generator[tuple[object, ...]]:
        for n in range(requests):
            principal = principal_of(TOKEN) if n % 10 == 0 else "local"
            shared = ("slug", f"run{n % 3}", "typed-symbol", "v", f"{n % 2}" * 64, f"{log}:{n + 1}", principal)
            when = now - (requests - n) * 800_000
            yield f"e{n}", when, "request", "router", None, "answered", n % 700 / 3, None, *shared
            yield f"e{n}/grep", when, "call", "grep", "grep", "ok" if n % 50 else "crashed", n % 300 / 3, "lexical", *shared

    database.execute("BEGIN")
    database.executemany(
        "INSERT INTO tool_benchmark_events (event_id, time_us, kind, arm, expert_id, status, latency_ms, precision_class, paper_slug, "
        "run_id, task_class, config_version, config_hash, receipt_id, principal, operation, result_count, hit_miss) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'search', 1, 'hit')",
        rows(),
    )
    database.execute("INSERT INTO experiments VALUES ('slug', ?, ?, ?, ?, 0)", (now, now, requests, requests))
    database.execute("COMMIT")
    database.close()


async def test_no_page_takes_longer_than_a_tenth_of_a_second_with_a_hundred_thousand_receipts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    key = load_or_create_key(home / "keys" / "receipt-ed25519.pem")
    log = write_log(home / "receipts", key, RECEIPTS).stem
    write_events(home / FILE_NAME, log, RECEIPTS)
    for number in range(60):
        make_run(tmp_path / "runs" / f"r{number}")
    run, other, *_ = RunFolders(tmp_path / "runs").listed()
    more = (
        f"/console/experiments/runs/{run.id}",
        f"/console/experiments/runs/comparison?a={run.id}&b={other.id}",
        "/console/receipts?status=failed",
        "/console/receipts?operation=fetch",
        "/console/receipts?expert=nobody",
        f"/console/receipts?before={log}:50000",
        f"/console/receipts/{log}:50000",
        "/console/experiments?paper_slug=slug",
        f"/console/experiments?paper_slug=slug&a={'0' * 12}&b={'1' * 12}",
    )
    slow: dict[str, float] = {}
    flags = ['enrich.paper_slug="slug"', f'http.bench_results="{tmp_path / "runs"}"']
    async with scripted_router(tmp_path, {"one": [{"when": "*", "hits": [hit()]}]}, flags=flags) as router:
        assert (sqlite3.connect(home / FILE_NAME).execute("SELECT count(*) FROM tool_benchmark_events").fetchone()[0]) == 2 * RECEIPTS
        for token in (None, TOKEN):
            http = router.loaded.config.http.model_copy(update={"host": "127.0.0.1", "port": 80})
            transport = httpx2.ASGITransport(app=build_http_app(router, http, token))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:80", headers=headers, timeout=60) as web:
                for path in (*PATHS, *API_PATHS, *more):
                    took: list[float] = []
                    for _ in range(TIMES):
                        gc.collect()
                        began = time.process_time()
                        answer = await web.get(path)
                        took.append((time.process_time() - began) * 1000)
                        assert answer.status_code == 200 or (
                            token and (":50000" in path or "runs/" in path) and answer.status_code == 404
                        ), (
                            path,
                            answer.text[:200],
                        )
                    print(f"{'token' if token else 'local'} {path}: first {took[0]:.0f} ms, median {statistics.median(took):.0f} ms")
                    if statistics.median(took) > LIMIT_MS:
                        slow[path] = statistics.median(took)
    assert slow == {}
