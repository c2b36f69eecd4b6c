"""The search over quantised vectors against the exact one, on the vectors of a real checkout: recall, time, memory.

The questions are names of the checkout's own definitions, in words. With copies, the same chunks are searched several times over with
some noise, to see how time grows.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import anyio
import numpy as np

from search_router.adapters.local.embed_lsa import LsaEmbedder
from search_router.adapters.local.embed_protocol import Floats, unit_rows
from search_router.adapters.local.embed_text import split_words
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.vector_build import ProjectVectors
from search_router.adapters.local.vector_index import VectorIndex
from search_router.adapters.local.vector_matrix import Packed
from search_router.benchmark.timing import summarise
from search_router.config.schema import VectorsConfig
from search_router.errors import SearchRouterError
from search_router.schema import Project

BEST = 10
BUILD_SECONDS = 600.0
MAX_FILE_BYTES = 2 * 2**20
NOISE = 0.02
TIE = 1e-6
"""Chunks whose exact cosines differ by less are equally good: copies of a file, mostly."""


def run(root: Path, questions: int, copies: int) -> dict[str, object]:
    """Build the vectors of `root` in an empty cache and search them.

    Raises:
        SearchRouterError: the checkout has no chunk, or cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="search-router-vectors-") as folder:
        return anyio.run(_run, root.resolve(), questions, copies, Path(folder))


async def _run(root: Path, questions: int, copies: int, folder: Path) -> dict[str, object]:
    project = Project(root.name, root, "git")
    index = SymbolIndex(DerivedStore(folder), max_file_bytes=MAX_FILE_BYTES, workers=2)
    vectors = VectorIndex(index, VectorsConfig(embedder="lsa"), folder, max_file_bytes=MAX_FILE_BYTES)
    try:
        await index.refresh(project)
        began = time.perf_counter()
        made, _ = await vectors.current(project, time.monotonic() + BUILD_SECONDS)
        built = time.perf_counter() - began
        if made is None or not len(made.matrix):
            raise SearchRouterError(f"{root} has nothing that vectors could be made of.", remedy="Name a checkout with source files.")
        names = index.table(project).defined_names()
        random.Random(1).shuffle(names)  # noqa: S311 - reproducible sample, no secret
        return {"root": root.name, "build_s": round(built, 3)} | _measure(made, names[:questions], copies)
    finally:
        await vectors.aclose()
        await index.aclose()


def _measure(made: ProjectVectors, names: list[str], copies: int) -> dict[str, object]:
    packed = _copied(made.matrix.packed, copies)
    queries = [unit_rows(made.embedder.embed_query(split_words(name))) for name in names]
    queries = [query for query in queries if query.any()]
    exact = np.asarray(packed.exact)
    met = asked = 0
    times: list[float] = []
    exact_times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        top = packed.top(query, BEST)
        between = time.perf_counter()
        cosines = exact @ query
        best = np.argpartition(-cosines, BEST - 1)[:BEST] if len(cosines) > BEST else np.arange(len(cosines))
        exact_times.append((time.perf_counter() - between) * 1000)
        times.append((between - began) * 1000)
        met += int((cosines[top] >= cosines[best].min() - TIE).sum())
        asked += len(best)
    basis = made.embedder.basis if isinstance(made.embedder, LsaEmbedder) else None
    return {
        "embedder": made.label,
        "chunks": len(packed),
        "dimensions": packed.codes.shape[1],
        "questions": len(queries),
        "recall_at_10": round(met / max(asked, 1), 5),
        "search": summarise(times or [0.0]),
        "exact_search": summarise(exact_times or [0.0]),
        "resident_bytes_a_chunk": round(packed.resident_bytes / len(packed), 1),
        "mapped_bytes_a_chunk": round(packed.exact.nbytes / len(packed), 1),
        "basis_bytes": basis.matrix.nbytes + basis.idf.nbytes if basis else 0,
        "peak_memory_mib": round(_peak_bytes() / 2**20, 1),
    }


def _copied(packed: Packed, copies: int) -> Packed:
    if copies == 1:
        return packed
    random_numbers = np.random.default_rng(1)
    rows: Floats = np.asarray(packed.exact)
    files = [("0", rows)]
    for number in range(1, copies):
        noise = random_numbers.standard_normal(rows.shape, np.float32)
        files.append((str(number), np.add(rows, NOISE * noise, dtype=np.float32)))
    return Packed(files, rows.shape[1])


def _peak_bytes() -> int:
    """The largest resident size of this process so far; the system counts it in kibibytes, on macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
