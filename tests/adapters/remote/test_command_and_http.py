"""Systems without MCP: a command a question, and an HTTP service with JSON."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from search_router.errors import ExpertError, FailureClass
from search_router.schema import QueryForm
from tests.adapters.remote.desk import call_for, config_of, expert_of

pytestmark = [pytest.mark.anyio, pytest.mark.network]
GREP = {"form": "pattern", "pattern": r"^(?P<path>[^:\n]+):(?P<start>\d+):", "is_exact": True}


def command(*argv: str, **more: Any) -> Any:
    return config_of("command", **{"command": list(argv), "answer": GREP, **more})


async def test_a_command_is_run_without_a_shell_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = '$(touch owned)'\ny = 1\n")
    config = command("grep", "-rnE", "--", "{regex}", ".", ok_exits=[0, 1], answer={**GREP, "empty": [r"\A\Z"]})
    async with expert_of(config) as expert:
        asked = call_for(tmp_path, form=QueryForm.LITERAL, terms=("$(touch owned)",))
        (hit,) = (await expert.search(asked)).hits
        assert (hit.path, hit.start_line, hit.is_exact) == ("./a.py", 1, True)
        assert (await expert.search(call_for(tmp_path, form=QueryForm.LITERAL, terms=("absent",)))).hits == ()
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        ("import sys; sys.exit('not initialized, token=abcdef123456789')", FailureClass.INDEX_MISSING, "not initialized"),
        ("import sys; sys.exit('boom')", FailureClass.REJECTED, "exited with code 1: boom"),
        ("import os; os.kill(os.getpid(), 9)", FailureClass.CRASHED, "killed by signal 9"),
        ("import time; time.sleep(60)", FailureClass.TIMEOUT, "did not end within"),
        ("print('what?')", FailureClass.PROTOCOL_ERROR, "cannot be read"),
    ],
)
async def test_each_way_to_fail_has_its_class(tmp_path: Path, code: str, expected: FailureClass, words: str) -> None:
    answer = {**GREP, "errors": [{"pattern": "not initialized", "failure": "index-missing"}]}
    async with expert_of(command(sys.executable, "-I", "-S", "-c", code, answer=answer)) as expert:
        with pytest.raises(ExpertError, match=words) as caught:
            await expert.search(call_for(tmp_path, budget_ms=1500))
        assert caught.value.failure is expected
        assert "abcdef123456789" not in f"{caught.value} {caught.value.detail}"


async def test_output_beyond_the_cap_is_counted(tmp_path: Path) -> None:
    code = "for n in range(100000): print('a.py:%d:x' % n)"
    async with expert_of(command(sys.executable, "-I", "-S", "-c", code, max_bytes=4096)) as expert:
        result = await expert.search(call_for(tmp_path, limit=5, budget_ms=20_000))
        assert len(result.hits) == 5 and result.bytes_cut > 1_000_000 and result.partial


async def test_index_files_decide_between_missing_stale_and_fresh(tmp_path: Path) -> None:
    import os

    for name, seconds in (("old.py", 100), ("new.py", 300)):
        (tmp_path / name).write_text("x\n")
        os.utime(tmp_path / name, (seconds, seconds))
    config = command("printf", "old.py:1:x\\nnew.py:1:x\\n", freshness="index", index_files=[".idx/*"])
    async with expert_of(config) as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path))
        assert caught.value.failure is FailureClass.INDEX_MISSING
        (tmp_path / ".idx").mkdir()
        (tmp_path / ".idx/db").write_text("")
        os.utime(tmp_path / ".idx/db", (200, 200))
        result = await expert.search(call_for(tmp_path))
        assert [(h.path, h.flags) for h in result.hits] == [("old.py", ()), ("new.py", ("stale-index",))]


class Service(http.server.BaseHTTPRequestHandler):
    seen: list[Any] = []  # noqa: RUF012 - one server a test

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Service.seen.append((self.path, body, self.headers.get("Authorization")))
        status = int(body["query"]) if body["query"].isdigit() else 200
        found = {"results": [{"path": "src/app.py", "start_line": 4, "end_line": 5, "score": 0.5}], "took_ms": 1}
        data = b"Error embedding query" if status != 200 else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def service() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def over_http(url: str, **more: Any) -> Any:
    fields = {"path": "path", "start_line": "start_line", "end_line": "end_line", "score": "score"}
    block = {
        "url": f"{url}/search",
        "query": {"repo": "{project}"},
        "body": {"query": "{question}", "limit": "{limit}"},
        "answer": {"form": "json", "items": "results", "fields": fields},
    }
    return config_of("http-json", **{**block, **more})


async def test_a_service_gets_a_typed_body_and_its_hits_are_read(tmp_path: Path) -> None:
    Service.seen.clear()
    with service() as url:
        async with expert_of(over_http(url)) as expert:
            (hit,) = (await expert.search(call_for(tmp_path, "how does it start", limit=9))).hits
            assert (hit.path, hit.start_line, hit.native_score) == ("src/app.py", 4, 0.5)
        assert Service.seen == [("/search?repo=work", {"query": "how does it start", "limit": 9}, None)]


async def test_a_key_is_named_and_a_missing_one_is_unconfigured(tmp_path: Path) -> None:
    with service() as url:
        async with expert_of(over_http(url, headers={"Authorization": "Bearer {env:REMOTE_TEST_ABSENT}"})) as expert:
            with pytest.raises(ExpertError, match="REMOTE_TEST_ABSENT") as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.UNCONFIGURED


@pytest.mark.parametrize(
    ("status", "expected"), [("500", FailureClass.UNAVAILABLE), ("401", FailureClass.UNCONFIGURED), ("429", FailureClass.BUSY)]
)
async def test_a_status_that_is_no_answer_has_its_class(tmp_path: Path, status: str, expected: FailureClass) -> None:
    with service() as url:
        async with expert_of(over_http(url)) as expert:
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path, status))
            assert caught.value.failure is expected


async def test_a_service_that_is_gone_opens_the_circuit_with_the_next_try(tmp_path: Path) -> None:
    with service() as url:
        pass
    async with expert_of(over_http(url)) as expert:
        said = ""
        for _ in range(4):
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.UNAVAILABLE
            said = str(caught.value)
        assert "Not tried again for" in said
        assert not (await expert.health(())).available
