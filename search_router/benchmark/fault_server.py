"""An MCP server with scripted faults, over stdio, streamable HTTP or SSE: a real process, standard library only, up in 50 ms.

    python -I -S fault_server.py stdio [start fault]
    python -I -S fault_server.py http|sse [start fault]      prints its port

A call does what its argument `question` says: `fault=NAME` anywhere in it names the fault, else it answers with hits in src/app.py.
Each start appends its process id to the file in FAULT_PIDS, if that is set.
"""

from __future__ import annotations

import http.server
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

Message = dict[str, Any]

HUGE = int(os.environ.get("FAULT_HUGE_MB", "50")) * 2**20
HITS: list[Message] = [{"path": "src/app.py", "start": 4, "end": 6, "symbol": "start"}, {"path": "notes.txt", "start": 1, "end": 1}]
START = sys.argv[2] if len(sys.argv) > 2 else "none"
TOOLS: list[Message] = [
    {"name": "search", "inputSchema": {"type": "object", "properties": {"question": {"type": "string"}, "mode": {"enum": ["fast"]}}}},
    {"name": "bare", "inputSchema": {"type": "object"}},
    {"name": "status", "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}}},
]
CALLS = {"n": 0}


class Leave(Exception):
    """Die instead of answering."""


def fault_of(message: Message) -> str:
    """The fault that a call asks for."""
    if message.get("method") != "tools/call":
        return "none"
    found = re.search(r"fault=([a-z0-9-]+)", json.dumps(message["params"].get("arguments", {})))
    return found[1] if found else "none"


def wrap(message: Message, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def text(value: str, **more: Any) -> Message:
    return {"content": [{"type": "text", "text": value}], **more}


def answers(message: Message) -> list[bytes]:
    """The raw messages (bytes) that answer one message. Raises Leave to die instead."""
    method = message.get("method")
    if method == "initialize":
        if START == "never-start":
            time.sleep(600)
        if START == "null-start":
            return [b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}']
        if START == "refuse-start":
            return [
                json.dumps(
                    {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "no model, api_key=abc123secret"}}
                ).encode()
            ]
        version = {"old-version": "1999-01-01", "no-version": None}.get(START, message["params"]["protocolVersion"])
        said: Message = {"capabilities": {"tools": {}}, "serverInfo": {"name": "faulty", "version": "9.1"}}
        return [json.dumps(wrap(message, {**said, **({"protocolVersion": version} if version else {})})).encode()]
    if method == "tools/list":
        return [json.dumps(wrap(message, {"tools": TOOLS})).encode()]
    if method != "tools/call":
        return [] if "id" not in message else [json.dumps(wrap(message, {})).encode()]
    return call(message)


def status(file: str) -> Message:
    """What the tool `status` says of the index: the text of a file, which a test writes."""
    try:
        said = Path(file).read_text("utf-8")
    except OSError as error:
        return text(f"no status: {error.strerror}", isError=True)
    if said == "never":
        time.sleep(600)
    return text(said)


def call(message: Message) -> list[bytes]:
    """The raw answers to one call."""
    CALLS["n"] += 1
    if message["params"]["name"] == "status":
        return [json.dumps(wrap(message, status(message["params"]["arguments"]["file"]))).encode()]
    fault = fault_of(message)
    arguments = message["params"].get("arguments", {})
    good = json.dumps(wrap(message, text(json.dumps({"items": HITS, "env": sorted(os.environ), "asked": arguments, "call": CALLS["n"]}))))
    if fault == "junk":
        return [b"Loading the model... 100%", b'{"level":"info","msg":"a log line"}', b"[1, 2", good.encode(), b"done."]
    if fault == "invalid-utf8":
        return [good.replace("notes.txt", "n\xf6tes.txt").encode("latin-1")]
    if fault == "truncated":
        return [good.encode()[: len(good) // 2]]
    if fault == "wrong-id":
        return [json.dumps({**json.loads(good), "id": 777777}).encode()]
    if fault == "null-id":
        return [json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}}).encode()]
    if fault == "null-result-id":
        return [json.dumps({**json.loads(good), "id": None}).encode()]
    if fault == "surrogate":
        return [json.dumps(wrap(message, text("\ud800"))).encode()]
    if fault == "nan":
        return [json.dumps(wrap(message, text("{}", structuredContent={"score": float("nan")}))).encode()]
    if fault == "is-error":
        return [json.dumps(wrap(message, text("index is locked; password=hunter22", isError=True))).encode()]
    if fault == "rpc-error":
        return [json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "regex parse error"}}).encode()]
    if fault == "prose":
        return [json.dumps(wrap(message, text("Failed to index: no such path"))).encode()]
    if fault == "empty-result":
        return [json.dumps(wrap(message, {})).encode()]
    if fault == "no-content":
        return [json.dumps(wrap(message, {"content": []})).encode()]
    if fault == "nothing":
        return [json.dumps(wrap(message, text(json.dumps({"items": []})))).encode()]
    if fault == "huge":
        items = [{"path": "src/app.py", "start": 1 + n % 9, "end": 2 + n % 9, "pad": "x" * 1000} for n in range(HUGE // 1060)]
        return [json.dumps(wrap(message, text(json.dumps({"items": items})))).encode()]
    if fault == "never":
        return []
    if fault == "slow":
        time.sleep(0.3)
    if fault == "die":
        raise Leave
    return [good.encode()]


# ------------------------------------------------------------------ stdio


def serve_stdio() -> None:
    """Until the end of the input."""
    if "grandchild" in START:
        subprocess.Popen(["sleep", "1000"])
    if "stubborn" in START:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if START == "die-start":
        sys.stderr.write("cannot open the database, token=sk-abcdefgh12345678" + "\n")
        sys.exit(3)
    out = sys.stdout.buffer
    lock = threading.Lock()

    def reply(message: Message) -> None:
        try:
            found = answers(message)
        except Leave:
            sys.stderr.write("segmentation fault, password: swordfish9" + "\n")
            os._exit(7)
        with lock:
            for raw in found:
                out.write(raw + b"\n")
            out.flush()

    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            threading.Thread(target=reply, args=(message,), daemon=True).start()  # one slow call holds nobody up
        else:
            reply(message)
    while "stubborn" in START:
        time.sleep(100)


# ------------------------------------------------------------------ HTTP


SESSIONS: set[str | None] = set()
STREAMS: dict[str, queue.Queue[bytes | None]] = {}


class Handler(http.server.BaseHTTPRequestHandler):
    """Streamable HTTP at any path, SSE at /sse."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65_536

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Says nothing."""

    def send_whole(self, status: int, kind: str, body: bytes, **headers: str | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value or "")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/messages"):
            return self.post_to_stream(message)
        fault = fault_of(message)
        session = self.headers.get("Mcp-Session-Id")
        if message.get("method") == "initialize":
            session = f"s{len(SESSIONS)}"
            SESSIONS.add(session)
        elif session not in SESSIONS:
            return self.send_whole(404, "text/plain", b"no such session")
        if fault == "lost":
            SESSIONS.clear()
            return self.send_whole(404, "text/plain", b"no such session")
        if fault.startswith("status-"):
            return self.send_whole(int(fault[7:]), "text/plain", b"refused, api_key=abc123secret")
        if fault == "not-mcp":
            return self.send_whole(200, "text/html", b"<html>hello</html>")
        if fault == "accepted" or "id" not in message:
            return self.send_whole(202, "text/plain", b"")
        try:
            found = answers(message)
        except Leave:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc":')
            self.wfile.flush()
            self.connection.close()
            self.close_connection = True
            return None
        if fault == "never":
            time.sleep(600)
        if START == "events" or len(found) > 1:
            body = b"".join(b"event: message\r\ndata: " + raw + b"\r\n\r\n" for raw in found)
            return self.send_whole(200, "text/event-stream", body, Mcp_Session_Id=session)
        return self.send_whole(200, "application/json", found[0] if found else b"", Mcp_Session_Id=session)

    def do_DELETE(self) -> None:
        SESSIONS.discard(self.headers.get("Mcp-Session-Id"))
        self.send_whole(200, "text/plain", b"")

    def do_GET(self) -> None:
        if not self.path.startswith("/sse"):
            return self.send_whole(405, "text/plain", b"")
        name = f"q{len(STREAMS)}"
        STREAMS[name] = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: /messages?s={name}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True
        while (raw := STREAMS[name].get()) is not None:
            self.wfile.write(b"event: message\ndata: " + raw + b"\n\n")
            self.wfile.flush()
        return None

    def post_to_stream(self, message: Message) -> None:
        stream = STREAMS[self.path.rpartition("=")[2]]
        self.send_whole(202, "text/plain", b"")
        try:
            for raw in answers(message):
                stream.put(raw)
        except Leave:
            stream.put(None)


class Site(http.server.ThreadingHTTPServer):
    """Many clients at once; what a client that leaves does to a thread is nobody's concern."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing."""


def serve_http() -> None:
    """On a free port, for ever."""
    server = Site(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    if os.environ.get("FAULT_PIDS"):
        with Path(os.environ["FAULT_PIDS"]).open("a") as pids:
            pids.write(f"{os.getpid()}\n")
    if sys.argv[1] == "stdio":
        serve_stdio()
    else:
        serve_http()
