"""A server on 127.0.0.1 that answers in the forms that OpenAI, Voyage, Ollama and Text Embeddings Inference document.

It is no product of theirs: what is tested with it is that we speak the documented form, not how well any of them embeds.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSIONS = 16


class EmbeddingServer:
    """Counts the texts it was given. `script` holds what to answer first: a status, or whole bytes with status 200."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.texts: list[str] = []
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.script: list[int | bytes] = []
        self.dimensions = DIMENSIONS
        self.retry_after: str | None = "0"

    def answer(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        self.requests.append((path, body, headers))
        if self.script:
            next_one = self.script.pop(0)
            return (200, next_one) if isinstance(next_one, bytes) else (next_one, b'{"error": "secret-in-body"}')
        texts: list[str] = body["inputs"] if path == "/embed" else body["input"]
        self.texts += texts
        rows = [vector_of(text, self.dimensions) for text in texts]
        match path:
            case "/v1/embeddings":
                data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
                return 200, json.dumps({"object": "list", "data": data[::-1], "model": body["model"], "usage": {}}).encode()
            case "/api/embed":
                return 200, json.dumps({"model": body["model"], "embeddings": rows}).encode()
            case "/embed":
                return 200, json.dumps(rows).encode()
            case _:
                return 404, b"{}"


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A bag of words: every word has its own fixed direction."""
    total = np.zeros(dimensions)
    for word in text.lower().replace("_", " ").replace("(", " ").split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        total += np.random.default_rng(seed).standard_normal(dimensions)
    return [round(float(number), 6) for number in total]


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """A running server; it is gone on leaving."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = served.answer(self.path, body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            if served.retry_after is not None and status != 200:
                self.send_header("Retry-After", served.retry_after)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served = EmbeddingServer(http.server_port)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            http.shutdown()
            thread.join()
