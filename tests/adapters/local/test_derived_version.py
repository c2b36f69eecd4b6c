"""What is derived from a file cannot change under an unchanged version: rows of the shared index would mean two things.

`samples/derived.golden.tsv` holds a line a language: version, digest of what is made of its sample. When this test fails, either the change
was not meant, or: raise CODE_VERSION (unless only a query changed, which names itself), then
`python -m tests.adapters.local.test_derived_version` writes the file anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from search_router.adapters.local.extract_worker import ReadSyntax, read_syntax
from search_router.adapters.local.grammars import CODE_VERSION, SYNTAX_LANGUAGES, extractor_version
from search_router.adapters.local.index_care import parts_of
from search_router.adapters.local.symbol_store import Derived

SAMPLES = Path(__file__).parent / "samples"
GOLDEN = SAMPLES / "derived.golden.tsv"
LANGUAGES = sorted(SYNTAX_LANGUAGES | {"markdown"})


def sample_of(language: str) -> str:
    return f"{language if language in SYNTAX_LANGUAGES else 'python'}.txt"


def digest_of(language: str) -> str:
    """Of the parts as they were before compression, which is zlib's business."""
    read = read_syntax(SAMPLES, sample_of(language), language, max_bytes=1 << 20)
    assert isinstance(read, ReadSyntax) and not read.reason
    parts = parts_of(Derived(read.content_hash, read.payload))
    assert parts is not None
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def recorded() -> dict[str, tuple[str, str]]:
    rows = (line.split("\t") for line in GOLDEN.read_text().splitlines())
    return {language: (version, digest) for language, version, digest in rows}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_version_makes_the_same_of_the_same_bytes(language: str) -> None:
    version, digest = recorded()[language]
    if version == extractor_version(language):
        assert digest_of(language) == digest, (
            f"what is made of {language} changed: raise CODE_VERSION from {CODE_VERSION}, then record anew"
        )
        return
    ours, theirs = extractor_version(language).split("+"), version.split("+")
    if (ours[1:2], ours[2::2]) != (theirs[1:2], theirs[2::2]):
        pytest.skip("recorded with another tree-sitter or grammar")
    pytest.fail(f"the version of {language} is {'+'.join(ours)} and was recorded as {version}: record anew")


def test_the_version_names_the_code_the_library_the_grammar_and_the_query() -> None:
    assert extractor_version("markdown") == CODE_VERSION
    code, library, wheel, query = extractor_version("python").split("+")
    assert code == CODE_VERSION and library and wheel and len(query) == 12
    assert extractor_version("c").split("+")[4:] == extractor_version("cpp").split("+")[2:], "a header may be read as C++"


if __name__ == "__main__":
    lines = [f"{language}\t{extractor_version(language)}\t{digest_of(language)}\n" for language in LANGUAGES]
    GOLDEN.write_text("".join(lines))
