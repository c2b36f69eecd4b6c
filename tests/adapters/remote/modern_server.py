"""An MCP server of 2026-07-28 that has dropped `initialize`, standard library only: `python -I -S modern_server.py stdio|http CODE`.

It refuses `initialize` with the error CODE, and every request without its envelope or, over HTTP, with headers that do not repeat it. The
tool `ask` wants input, the tool `search` finds; what it was sent is in the answer.
"""

import http.server
import json
import sys

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
CODE = int(sys.argv[2])
OFFERED = json.loads(sys.argv[3]) if len(sys.argv) > 3 else [VERSION]
SEEN: list[str] = []


def error(message, code, text, **data):
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, **({"data": data} if data else {})}}


def answer(message, headers=None):
    method = message.get("method")
    SEEN.append(method)
    if "id" not in message:
        return None
    if method == "initialize":
        return error(message, CODE, "the initialize handshake is not accepted", supported=OFFERED)
    params = message.get("params") or {}
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get(META + "protocolVersion") != VERSION or META + "clientCapabilities" not in meta:
        return error(message, -32602, "the request has no envelope")
    if headers is not None:
        wanted = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method, "Mcp-Name": params.get("name") if method == "tools/call" else None}
        for name, value in wanted.items():
            if headers.get(name) != value:
                return error(message, -32020, f"{name} does not match: {headers.get(name)!r}")
        if headers.get("Mcp-Session-Id"):
            return error(message, -32600, "there are no sessions")
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "server/discover":
        info = {META + "serverInfo": {"name": "newest", "version": "7"}}
        result |= {"supportedVersions": OFFERED, "capabilities": {"tools": {}}, "_meta": info}
    elif method == "tools/list":
        result |= {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("search", "ask")]}
    elif method == "tools/call" and params["name"] == "ask":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "input_required", "inputRequests": {}}}
    elif method == "tools/call":
        items = [{"path": "src/app.py", "start": 4, "end": 6}]
        result |= {"content": [{"type": "text", "text": json.dumps({"items": items, "seen": SEEN})}]}
    else:
        return error(message, -32601, "Method not found")
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - its name in the base class
        pass

    def do_POST(self):
        reply = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.headers)
        body = b"" if reply is None else json.dumps(reply).encode()
        code = (reply or {}).get("error", {}).get("code")
        self.send_response(202 if reply is None else 200 if code is None else 404 if code == -32601 else 400)
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
