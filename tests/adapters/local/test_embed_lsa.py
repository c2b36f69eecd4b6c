"""The basis is that of the singular value decomposition, and folding in is the same whatever way a text comes."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.adapters.local.code_terms import FileTerms, derive_terms
from search_router.adapters.local.embed_lsa import (
    DIMENSIONS,
    SAMPLE_CHUNKS,
    Basis,
    Counts,
    LsaEmbedder,
    chunk_counts,
    make_basis,
    pack_basis,
    project,
    sample_files,
    singular_vectors,
    unpack_basis,
    weigh,
)
from search_router.adapters.local.embed_lsa_worker import ARGV, pack_sample, serve
from search_router.adapters.local.embed_protocol import Embedder, Floats, embedder_key, unit_rows
from search_router.adapters.local.symbol_packing import DamagedPayload

VEHICLES = ["car engine wheel road", "automobile engine wheel road", "car wheel brake", "automobile brake road"]
FOOD = ["soup spoon kitchen", "bread knife kitchen", "soup bread kitchen oven", "oven knife spoon"]


def terms(text: str) -> FileTerms:
    return derive_terms(text, "python", [])


def basis_of(texts: list[str]) -> Basis:
    return make_basis([terms(text) for text in texts], [f"{at:040x}" for at in range(len(texts))], len(texts))


def cosine(a: Floats, b: Floats) -> float:
    return float(unit_rows(a) @ unit_rows(b))


@st.composite
def sparse(draw: st.DrawFn) -> tuple[Counts, Floats]:
    """Compressed rows, and the same as a dense matrix."""
    columns = draw(st.integers(1, 9))
    rows = draw(st.lists(st.dictionaries(st.integers(0, columns - 1), st.integers(1, 5)), max_size=9))
    dense = np.zeros((len(rows), columns), np.float32)
    for at, row in enumerate(rows):
        for column, value in row.items():
            dense[at, column] = value
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    words = np.array([c for row in rows for c in row], np.int32)
    return Counts(starts, words, np.array([v for row in rows for v in row.values()], np.float32)), dense


@settings(max_examples=60, deadline=None)
@given(sparse(), st.integers(1, 4))
def test_projecting_is_a_product_of_matrices(given_rows: tuple[Counts, Floats], width: int) -> None:
    rows, dense = given_rows
    matrix = np.random.default_rng(width).standard_normal((dense.shape[1], width)).astype(np.float32)
    assert np.allclose(project(rows, matrix), dense @ matrix, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(sparse())
def test_the_singular_vectors_span_what_those_of_the_decomposition_span(given_rows: tuple[Counts, Floats]) -> None:
    rows, dense = given_rows
    if not dense.any():
        return
    found = singular_vectors(rows, dense.shape[1])
    _, values, right = np.linalg.svd(dense.astype(np.float64), full_matrices=False)
    right = right[values > 1e-3]
    assert np.allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-3)
    assert np.allclose(right @ found @ found.T, right, atol=1e-2)


def test_words_that_occur_together_are_near() -> None:
    texts = [text for text in VEHICLES + FOOD for _ in range(3)]
    basis = basis_of(texts)
    narrow = Basis(basis.words, basis.idf, basis.matrix.copy(), basis.blobs, basis.chunks)
    narrow.matrix[:, 2:] = 0
    embedder = LsaEmbedder(narrow)
    automobile, soup = embedder.embed_documents(["automobile", "soup"])
    assert cosine(embedder.embed_query("which car"), automobile) > 0.9
    assert abs(cosine(embedder.embed_query("which car"), soup)) < 0.3


def test_a_file_and_its_text_have_the_same_vector() -> None:
    embedder: Embedder = LsaEmbedder(basis_of(VEHICLES + FOOD))
    assert isinstance(embedder, LsaEmbedder)
    text = "car engine\nsoup kitchen unknownword"
    assert np.allclose(embedder.embed_file(terms(text)), embedder.embed_documents([text]), atol=1e-6)
    assert embedder.embed_documents([]).shape == (0, DIMENSIONS)
    assert not embedder.embed_documents(["nothing known"]).any() and not embedder.embed_query("the of").any()
    long = "car engine wheel\n" * 120
    assert embedder.embed_file(terms(long)).shape == (3, DIMENSIONS)


def test_equal_code_makes_an_equal_basis_with_an_equal_name() -> None:
    one, other = basis_of(VEHICLES), basis_of(VEHICLES)
    assert one.digest == other.digest != basis_of(FOOD).digest
    assert embedder_key(LsaEmbedder(one)) == embedder_key(LsaEmbedder(other)) != embedder_key(LsaEmbedder(basis_of(FOOD)))


@pytest.mark.parametrize("texts", [[], [""], ["x"], ["one", "one"]], ids=repr)
def test_code_with_next_to_no_words_has_a_basis_too(texts: list[str]) -> None:
    embedder = LsaEmbedder(basis_of(texts))
    assert embedder.embed_documents(["one two"]).shape == (1, DIMENSIONS)
    assert np.isfinite(embedder.embed_query("one")).all()


def test_a_sample_is_bounded_and_does_not_depend_on_the_order() -> None:
    files = {f"{at:040x}": 7 for at in range(2000)}
    chosen = sample_files(files)
    assert SAMPLE_CHUNKS <= 7 * len(chosen) < SAMPLE_CHUNKS + 7
    assert chosen == sample_files(dict(reversed(files.items())))


def test_a_packed_basis_comes_back_and_a_damaged_one_is_refused() -> None:
    basis = basis_of(VEHICLES)
    packed = pack_basis(basis)
    back = unpack_basis(packed)
    assert (back.digest, back.words, back.blobs, back.chunks) == (basis.digest, basis.words, basis.blobs, basis.chunks)
    for damaged in (b"", packed[:-3], packed[:20], bytes([packed[0] ^ 255]) + packed[1:]):
        with pytest.raises(DamagedPayload):
            unpack_basis(damaged)


def test_the_child_makes_the_same_basis() -> None:
    files, blobs = [terms(text) for text in VEHICLES + FOOD], [f"{at:040x}" for at in range(8)]
    sample = pack_sample(files, blobs, 8)
    here = io.BytesIO()
    serve(io.BytesIO(sample), here)
    assert unpack_basis(here.getvalue()).digest == make_basis(files, blobs, 8).digest
    assert ARGV[0] == sys.executable
    done = subprocess.run(ARGV, input=sample, capture_output=True, timeout=60, check=True)
    there = unpack_basis(done.stdout)
    assert np.allclose(there.matrix, unpack_basis(here.getvalue()).matrix, atol=1e-2) and done.stderr == b""


def test_rows_are_weighed_by_rarity_and_scaled_to_length_one() -> None:
    rows = chunk_counts([terms("car car car engine")], {"car": 0, "engin": 1})
    weighed = weigh(rows, np.array([1.0, 2.0], np.float32))
    plain = np.array([1 + np.log(3), 2.0])
    assert np.allclose(weighed.counts, plain / np.linalg.norm(plain), atol=1e-6)
