"""Process start to first answer over stdio, beside a bare server of the same SDK, alternating in one run."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from search_router.benchmark.timing import summarise

SECONDS = 60.0
PROTOCOL = "2025-11-25"


def first_answer_ms(command: list[str], environ: dict[str, str], cwd: Path) -> float:
    """Milliseconds from starting the process to the first tool result on its standard output."""
    started = time.perf_counter()
    client = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    call = {"name": "search_knowledge", "arguments": {"question": "where is the entry point"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ, cwd=cwd)
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps(m) + "\n" for m in messages[:2]).encode())
        process.stdin.flush()
        _read_reply(process, 1, started)
        process.stdin.write((json.dumps(messages[2]) + "\n").encode())
        process.stdin.flush()
        reply = _read_reply(process, 2, started)
        took = (time.perf_counter() - started) * 1000
        if "result" not in reply or reply["result"].get("isError"):
            raise RuntimeError(f"no answer from {command}: {str(reply)[:500]}")
        return took
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _read_reply(process: subprocess.Popen[bytes], number: int, started: float) -> dict[str, Any]:
    assert process.stdout is not None
    while True:
        left = SECONDS - (time.perf_counter() - started)
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise RuntimeError(f"no reply within {SECONDS:g} s")
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the server ended without a reply")
        message = json.loads(line)
        if message.get("id") == number:
            return message


def _environment(folder: Path) -> dict[str, str]:
    """State, configuration and bytecode of our own; the unmeasured round fills them.

    An installed package comes with bytecode; without this a checkout under PYTHONDONTWRITEBYTECODE would measure the compiler.
    """
    config = folder / "empty.toml"
    config.touch()
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ours = {"SEARCH_ROUTER_HOME": folder / "home", "SEARCH_ROUTER_CONFIG": config, "PYTHONPYCACHEPREFIX": folder / "bytecode"}
    return kept | {name: str(path) for name, path in ours.items()}


def run(rounds: int = 7) -> dict[str, object]:
    """Both servers `rounds` times, after one unmeasured round each; `ratio` is ours over bare, by medians."""
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "work"
        work.mkdir()
        (work / "main.py").write_text("def main():\n    '''The entry point.'''\n    return 0\n")
        environ = _environment(Path(name))
        for number in range(rounds + 1):
            a = first_answer_ms([sys.executable, "-m", "search_router.benchmark.bare_server"], environ, work)
            b = first_answer_ms([sys.executable, "-m", "search_router", "serve", "--root", str(work)], environ, work)
            if number:
                bare.append(a)
                ours.append(b)
    ours_summary, bare_summary = summarise(ours), summarise(bare)
    return {"ratio": round(ours_summary["p50_ms"] / bare_summary["p50_ms"], 3), "ours": ours_summary, "bare": bare_summary}
