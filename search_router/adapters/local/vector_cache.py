"""Vectors on disk, by the bytes that they were made from and by what made them; and the bases of `lsa`, found again by their sample.

A store of its own beside the index. As there: whatever happens to it costs time and never an answer. Every method blocks.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.embed_lsa import LSA_VERSION, Basis, pack_basis, unpack_basis
from search_router.adapters.local.embed_protocol import Floats
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_state import derived_key
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore
from search_router.adapters.local.symbol_table import IndexedFile

FILE_NAME: Final = "vectors-1.sqlite3"
BASES_KEPT: Final = 32
"""So many bases can be found again; the oldest is forgotten."""

_SHAPE = struct.Struct("<II")
_LIST = DerivedKey("bases", "00" * 20, LSA_VERSION)


class VectorCache:
    """Belongs to one process; the file is shared by all."""

    def __init__(self, directory: Path, reserve: Reserve = DEFAULT_RESERVE) -> None:
        self._store = DerivedStore(directory, file_name=FILE_NAME, reserve=reserve)

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with the store, for the caller to read."""
        return self._store.notes

    def load_files(self, maker: str, files: Iterable[IndexedFile]) -> dict[str, Floats]:
        """By path, the chunk vectors of the files that `maker` (see `embedder_key`) has embedded before, wherever they lay then."""
        keys = {file.path: _file_key(maker, file) for file in files}
        return self._load(keys)

    def keep_files(self, maker: str, rows: Iterable[tuple[IndexedFile, Floats]]) -> None:
        self._store.keep({_file_key(maker, file): Derived(file.content_hash, _pack(vectors)) for file, vectors in rows})

    def load_texts(self, maker: str, texts: Iterable[str]) -> dict[str, Floats]:
        """By text, the vectors of short texts, [1, dimensions] each."""
        return self._load({text: _text_key(maker, text) for text in texts})

    def keep_texts(self, maker: str, rows: Mapping[str, Floats]) -> None:
        hashed = {text: hashlib.sha256(_encode(text)).hexdigest() for text in rows}
        self._store.keep({_text_key(maker, text): Derived(hashed[text], _pack(row.reshape(1, -1))) for text, row in rows.items()})

    def find_basis(self, blobs: frozenset[str]) -> Basis | None:
        """The basis whose sample has the largest part among these files, at least half of it; the newest of equals."""
        best, chosen = 0.5, None
        for entry in self._bases():
            sample: list[str] = entry["blobs"]
            share = sum(blob in blobs for blob in sample) / len(sample) if sample else 0.0
            if share >= best:
                best, chosen = share, entry["digest"]
        return self._load_basis(chosen) if chosen else None

    def keep_basis(self, basis: Basis) -> None:
        entries = [entry for entry in self._bases() if entry["digest"] != basis.digest]
        entries.append({"digest": basis.digest, "blobs": sorted(basis.blobs)})
        listed = json.dumps(entries[-BASES_KEPT:], separators=(",", ":")).encode()
        key = DerivedKey("basis", basis.digest[:40], LSA_VERSION)
        self._store.keep({key: Derived(basis.digest, pack_basis(basis)), _LIST: Derived(hashlib.sha256(listed).hexdigest(), listed)})

    def close(self) -> None:
        """Release the file; safe to call twice."""
        self._store.close()

    def _bases(self) -> list[dict[str, Any]]:
        row = self._store.load([_LIST]).get(_LIST)
        if row is None:
            return []
        if hashlib.sha256(row.payload).hexdigest() != row.content_hash:
            self._store.note_damaged_row()
            return []
        self._store.mark_used([_LIST])
        return json.loads(row.payload)

    def _load_basis(self, digest: str) -> Basis | None:
        key = DerivedKey("basis", digest[:40], LSA_VERSION)
        row = self._store.load([key]).get(key)
        if row is None:
            return None
        self._store.mark_used([key])
        try:
            basis = unpack_basis(row.payload)
        except DamagedPayload:
            self._store.note_damaged_row()
            return None
        return basis if basis.digest == digest else None

    def _load(self, keys: Mapping[str, DerivedKey]) -> dict[str, Floats]:
        rows = self._store.load(set(keys.values()))
        self._store.mark_used(rows)
        found: dict[str, Floats] = {}
        for name, key in keys.items():
            if key in rows:
                try:
                    found[name] = _unpack(rows[key].payload)
                except DamagedPayload:
                    self._store.note_damaged_row()
        return found


def _file_key(maker: str, file: IndexedFile) -> DerivedKey:
    """Chunks are cut along definitions, so what extracts those is part of the name."""
    symbols = derived_key(file.language, file.blob)
    return DerivedKey(f"vectors/{file.language}", file.blob, f"{maker}/{symbols.version}")


def _text_key(maker: str, text: str) -> DerivedKey:
    return DerivedKey("vectors/text", hashlib.sha1(_encode(text), usedforsecurity=False).hexdigest(), maker)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _pack(vectors: Floats) -> bytes:
    """Rows of float32, little-endian, behind their shape."""
    return _SHAPE.pack(*vectors.shape) + vectors.astype("<f4").tobytes()


def _unpack(payload: bytes) -> Floats:
    try:
        rows, columns = _SHAPE.unpack_from(payload)
        vectors = np.frombuffer(payload, "<f4", offset=_SHAPE.size).reshape(rows, columns).astype(np.float32)
    except (struct.error, ValueError) as error:
        raise DamagedPayload(f"a packed vector record is damaged: {error}") from error
    if not np.isfinite(vectors).all():
        raise DamagedPayload("a packed vector record has numbers that are not finite")
    return vectors
