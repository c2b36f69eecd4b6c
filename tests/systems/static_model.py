"""A model2vec model without a download, made by semble's own Python: `python static_model.py PROJECT FOLDER`.

Each word of the project's files has its own fixed direction. It is a real model of the real form; nothing is said about how well it ranks.
"""

# What semble brings is not in every environment.
# pyright: reportMissingImports=false

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Punctuation, Sequence, Whitespace

DIMENSIONS = 64


def main() -> None:
    files = Path(sys.argv[1]).rglob("*.py")
    words = sorted({word for file in files for word in re.findall(r"[a-z]+", file.read_text("utf-8").lower())})
    vocabulary = {word: at for at, word in enumerate(["[UNK]", "[PAD]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Sequence([Whitespace(), Punctuation()])
    seeds = [int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") for word in vocabulary]
    vectors = np.stack([np.random.default_rng(seed).standard_normal(DIMENSIONS) for seed in seeds]).astype(np.float32)
    StaticModel(vectors, tokenizer).save_pretrained(sys.argv[2])


if __name__ == "__main__":
    main()
