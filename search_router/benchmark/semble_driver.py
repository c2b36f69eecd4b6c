"""Asks semble, inside semble's own environment: run by `peers` with the interpreter that the user names. Imports nothing of ours.

Reads one JSON job on standard input, {model, roots: [{name, root, questions: [[id, question]]}]}, writes JSON lines: {version, model}
first, then {name, index_ms, index_cpu_ms, chunks} a repository, then {name, id, ms, cpu_ms, results: [[path, start, end]]} a question.

`model` is a folder with a model2vec model, or "" for none: then a stand-in of random vectors is made, so that indexing does the same
kind of work, and queries are asked with alpha 0: BM25 with semble's own ranking stage, no vectors.
"""
# ruff: noqa: I001 - it is no module of this package to its interpreter
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RESULTS = 10
STAND_IN_WORDS = 30_000
STAND_IN_DIMENSIONS = 256


def stand_in(folder: Path, words: list[str]) -> Path:
    """A model2vec folder of random vectors over the commonest words of what is indexed."""
    import numpy
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import BertPreTokenizer

    names = ["[PAD]", "[UNK]", *dict.fromkeys(words)]
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(names)}, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = BertPreTokenizer()  # pyright: ignore[reportAttributeAccessIssue] - its types have no setter
    vectors = numpy.random.default_rng(7).standard_normal((len(names), STAND_IN_DIMENSIONS)).astype(numpy.float32)
    StaticModel(vectors, tokenizer, config={"normalize": True}).save_pretrained(folder)
    return folder


def common_words(roots: list[str]) -> list[str]:
    from collections import Counter
    import re

    counts: Counter[str] = Counter()
    for root in roots:
        for path in sorted(Path(root).rglob("*"))[:2000]:
            if path.is_file() and path.stat().st_size < 200_000:
                counts.update(re.findall(r"\w+|[^\w\s]", path.read_text("utf-8", "ignore")))
    return [word for word, _ in counts.most_common(STAND_IN_WORDS)]


def say(row: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def main() -> None:
    import semble
    from semble import SembleIndex

    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as name:
        model = job["model"] or str(stand_in(Path(name) / "stand-in", common_words([r["root"] for r in job["roots"]])))
        say({"version": semble.__version__, "model": job["model"] or "stand-in of random vectors, asked with alpha 0"})
        more: dict[str, Any] = {} if job["model"] else {"alpha": 0.0}
        SembleIndex.from_path(job["warm_up"], model_path=model)  # loads the model and the grammars, as a server has
        for repository in job["roots"]:
            began, cpu = time.perf_counter(), time.process_time()
            index = SembleIndex.from_path(repository["root"], model_path=model)
            took, used = time.perf_counter() - began, time.process_time() - cpu
            say({"name": repository["name"], "index_ms": took * 1000, "index_cpu_ms": used * 1000, "chunks": len(index.chunks)})
            index.search("read the file", top_k=RESULTS, **more)
            for question_id, question in repository["questions"]:
                began, cpu = time.perf_counter(), time.process_time()
                results = index.search(question, top_k=RESULTS, **more)
                took, used = time.perf_counter() - began, time.process_time() - cpu
                found = [[r.chunk.file_path, r.chunk.start_line, r.chunk.end_line] for r in results]
                row = {"name": repository["name"], "id": question_id, "ms": took * 1000, "cpu_ms": used * 1000, "results": found}
                say(row)


if __name__ == "__main__":
    main()
