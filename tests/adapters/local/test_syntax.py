"""What is extracted from each language, and what hostile files cannot do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.adapters.local.grammars import SYNTAX_LANGUAGES, ExtractionFailed, extractor_version, load_grammar
from search_router.adapters.local.syntax import Extracted, Reference, extract

SAMPLES = Path(__file__).parent / "samples"


def as_golden(extracted: Extracted) -> str:
    """One line a definition, then one line a kind of reference; plain uses are left out, they are nearly the whole text."""
    lines = [f"{d.start_line}-{d.end_line} {d.kind} {d.qualified}" for d in extracted.definitions]
    kinds: dict[str, list[str]] = {}
    for reference in extracted.references:
        if reference.kind != "use":
            kinds.setdefault(reference.kind, []).append(f"{reference.name}:{reference.line}")
    return "\n".join([*lines, "--", *(f"{kind} {' '.join(found)}" for kind, found in kinds.items())]) + "\n"


@pytest.mark.parametrize("language", sorted(SYNTAX_LANGUAGES))
def test_a_sample_of_each_language_gives_its_golden_definitions(language: str) -> None:
    extracted = extract((SAMPLES / f"{language}.txt").read_bytes(), language)
    assert as_golden(extracted) == (SAMPLES / f"{language}.golden").read_text()


def test_every_golden_file_belongs_to_a_language() -> None:
    assert {path.stem for path in SAMPLES.glob("*.golden")} == SYNTAX_LANGUAGES


@pytest.mark.parametrize("language", sorted(SYNTAX_LANGUAGES))
def test_an_empty_file_has_nothing_in_it(language: str) -> None:
    assert extract(b"", language) == Extracted((), ())


def test_a_name_counts_once_a_line_with_its_strongest_kind() -> None:
    found = extract(b"go(go, go)\nx = go\n", "python").references
    assert [r for r in found if r.name == "go"] == [Reference("go", 1, "call"), Reference("go", 2, "use")]


def test_two_hundred_nested_functions_keep_their_containers() -> None:
    source = b"".join(b" " * i + b"def f%d():\n" % i for i in range(200)) + b" " * 200 + b"pass\n"
    definitions = extract(source, "python").definitions
    assert len(definitions) == 200
    assert definitions[199].qualified == ".".join(f"f{i}" for i in range(200))
    assert {d.end_line for d in definitions} == {201}


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("javascript", b"(" * 50_000 + b"x" + b")" * 50_000),
        ("typescript", b"{[" * 50_000),
        ("python", b"def ((" * 50_000),
        ("cpp", b"a<" * 20_000),
        ("c", b"#if A\n" * 20_000),
        ("tsx", b"<a " * 20_000),
        ("haskell", b"let x = " * 5_000),
        ("ruby", b"class A; " * 20_000),
    ],
)
def test_pathological_text_ends_in_time(language: str, source: bytes) -> None:
    began = time.monotonic()
    try:
        extract(source, language, seconds=1.0)
    except ExtractionFailed as error:
        assert "took longer than 1 s" in str(error) or "no part of it could be parsed" in str(error)
    assert time.monotonic() - began < 4.0


def test_one_line_of_a_megabyte_is_read() -> None:
    source = b"".join(b"function f%d(a,b){return g%d(a+b)}" % (i, i) for i in range(25_000))
    extracted = extract(source, "javascript")
    assert len(source) > 800_000 and len(extracted.definitions) == 25_000
    assert {d.start_line for d in extracted.definitions} == {1}


def test_running_out_of_time_is_said_and_the_next_file_is_whole() -> None:
    source = b"def f():\n    return g(1)\n" * 40_000
    with pytest.raises(ExtractionFailed, match="took longer"):
        extract(source, "python", seconds=0.01)
    assert [d.name for d in extract(b"class A: pass\n", "python").definitions] == ["A"]


def test_broken_code_still_gives_what_stands_around_the_break() -> None:
    names = [d.name for d in extract(b"def good(): pass\nclass (((\ndef fine(): pass\n", "python").definitions]
    assert "good" in names and "fine" in names


def test_bytes_that_are_not_utf_8_do_not_stop_it() -> None:
    assert [d.name for d in extract(b"def ok(): '\xff\xfe'\n", "python").definitions] == ["ok"]


def test_names_in_any_script_are_kept() -> None:
    assert [d.name for d in extract("def größe(): pass\nclass 数: pass\n".encode(), "python").definitions] == ["größe", "数"]


def test_a_header_with_classes_is_read_as_cpp() -> None:
    source = b"namespace n {\nclass Widget : public Base {\npublic:\n  void draw();\n};\n}\n"
    assert [d.qualified for d in extract(source, "c").definitions] == ["n", "n.Widget", "n.Widget.draw"]


def test_an_unknown_language_is_refused_by_name() -> None:
    with pytest.raises(ExtractionFailed, match="no grammar for cobol"):
        load_grammar("cobol")


def test_every_language_has_its_own_version() -> None:
    versions = {language: extractor_version(language) for language in SYNTAX_LANGUAGES}
    assert len(set(versions.values())) == len(SYNTAX_LANGUAGES)
    assert not [v for v in versions.values() if "missing" in v]


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300), st.sampled_from(sorted(SYNTAX_LANGUAGES)))
def test_any_text_gives_ranges_inside_the_file(text: str, language: str) -> None:
    extracted = extract(text.encode(), language)
    last = text.count("\n") + 1
    assert all(1 <= d.start_line <= d.end_line <= last and d.name for d in extracted.definitions)
    assert all(1 <= r.line <= last for r in extracted.references)
