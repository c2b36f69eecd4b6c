"""An embedder with OpenAI's interface on 127.0.0.1: a bag of words, each with its own fixed direction. Prints its port.

Standard library only. It honours `encoding_format` base64, which OpenAI's JavaScript client asks for.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import struct
import sys

WORD_DIMENSIONS = 64


def vector_of(text: str) -> list[float]:
    total = [0.0] * WORD_DIMENSIONS
    for word in re.findall(r"[a-z]+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=WORD_DIMENSIONS).digest()
        total = [sum_ + byte / 127.5 - 1 for sum_, byte in zip(total, digest, strict=True)]
    length = sum(each * each for each in total) ** 0.5 or 1.0
    shared = 1.5  # all texts have this in common, as real models' texts do: some systems leave out what has a cosine below 0.5
    scale = (1 + shared * shared) ** 0.5
    return [*(each / length / scale for each in total), shared / scale]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = [vector_of(text) for text in texts]
        if body.get("encoding_format") == "base64":
            made: list[object] = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
        else:
            made = list(rows)
        data = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(made)]
        answer = {"object": "list", "data": data, "model": body.get("model"), "usage": {"prompt_tokens": 0, "total_tokens": 0}}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
