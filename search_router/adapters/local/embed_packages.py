"""Embedders that are Python packages, each with its model on disk. Nothing is imported before it is used, and nothing is downloaded.

A package that is not installed is the failure `unconfigured`, with the line that installs it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from search_router.adapters.local.embed_protocol import Floats
from search_router.adapters.local.embed_text import PLAIN, SPLIT, split_words
from search_router.errors import ExpertError, FailureClass

_READ = 1 << 20


class WordLlamaEmbedder:
    """Static vectors that the wordllama wheel carries (256 dimensions)."""

    name = "wordllama"
    preprocessing = SPLIT
    dimensions = 256
    local = True

    def __init__(self) -> None:
        package = _import("wordllama", "pip install 'search-router[wordllama]'")
        self.version = importlib.metadata.version("wordllama")
        # Only with the wheel's own folder as its cache does it find the weights that it ships, without asking the network.
        self._model: Any = package.WordLlama.load(cache_dir=Path(package.__file__).parent, dim=self.dimensions, disable_download=True)

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        return _checked(self._model.embed([split_words(text) or " " for text in texts]), len(texts), self.dimensions, self.name)

    def embed_query(self, text: str) -> Floats:
        return self.embed_documents([text])[0]

    def close(self) -> None:
        """There is nothing to release."""


class Model2VecEmbedder:
    """A folder with a model2vec model (`model.safetensors`, `tokenizer.json`, `config.json`)."""

    name = "model2vec"
    preprocessing = SPLIT
    local = True

    def __init__(self, folder: str) -> None:
        place = _folder(folder, self.name)
        package = _import("model2vec", "pip install 'search-router[model2vec]'")
        try:
            self._model: Any = package.StaticModel.from_pretrained(str(place))
        except (OSError, ValueError, KeyError, _damage()) as error:
            raise _unloadable(place, self.name, error) from error
        self.version = _digest(place)
        self.dimensions = int(self._model.dim)

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        return _checked(self._model.encode([split_words(text) for text in texts]), len(texts), self.dimensions, self.name)

    def embed_query(self, text: str) -> Floats:
        return self.embed_documents([text])[0]

    def close(self) -> None:
        """There is nothing to release."""


class SentenceTransformersEmbedder:
    """A folder with a sentence-transformers model; its own prompts for questions and documents are used where it has any."""

    name = "sentence-transformers"
    preprocessing = PLAIN
    local = True

    def __init__(self, folder: str, *, batch: int) -> None:
        place = _folder(folder, self.name)
        package = _import("sentence_transformers", "pip install sentence-transformers")
        try:
            self._model: Any = package.SentenceTransformer(str(place), local_files_only=True)
        except (OSError, ValueError, KeyError, _damage()) as error:
            raise _unloadable(place, self.name, error) from error
        self.version = _digest(place)
        self._batch = batch
        self.dimensions = len(self.embed_query("dimensions"))

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        encode = getattr(self._model, "encode_document", self._model.encode)
        found = encode(list(texts), batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True)
        return _checked(found, len(texts), self.dimensions, self.name)

    def embed_query(self, text: str) -> Floats:
        encode = getattr(self._model, "encode_query", self._model.encode)
        found = np.asarray(encode([text], show_progress_bar=False, convert_to_numpy=True), np.float32)
        return found[0]

    def close(self) -> None:
        """There is nothing to release."""


def check_vectors(found: Floats, count: int, dimensions: int, name: str) -> Floats:
    """The vectors, when they are what was asked for. Raises ExpertError `protocol-error` for another shape, or numbers that are none."""
    if found.shape != (count, dimensions):
        shape = "x".join(map(str, found.shape))
        raise ExpertError(
            FailureClass.PROTOCOL_ERROR,
            f"The embedder {name} gave {shape} numbers instead of {count}x{dimensions}.",
            remedy="Set vectors.dimensions to what the model gives.",
        )
    if not np.isfinite(found).all():
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"The embedder {name} gave vectors with numbers that are not finite.")
    return found


def _checked(found: Any, count: int, dimensions: int, name: str) -> Floats:
    return check_vectors(np.asarray(found, np.float32), count, dimensions, name)


def _import(package: str, line: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"The configured embedder needs the package {package}, which cannot be imported ({error.name or type(error).__name__}).",
            remedy=f"Run `{line}`, or set vectors.embedder to lsa.",
        ) from error


def _damage() -> type[Exception]:
    """What both packages' reader of weights raises for a damaged file; it is neither an OSError nor a ValueError."""
    return importlib.import_module("safetensors").SafetensorError


def _folder(name: str, embedder: str) -> Path:
    place = Path(name).expanduser()
    if not name or not place.is_dir():
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"vectors.model is {name!r}, which is no folder with a {embedder} model; models are never downloaded.",
            remedy="Set vectors.model to the folder.",
        )
    return place


def _unloadable(place: Path, embedder: str, error: Exception) -> ExpertError:
    return ExpertError(
        FailureClass.UNCONFIGURED,
        f"The folder {place} holds no {embedder} model that can be loaded ({type(error).__name__}).",
        remedy="Set vectors.model to a folder with a complete model.",
    )


def _digest(folder: Path) -> str:
    """SHA-256 over the names and bytes of a model's files, in hexadecimal."""
    told = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        told.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while part := stream.read(_READ):
                told.update(part)
    return told.hexdigest()
