"""Vectors of a project's documents, a row a chunk: folded in with a basis that is made of the documents themselves, or embedded as text.

A chunk's words are those of its text with the document's title and the headings above it, as the index counts them; for an embedder that
reads text, these stand before it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio.to_thread
import numpy as np

from search_router.adapters.local.code_terms import FileTerms
from search_router.adapters.local.embed_lsa import SAMPLE_CHUNKS, LsaEmbedder, make_basis, sample_files, unpack_basis
from search_router.adapters.local.embed_lsa_worker import pack_sample
from search_router.adapters.local.embed_protocol import Embedder, Floats, embedder_key, unit_rows
from search_router.adapters.local.embed_text import MAX_CHARACTERS
from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.knowledge_document import FIRST_CHUNK_FIELD, Document
from search_router.adapters.local.vector_build import IN_CHILD_FROM, OUTGROWN, make_in_child
from search_router.adapters.local.vector_cache import VectorCache
from search_router.adapters.local.vector_matrix import VectorMatrix

LEAST_CHUNKS: Final = 100
"""In fewer chunks words that are not the question's cannot be told to mean the same: nothing is known of which occur together."""
SAMPLED_OF_ONE: Final = SAMPLE_CHUNKS // 4
"""A document gives at most so many chunks to the sample of a basis."""
_DOCUMENTS_AT_ONCE = 32

Documents = Mapping[str, Document]


@dataclass(frozen=True)
class DocumentVectors:
    """The vectors of some documents with what made them. `documents` are exactly those that have vectors, by path, the very objects."""

    embedder: Embedder
    matrix: VectorMatrix
    generation: int
    documents: Documents

    @property
    def label(self) -> str:
        """The embedder with the beginning of its key."""
        return f"{self.embedder.name} {embedder_key(self.embedder)[:12]}"


async def build_vectors(embedding: Embedding, before: DocumentVectors | None, documents: Documents, generation: int) -> DocumentVectors:
    """The vectors of exactly these documents; what `before` has from the same embedder is not made again.

    Raises:
        ExpertError: the embedder failed, or the process that makes a basis. What was made by then is in the cache.
    """
    cache = await embedding.load()
    embedder = embedding.embedder
    if embedder is None:
        fits = before is not None and not await anyio.to_thread.run_sync(_is_outgrown, before, documents)
        embedder = before.embedder if before is not None and fits else await _find_basis(cache, documents)
    if before is not None and before.embedder is not embedder:
        before = None
    known: Documents = before.documents if before else {}
    changed = [document for path, document in documents.items() if known.get(path) is not document]
    gone = [path for path in known if path not in documents]
    vectors: dict[str, Floats] = {}
    for first in range(0, len(changed), _DOCUMENTS_AT_ONCE):
        part = changed[first : first + _DOCUMENTS_AT_ONCE]
        vectors |= await anyio.to_thread.run_sync(_embed, embedder, cache, part)
    if before is None:
        matrix = await anyio.to_thread.run_sync(VectorMatrix.build, vectors, embedder.dimensions, embedding.cache_dir)
    else:
        matrix = await anyio.to_thread.run_sync(before.matrix.successor, vectors, gone)
    return DocumentVectors(embedder, matrix, generation, dict(documents))


async def _find_basis(cache: VectorCache, documents: Documents) -> LsaEmbedder:
    """The embedder of a known basis that fits these documents, else of one that is made of them now."""
    named = await anyio.to_thread.run_sync(_named, documents)
    chunks = sum(len(d.terms.chunks) for d in documents.values())
    basis = await anyio.to_thread.run_sync(cache.find_basis, frozenset(named))
    if basis is not None and chunks <= OUTGROWN * max(basis.chunks, 1):
        return LsaEmbedder(basis)
    chosen = sample_files({name: min(len(d.terms.chunks), SAMPLED_OF_ONE) for name, d in named.items()})
    sample = [_clipped(named[name].terms) for name in chosen]
    if sum(len(terms.chunks) for terms in sample) < IN_CHILD_FROM:
        basis = await anyio.to_thread.run_sync(make_basis, sample, chosen, chunks)
    else:
        packed = await anyio.to_thread.run_sync(pack_sample, sample, chosen, chunks)
        basis = unpack_basis(await make_in_child(packed))
    await anyio.to_thread.run_sync(cache.keep_basis, basis)
    return LsaEmbedder(basis)


def _is_outgrown(before: DocumentVectors, documents: Documents) -> bool:
    """Whether these have become another body of text since the basis was made: twice the chunks, or less than half of the sample left."""
    if not isinstance(before.embedder, LsaEmbedder):
        return False
    if sum(len(d.terms.chunks) for d in documents.values()) > OUTGROWN * max(before.embedder.basis.chunks, 1):
        return True
    same = sum(before.documents.get(path) is document for path, document in documents.items())
    if same * 2 >= len(before.documents):
        return False
    sample = before.embedder.basis.blobs
    return len(sample.intersection(_named(documents))) * 2 < len(sample)


def _named(documents: Documents) -> dict[str, Document]:
    """Documents by a digest of where they lie and what they say."""
    return {_name_of(document): document for document in documents.values()}


def _name_of(document: Document) -> str:
    told = hashlib.sha1(document.path.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    told.update(document.texts)
    return told.hexdigest()


def _clipped(terms: FileTerms) -> FileTerms:
    """The first SAMPLED_OF_ONE chunks of a document."""
    if len(terms.chunks) <= SAMPLED_OF_ONE:
        return terms
    last = FIRST_CHUNK_FIELD + SAMPLED_OF_ONE
    kept = [at for at, field in enumerate(terms.fields) if field < last]
    columns = (array(column.typecode, (column[at] for at in kept)) for column in (terms.fields, terms.places, terms.counts))
    fields, places, counts = columns
    return FileTerms(terms.line_count, terms.chunks[:SAMPLED_OF_ONE], terms.words, fields, places, counts)


def _embed(embedder: Embedder, cache: VectorCache, documents: Sequence[Document]) -> dict[str, Floats]:
    """By path, a unit row for each chunk. Blocks."""
    if isinstance(embedder, LsaEmbedder):  # as quick as reading them
        return {d.path: unit_rows(embedder.embed_file(d.terms)) for d in documents}
    texts = {d.path: _texts(d) for d in documents}
    wanted = list(dict.fromkeys(text for each in texts.values() for text in each))
    maker = embedder_key(embedder)
    known = {text: rows[0] for text, rows in cache.load_texts(maker, wanted).items()}
    rest = [text for text in wanted if text not in known]
    if rest:
        made = dict(zip(rest, unit_rows(embedder.embed_documents(rest)), strict=True))
        cache.keep_texts(maker, made)
        known |= made
    return {path: _stack([known[text] for text in each], embedder.dimensions) for path, each in texts.items()}


def _texts(document: Document) -> list[str]:
    """Each chunk as text, behind the title and the headings that it stands under."""
    found: list[str] = []
    for text, (heading, trail) in zip(document.all_texts(), document.headings, strict=True):
        above = " › ".join(dict.fromkeys(part for part in (document.title, *trail, heading or "") if part))
        found.append(f"{above}\n\n{text}"[:MAX_CHARACTERS])
    return found


def _stack(rows: Sequence[Floats], dimensions: int) -> Floats:
    return np.stack(rows) if rows else np.zeros((0, dimensions), np.float32)
