"""Makes a basis in a child process: `python -m …embed_lsa_worker`. Standard input: the sample; standard output: the packed basis.

A child, because making it takes seconds of one core and 100 MB, which a server that answers questions should not spend.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Sequence
from typing import BinaryIO, Final

from search_router.adapters.local.code_terms import FileTerms, pack_terms, unpack_terms
from search_router.adapters.local.embed_lsa import make_basis, pack_basis

ARGV: Final = (sys.executable, "-P", "-m", "search_router.adapters.local.embed_lsa_worker")
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
MAX_BYTES: Final = 64 * 2**20
_LENGTH = struct.Struct("<I")
_NICE = 10


def pack_sample(files: Sequence[FileTerms], blobs: Sequence[str], chunks: int) -> bytes:
    """The child's whole input."""
    parts = [json.dumps({"blobs": list(blobs), "chunks": chunks, "files": len(files)}).encode(), b"\n"]
    for terms in files:
        packed = pack_terms(terms)
        parts += [_LENGTH.pack(len(packed)), packed]
    return b"".join(parts)


def serve(sample: BinaryIO, answer: BinaryIO) -> None:
    """Read the sample, write the basis."""
    head = json.loads(sample.readline())
    files = [unpack_terms(sample.read(_LENGTH.unpack(sample.read(_LENGTH.size))[0])) for _ in range(head["files"])]
    answer.write(pack_basis(make_basis(files, head["blobs"], head["chunks"])))
    answer.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer)
