from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.knowledge_chunks import MOST, WALL, cut_pieces
from search_router.adapters.local.knowledge_document import derive_document, pack_document, unpack_document
from search_router.adapters.local.knowledge_front import read_front
from search_router.adapters.local.knowledge_sections import FORMATS, document_format, read_sections
from search_router.adapters.local.symbol_packing import DamagedPayload

MARKDOWN = """intro

# One
a
```
# not a heading
```
## Two `x` [link](y)
b

Three
-----
c
- item
---
"""
RST = """=====
Title
=====

intro

Part
----
text

Sub
~~~
deep

Other
-----
end
"""


def outline(text: str, kind: str) -> list[tuple[str | None, tuple[str, ...], int, int]]:
    return [(s.heading, s.trail, s.start, s.end) for s in read_sections(text, kind)]


def test_markdown_has_atx_and_setext_headings_outside_fences() -> None:
    assert outline(MARKDOWN, "markdown") == [
        (None, (), 1, 1),
        ("One", (), 3, 7),
        ("Two x link", ("One",), 8, 9),
        ("Three", ("One",), 11, 15),
    ]


def test_rst_levels_are_the_order_of_their_styles() -> None:
    assert outline(RST, "rst") == [
        ("Title", (), 1, 5),
        ("Part", ("Title",), 7, 9),
        ("Sub", ("Title", "Part"), 11, 13),
        ("Other", ("Title",), 15, 17),
    ]


def test_asciidoc_and_org_headings_nest() -> None:
    assert [s[:2] for s in outline("= Doc\n\n== A\nx\n----\n== no\n----\n=== B\ny\n", "asciidoc")] == [
        ("Doc", ()),
        ("A", ("Doc",)),
        ("B", ("Doc", "A")),
    ]
    assert [s[:2] for s in outline("* TODO First :tag:\nx\n** Second\ny\n", "org")] == [("First", ()), ("Second", ("First",))]


def test_html_is_read_without_scripts_at_its_own_lines() -> None:
    page = "<html><head><title>T</title><script>no()</script></head>\n<body><h1>Top</h1>\n<p>one &amp; two</p>\n"
    page += "<h2>Low</h2><p>three</p></body></html>"
    sections = read_sections(page, "html")
    assert [(s.heading, s.trail, s.start, s.text) for s in sections] == [("Top", (), 2, "one & two"), ("Low", ("Top",), 4, "three")]


def test_a_notebook_has_its_cells_and_not_their_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Load\n", "Read the file.\n"]},
        {"cell_type": "code", "source": "import os\nos.sep", "outputs": [{"text": "SECRET"}]},
    ]
    text = json.dumps({"cells": cells}, indent=1)
    sections = read_sections(text, "notebook")
    assert [(s.heading, s.text.strip()) for s in sections] == [("Load", "Read the file."), ("Load", "import os\nos.sep")]
    assert "# Load" in text.split("\n")[sections[0].start - 1]
    assert read_sections(" \n", "notebook") == []
    with pytest.raises(ValueError, match="no notebook"):
        read_sections('{"cells": [', "notebook")


def test_a_long_section_is_cut_by_paragraphs_and_a_wall_by_sentences() -> None:
    text = (
        "# Big\n\n"
        + "\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(20))
        + "\n\n"
        + "A sentence of some length ends here. " * 80
    )
    pieces, cut = cut_pieces(read_sections(text, "markdown"))
    assert cut
    assert {p.heading for p in pieces} == {"Big"}
    assert max(len(p.text) for p in pieces) <= WALL
    lines = text.split("\n")
    for piece in pieces[1:-5]:
        assert piece.text.split("\n")[0] in "\n".join(lines[piece.start - 1 : piece.end])


@given(st.text(alphabet="ab #=-~*.\n`:<>[]{}\"'|", max_size=600), st.sampled_from(sorted(set(FORMATS.values()))))
def test_any_text_of_any_format_gives_chunks_within_its_lines(text: str, kind: str) -> None:
    try:
        pieces, _ = cut_pieces(read_sections(text, kind))
    except ValueError:
        assert kind == "notebook"
        return
    count = text.count("\n") + 1
    for piece in pieces:
        assert 1 <= piece.start <= piece.end <= count
        assert len(piece.text) <= MOST


@given(st.text(max_size=300))
def test_a_document_survives_packing(text: str) -> None:
    document = derive_document("docs/2024-01-02-a.md", "markdown", text)
    again = unpack_document(pack_document(document))
    assert again == document
    assert [again.text_of(n) for n in range(len(again.headings))] == [
        p.text for p in cut_pieces(read_sections(text, "markdown", read_front(text, "markdown").first_line))[0]
    ]


def test_a_damaged_row_is_said() -> None:
    payload = pack_document(derive_document("a.md", "markdown", "# A\n\ntext"))
    for damaged in (b"", payload[:7], payload[:-3], b"\xff" * 40):
        with pytest.raises(DamagedPayload):
            unpack_document(damaged)


def test_front_matter_of_every_kind_is_read() -> None:
    yaml = read_front("---\ntitle: A\ntags: [x, y]\ndate: 2024-01-02\nextra: {status: draft}\n---\nbody\n", "markdown")
    assert yaml.values == {"title": ("A",), "tags": ("x", "y"), "date": ("2024-01-02",), "status": ("draft",)}
    assert yaml.first_line == 7
    toml = read_front('+++\ntitle = "A"\nvalid_until = 2024-01-02\n+++\nbody\n', "markdown")
    assert toml.values == {"title": ("A",), "valid_until": ("2024-01-02",)}
    assert read_front("= T\n:status: draft\n", "asciidoc").values == {"status": ("draft",)}
    assert read_front("#+TITLE: T\n#+DATE: 2024-01-02\n", "org").values == {"title": ("T",), "date": ("2024-01-02",)}
    assert read_front("# A\n\n- **Status:** Accepted\n* Date: 2020-01-01\n", "markdown").values == {
        "status": ("Accepted",),
        "date": ("2020-01-01",),
    }
    assert read_front("# A\n\n## Status\n\nSuperseded by [2](2.md)\n", "markdown").values == {"status": ("Superseded by [2](2.md)",)}


@pytest.mark.parametrize("text", ["---\n: : :\n  - {\n---\nbody\n", "---\n" + "[" * 5000 + "\n---\nbody\n", "+++\n= 3\n+++\nbody\n"])
def test_front_matter_that_cannot_be_read_is_said_and_is_no_body(text: str) -> None:
    front = read_front(text, "markdown")
    assert front.damaged
    assert text.split("\n")[front.first_line - 1] == "body"


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    assert read_front("---\n\nA paragraph.\n\n---\n\nmore\n", "markdown").first_line == 1


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.md", "markdown"), ("A.MDX", "markdown"), ("README", "text"), ("x/.md", None), ("a.py", None), ("b.ipynb", "notebook")],
)
def test_documents_are_known_by_their_names(path: str, kind: str | None) -> None:
    assert document_format(path) == kind
