"""What turns text into vectors: the contract of an embedder, and the name under which its vectors are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Blocks, so call it in a thread. Everything that changes a vector is in `name`, `version`, `preprocessing` or `dimensions`."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Of the model or its basis: equal versions give equal vectors for equal text."""
        ...

    @property
    def preprocessing(self) -> str:
        """What is done to a text before it is embedded, with a version."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool:
        """Whether texts stay in this process."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """One row for each text, [n, dimensions], finite; rows need not have length 1.

        Raises:
            ExpertError: the model is missing, does not answer, or answers in another shape.
        """
        ...

    def embed_query(self, text: str) -> Floats:
        """The vector of a question, [dimensions]. Raises ExpertError as `embed_documents`."""
        ...

    def close(self) -> None:
        """Release connections, and let waits end early; safe to call twice."""
        ...


def embedder_key(embedder: Embedder) -> str:
    """The name of everything that this embedder makes: a digest of all that changes a vector."""
    told = [embedder.name, embedder.version, embedder.preprocessing, embedder.dimensions]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def unit_rows(matrix: Floats) -> Floats:
    """The rows with length 1; rows of zeros stay as they are."""
    lengths = np.linalg.norm(matrix, axis=-1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)
