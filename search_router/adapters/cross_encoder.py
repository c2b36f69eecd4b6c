"""A cross-encoder in this process: a folder with a sentence-transformers model, run in one thread of its own.

The thread cannot be killed, so it looks between small batches whether somebody still waits. Loading the model is its first piece of work;
a question that comes too early is told that it takes too long, and a later one finds the model loaded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from search_router.adapters.model_folder import damaged_weights, digest_folder, import_package, locate_model, unloadable_model
from search_router.errors import ExpertError, FailureClass

BATCH: Final = 8
SETTING: Final = "rerank.model"


class PairModel(Protocol):
    """What scores pairs of a question and a text; sentence-transformers' CrossEncoder is one."""

    def predict(self, sentences: list[tuple[str, str]], *, show_progress_bar: bool) -> Any:
        """One number a pair."""
        ...


class Loaded(Protocol):
    """Makes the model: (model, version). Blocks; raises ExpertError `unconfigured`."""

    def __call__(self, folder: str) -> tuple[PairModel, str]: ...


def load_cross_encoder(folder: str) -> tuple[PairModel, str]:
    """The model of a folder and the digest of its files. Raises ExpertError `unconfigured` when package, folder or model is missing."""
    place = locate_model(folder, SETTING, "cross-encoder")
    package = import_package("sentence_transformers", "pip install 'search-router[rerank]'", "rerank.kind to off")
    try:
        return package.CrossEncoder(str(place), local_files_only=True), digest_folder(place)
    except (OSError, ValueError, KeyError, damaged_weights()) as error:
        raise unloadable_model(place, SETTING, "cross-encoder", error) from error


class CrossEncoderReranker:
    """Scores with the model of a folder; `load` is what makes it."""

    name = "cross-encoder"
    local = True

    def __init__(self, folder: str, load: Loaded = load_cross_encoder) -> None:
        self._folder = folder
        self._load = load
        self._model: PairModel | None = None
        self._thread = ThreadPoolExecutor(1, "cross-encoder")
        self._closed = threading.Event()
        self.version = ""

    async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Raises ExpertError `unconfigured`; a deadline is the caller's (see `score_texts`), and frees the thread after a batch."""
        if self._closed.is_set():
            raise ExpertError(FailureClass.UNAVAILABLE, "The cross-encoder is closed.")
        left = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._score, question, list(texts), left)
        try:
            return await work
        finally:
            left.set()

    async def aclose(self) -> None:
        """Let the thread end after its batch, without waiting for it."""
        self._closed.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _score(self, question: str, texts: list[str], left: threading.Event) -> list[float]:
        if self._model is None:
            self._model, self.version = self._load(self._folder)
        scores: list[float] = []
        for first in range(0, len(texts), BATCH):
            if left.is_set() or self._closed.is_set():
                break
            pairs = [(question, text) for text in texts[first : first + BATCH]]
            scores += [_number(score) for score in _predict(self._model, pairs)]
        return scores


def _predict(model: PairModel, pairs: list[tuple[str, str]]) -> Any:
    try:
        return model.predict(pairs, show_progress_bar=False)
    except (RuntimeError, ValueError, TypeError, LookupError, OSError, MemoryError) as error:
        raise ExpertError(
            FailureClass.CRASHED,
            f"The cross-encoder failed over {len(pairs)} texts ({type(error).__name__}).",
            remedy=f"Check {SETTING}, or set rerank.kind to off.",
        ) from error


def _number(score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        raise ExpertError(
            FailureClass.PROTOCOL_ERROR,
            "The cross-encoder gave something else than one number a text; it is a model of several classes.",
            remedy=f"Set {SETTING} to a model with one output.",
        ) from error
