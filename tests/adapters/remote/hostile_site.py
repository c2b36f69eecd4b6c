"""An HTTP server that attacks its clients: `python -I -S hostile_site.py ATTACK [URL]` prints its port, and then what it is sent.

redirect: 307 to URL · bomb: gzip of 200 MB in 200 kB, twice compressed · html: a page · drip: an event stream with comments, for ever ·
lines: one event of empty lines, for ever · strays: answers to nobody, for ever · header: a header of 1 MB · short: less than it says
"""

import gzip
import http.server
import json
import sys

ATTACK = sys.argv[1]
BOMB = gzip.compress(gzip.compress(b"0" * 200_000_000, 1), 1) if ATTACK == "bomb" else b""


def mcp_answer(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "hostile", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "search", "inputSchema": {}}]}
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - its name in the base class
        pass

    def whole(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) + (1000 if ATTACK == "short" and status == 200 and headers.get("x") else 0)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = ATTACK == "short" and bool(headers)

    def do_GET(self):
        self.attack({"id": 1})

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps({"path": self.path, "key": self.headers.get("X-Key"), "method": message.get("method")}), flush=True)
        if ATTACK != "redirect" and "method" in message:
            if "id" not in message:
                return self.whole(202, "text/plain", b"")
            result = mcp_answer(message)
            if result is not None:
                return self.whole(200, "application/json", json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
        return self.attack(message)

    def attack(self, message):
        if ATTACK == "redirect":
            self.whole(307, "text/plain", b"", Location=sys.argv[2])
        elif ATTACK == "bomb":
            self.whole(200, "application/json", BOMB, Content_Encoding="gzip, gzip")
        elif ATTACK == "html":
            self.whole(200, "text/html", b"<html>please log in</html>")
        elif ATTACK == "header":
            self.whole(200, "application/json", b"{}", X_Long="x" * 1_000_000)
        elif ATTACK == "short":
            self.whole(200, "application/json", b'{"jsonrpc": "2.0", ', x="1")
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            flood = {
                "drip": b": still there\n\n" * 1000,
                "lines": b"data:\n" * 10_000,
                "strays": b'data: {"jsonrpc": "2.0", "id": 99999, "result": {}}\n\n' * 1000,
            }[ATTACK]
            while True:
                self.wfile.write(flood)


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


server = Site(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
