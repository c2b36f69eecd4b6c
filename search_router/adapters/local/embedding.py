"""The embedder that the configuration names, loaded once and shared by everything that makes vectors: of code and of documents.

numpy, the embedder and what it needs are imported when the first vector is wanted.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio.to_thread

from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.shared_runs import look_at_outcome
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass

if TYPE_CHECKING:
    from search_router.adapters.local.embed_protocol import Embedder, Floats
    from search_router.adapters.local.vector_cache import VectorCache

QUERIES_KEPT: Final = 64
SERVERS: Final = frozenset({"openai", "voyage", "ollama", "tei"})


class Embedding:
    """Belongs to one event loop.

    Args:
        settings: what embeds. cache_dir: where vectors are kept between processes. reserve: room on the disk that they leave.
    """

    def __init__(self, settings: VectorsConfig, cache_dir: Path, reserve: Reserve = DEFAULT_RESERVE) -> None:
        self.settings = settings
        self._reserve = reserve
        self.cache_dir = cache_dir
        self._cache: VectorCache | None = None
        self._embedder: Embedder | None = None
        self._loading = asyncio.Lock()
        self._queries: dict[tuple[str, str], Floats] = {}

    @property
    def enabled(self) -> bool:
        return self.settings.embedder != "none"

    @property
    def embedder(self) -> Embedder | None:
        """What was loaded; None before that, and for `lsa`, which is made of each body of text."""
        return self._embedder

    @property
    def notes(self) -> tuple[str, ...]:
        """What the caller should know: that text was sent away, and what went wrong with the cache."""
        sent = f"source text and questions are sent to {self.sent_to} ({self.settings.embedder})"
        return (*((sent,) if self.sent_to else ()), *(self._cache.notes if self._cache else ()))

    @property
    def sent_to(self) -> str | None:
        """The server to which source text is sent; None when it stays in this process."""
        if self.settings.embedder not in SERVERS or not self.settings.allow_remote:
            return None
        parts = urlsplit(self.settings.url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    async def load(self) -> VectorCache:
        """The cache, and the embedder where it is not made of each body of text. Raises ExpertError."""
        async with self._loading:
            if self._cache is None:
                self._cache = await anyio.to_thread.run_sync(_open_cache, self.cache_dir, self._reserve)
            if self._embedder is None and self.settings.embedder != "lsa":
                self._embedder = await anyio.to_thread.run_sync(_load_embedder, self.settings)
        return self._cache

    async def embed_query(self, embedder: Embedder, question: str, until: float) -> Floats:
        """The question's vector; the last ones are remembered, because several experts ask for the same. Raises ExpertError."""
        key = embedder.version, question
        if key not in self._queries:
            asked = asyncio.create_task(asyncio.to_thread(embedder.embed_query, question))
            asked.add_done_callback(look_at_outcome)
            done, _ = await asyncio.wait({asked}, timeout=max(0.05, until - time.monotonic()))
            if not done:
                raise ExpertError(FailureClass.TIMEOUT, f"The embedder {embedder.name} did not embed the question in time.")
            while len(self._queries) >= QUERIES_KEPT:
                del self._queries[next(iter(self._queries))]
            self._queries[key] = asked.result()
        return self._queries[key]

    def interrupt(self) -> None:
        """Let waits of the embedder end early."""
        if self._embedder is not None:
            self._embedder.close()

    async def aclose(self) -> None:
        """Release the embedder and the cache; safe to call twice."""
        self.interrupt()
        if self._cache is not None:
            await anyio.to_thread.run_sync(self._cache.close)


def _open_cache(directory: Path, reserve: Reserve) -> VectorCache:
    from search_router.adapters.local.vector_cache import VectorCache

    return VectorCache(directory, reserve)


def _load_embedder(settings: VectorsConfig) -> Embedder:
    from search_router.adapters.local.embed_choice import load_embedder

    return load_embedder(settings)
