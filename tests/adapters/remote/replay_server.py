"""An MCP server that answers with recordings: a local stand-in for systems that need a network, a key or an installation.

    python -I -S replay_server.py stdio|http RECORDING…

A call gets the recorded answer of its tool whose arguments share most with it. `dies` in a recording ends the process instead.
"""

import http.server
import json
import os
import pathlib
import sys

CALLS = [call for path in sys.argv[2:] for call in json.loads(pathlib.Path(path).read_text("utf-8"))["calls"]]


def answer(message):
    method = message.get("method")
    if "id" not in message:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "replay", "version": "1"}}
        return {**head, "result": said}
    if method == "tools/list":
        return {**head, "result": {"tools": [{"name": name, "inputSchema": {}} for name in sorted({c["tool"] for c in CALLS})]}}
    asked = message["params"].get("arguments", {})
    mine = [c for c in CALLS if c["tool"] == message["params"]["name"]]
    best = max(mine, key=lambda c: sum(asked.get(k) == v for k, v in c["arguments"].items()))
    if "dies" in best:
        print("Error: 14 UNAVAILABLE: No connection established", file=sys.stderr, flush=True)
        os._exit(1)
    return {**head, **{key: best[key] for key in ("result", "error") if key in best}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - its name in the base class
        pass

    def do_POST(self):
        reply = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if sys.argv[1] == "http":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
for line in sys.stdin:
    found = answer(json.loads(line))
    if found is not None:
        print(json.dumps(found), flush=True)
