"""The process that speaks with Milvus: `python -m search_router.adapters.remote.milvus_worker`, an MCP server of one tool on pipes.

Not made with the SDK, whose import costs a second. One line a message; searches run in threads; what libraries print goes to standard
error. It ends with its standard input.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from search_router.adapters.remote.milvus_collection import Asked, Collections, answer_of
from search_router.errors import ExpertError, FailureClass
from search_router.standard_streams import claim_standard_streams

THREADS: Final = 8
IDLE_CHECK_SECONDS: Final = 1.0
READ_BY_PYMILVUS: Final = frozenset({"MILVUS_URI", "MILVUS_DEFAULT_CONNECTION"})
"""Its import fails where this holds the path of a database, which is what our users put there; it is told the URI in each call."""
PROTOCOL: Final = "2025-06-18"


class Worker:
    """Answers the messages on a pair of descriptors."""

    def __init__(self, sink: int) -> None:
        self._sink = sink
        self._writing = threading.Lock()
        self._collections = Collections()
        self._over = threading.Event()

    def serve(self, source: int) -> None:
        """Until the input ends."""
        threading.Thread(target=self._let_go, daemon=True).start()
        with os.fdopen(source, "rb", closefd=False) as lines, ThreadPoolExecutor(THREADS) as pool:
            for line in lines:
                message = json.loads(line)
                if "id" in message and "method" in message:
                    if message["method"] == "tools/call":
                        pool.submit(self._call, message).add_done_callback(partial(self._confess, message["id"]))
                    else:
                        self._answer(message["id"], self._about(message["method"]))
            self._over.set()
            os._exit(0)  # a search may still hang in a thread that nobody can end

    def _about(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            return {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": {"name": "milvus", "version": ""}}
        return {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]} if method == "tools/list" else {}

    def _call(self, message: dict[str, Any]) -> None:
        try:
            result = answer_of(self._collections.search(Asked.model_validate(message["params"]["arguments"])))
        except ExpertError as error:
            result = _failure(error)
        self._answer(message["id"], result)

    def _confess(self, request: object, ended: Future[None]) -> None:
        """What a search raised that nobody foresaw is an answer too; its traceback goes to standard error."""
        if (error := ended.exception()) is not None:
            logging.getLogger(__name__).error("a search failed", exc_info=error)
            self._answer(request, _failure(ExpertError(FailureClass.INTERNAL, f"{type(error).__name__} in the process of the client.")))

    def _answer(self, request: object, result: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", "id": request, "result": result}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._writing:
            view = memoryview(data)
            while view:
                view = view[os.write(self._sink, view) :]

    def _let_go(self) -> None:
        while not self._over.wait(IDLE_CHECK_SECONDS):
            self._collections.release_idle()


def _failure(error: ExpertError) -> dict[str, Any]:
    told = {"failure": error.failure.value, "message": error.message, "remedy": error.remedy}
    return {"content": [{"type": "text", "text": error.message}], "structuredContent": told, "isError": True}


def main() -> int:
    for name in [name for name in os.environ if name in READ_BY_PYMILVUS or name.startswith("MILVUS_CONN_")]:
        del os.environ[name]
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs every error that it raises, with its traceback
    with claim_standard_streams() as wire:
        Worker(wire.sink).serve(wire.source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
