"""Embedders that are Python packages, each with its model on disk. Nothing is imported before it is used, and nothing is downloaded.

A package that is not installed is the failure `unconfigured`, with the line that installs it.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from search_router.adapters.local.embed_protocol import Floats
from search_router.adapters.local.embed_text import PLAIN, SPLIT, split_words
from search_router.adapters.model_folder import damaged_weights, digest_folder, import_package, locate_model, unloadable_model
from search_router.errors import ExpertError, FailureClass

_SETTING = "vectors.model"
_OTHERWISE = "vectors.embedder to lsa"


class WordLlamaEmbedder:
    """Static vectors that the wordllama wheel carries (256 dimensions)."""

    name = "wordllama"
    preprocessing = SPLIT
    dimensions = 256
    local = True

    def __init__(self) -> None:
        package = import_package("wordllama", "pip install 'search-router[wordllama]'", _OTHERWISE)
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
        place = locate_model(folder, _SETTING, self.name)
        package = import_package("model2vec", "pip install 'search-router[model2vec]'", _OTHERWISE)
        try:
            self._model: Any = package.StaticModel.from_pretrained(str(place))
        except (OSError, ValueError, KeyError, damaged_weights()) as error:
            raise unloadable_model(place, _SETTING, self.name, error) from error
        self.version = digest_folder(place)
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
        place = locate_model(folder, _SETTING, self.name)
        package = import_package("sentence_transformers", "pip install sentence-transformers", _OTHERWISE)
        try:
            self._model: Any = package.SentenceTransformer(str(place), local_files_only=True)
        except (OSError, ValueError, KeyError, damaged_weights()) as error:
            raise unloadable_model(place, _SETTING, self.name, error) from error
        self.version = digest_folder(place)
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
