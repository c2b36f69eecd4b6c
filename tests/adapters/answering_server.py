"""A real HTTP server on 127.0.0.1 that answers POSTs of JSON as a test says: in the form that a product documents, or badly.

It is no product: what is tested with it is that we speak the documented form and survive every other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

LONGEST_WAIT = 30.0


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any


class AnsweringServer:
    """`answer` makes what is sent: JSON with status 200, whole bytes, a status, or None to stay silent until the test ends."""

    def __init__(self, port: int, answer: Callable[[Asked], Any]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.answer = answer
        self.asked: list[Asked] = []
        self.over = threading.Event()


@contextmanager
def answering_server(answer: Callable[[Asked], Any]) -> Iterator[AnsweringServer]:
    """A running server; it is gone on leaving."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            served.asked.append(asked)
            made = served.answer(asked)
            if made is None:
                served.over.wait(LONGEST_WAIT)
                return
            status = made if isinstance(made, int) else 200
            content = made if isinstance(made, bytes) else json.dumps({"error": "sk-in-the-body"} if status != 200 else made).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served = AnsweringServer(http.server_port, answer)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            served.over.set()
            http.shutdown()
            thread.join()


def words_shared(question: str, text: str) -> float:
    """A score that needs no model: how many words of the question a text has."""
    return float(len(set(question.lower().split()) & set(text.lower().replace("(", " ").split())))


def cohere_form(asked: Asked) -> Any:
    """POST /v2/rerank of Cohere, /v1/rerank of Jina: the best first."""
    rows = [{"index": n, "relevance_score": words_shared(asked.body["query"], t)} for n, t in enumerate(asked.body["documents"])]
    return {"id": "1", "results": sorted(rows, key=lambda r: -r["relevance_score"]), "meta": {"api_version": {"version": "2"}}}


def tei_form(asked: Asked) -> Any:
    """POST /rerank of Text Embeddings Inference: the best first."""
    rows = [{"index": n, "score": words_shared(asked.body["query"], t)} for n, t in enumerate(asked.body["texts"])]
    return sorted(rows, key=lambda r: -r["score"])
