from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_router.errors import ExpertError, FailureClass
from tests.adapters.local.knowledge_workspace import call_for, expert_over, paths, write

pytestmark = pytest.mark.anyio


async def test_an_edit_a_removal_and_a_new_file_are_seen_by_the_next_question(tmp_path: Path) -> None:
    animals = ["ant", "bear", "cat", "dog", "eel", "fox"]
    project = write(tmp_path / "work", {f"{n}.md": f"# Doc {n}\n\nabout the {animal}\n" for n, animal in enumerate(animals)})
    async with expert_over(tmp_path) as expert:
        assert paths(await expert.search(call_for("dog", project))) == ["3.md"]
        write(project.root, {"3.md": "# Doc 3\n\nabout zebras\n", "new.md": "# New\n\nzebras too\n"})
        (project.root / "5.md").unlink()
        assert paths(await expert.search(call_for("dog", project))) == []
        assert set(paths(await expert.search(call_for("zebras", project)))) == {"3.md", "new.md"}
        assert paths(await expert.search(call_for("fox", project))) == []


async def test_a_new_process_finds_its_documents_in_the_store(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "---\nstatus: accepted\n---\n# Doc\n\nabout zebras\n"})
    async with expert_over(tmp_path) as expert:
        first = await expert.search(call_for("zebras", project))
    async with expert_over(tmp_path) as expert:
        again = await expert.search(call_for("zebras", project))
    assert first.hits == again.hits


async def test_hits_carry_the_hash_of_what_was_indexed(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "zebras\n"})
    async with expert_over(tmp_path) as expert:
        (hit,) = (await expert.search(call_for("zebras", project))).hits
    assert hit.content_hash == hashlib.sha256(b"zebras\n").hexdigest()


async def test_a_ranked_list_is_the_same_whether_documents_came_at_once_or_one_by_one(tmp_path: Path) -> None:
    files = {f"{n}.md": f"# Doc {n}\n\n{'zebra ' * (n + 1)} and {'horse ' * (7 - n)}\n" for n in range(7)}
    at_once = write(tmp_path / "one" / "work", files)
    one_by_one = write(tmp_path / "two" / "work", {})
    async with expert_over(tmp_path / "one") as expert:
        expected = await expert.search(call_for("zebra horse", at_once))
    async with expert_over(tmp_path / "two") as expert:
        for name, text in files.items():
            write(one_by_one.root, {name: text})
            await expert.search(call_for("zebra horse", one_by_one))
        found = await expert.search(call_for("zebra horse", one_by_one))
    assert [(h.path, h.native_score) for h in found.hits] == [(h.path, h.native_score) for h in expected.hits]


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
async def test_nothing_found_while_a_document_cannot_be_read_is_suspect(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "horses\n", "b.md": "zebras\n"})
    (project.root / "b.md").chmod(0)
    async with expert_over(tmp_path) as expert:
        with pytest.raises(ExpertError) as raised:
            await expert.search(call_for("zebras", project))
        assert raised.value.failure is FailureClass.SUSPECT_EMPTY
        assert paths(await expert.search(call_for("horses", project))) == ["a.md"]


async def test_a_bad_front_matter_is_a_note_and_the_document_is_found(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "---\na: [\n---\n# Zebras\n\nStripes.\n"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebras stripes", project))
    assert paths(result) == ["a.md"]
    assert any("a.md: front matter" in note for note in result.notes)


async def test_a_pdf_is_read_and_one_that_is_none_is_said(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    assert pypdf
    project = write(tmp_path / "work", {"good.pdf": one_page_pdf("Zebras have stripes"), "bad.pdf": b"%PDF-1.4 nothing"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebras stripes", project))
    assert paths(result) == ["good.pdf"]
    assert any("PDF" in note and "bad.pdf" in note for note in result.notes)


def one_page_pdf(text: str) -> bytes:
    """The smallest PDF with a line of text, by the format's own rules (ISO 32000-1, 7.5)."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % o for o in offsets)
    return out + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start


async def test_the_stage_of_the_reranker_says_who_reranks(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "zebra\n"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra", project))
    stage = next(s for s in result.stages if s.stage == "rerank")
    assert (stage.active, stage.in_, stage.out) == (False, 1, 1)
    assert "budget.rerank" in stage.reason


NAMES = st.lists(st.sampled_from(["a.md", "b/c.rst", "b/d.txt", "e.adoc"]), min_size=1, max_size=4, unique=True)
TEXTS = st.sampled_from(
    [
        "zebra\n",
        "zebra `Stripe.paint()`\n",
        "---\nentities: [paint]\n---\nzebra\n",
        "# Zebra\n\nhorse zebra\n",
        "nothing\n",
        "---\nvalid_until: 2020-01-01\n---\nzebra\n",
    ]
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(["a.md", "b/c.rst", "b/d.txt"]), TEXTS, min_size=1), min_size=2, max_size=3), st.data())
async def test_no_retriever_gives_a_row_outside_of_what_the_caller_may_see(worlds: list[dict[str, str]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        projects = [write(Path(folder) / f"p{n}", files) for n, files in enumerate(worlds)]
        visible = data.draw(st.lists(st.sampled_from(projects), min_size=1, unique=True))
        prefix = data.draw(st.sampled_from([None, "b"]))
        withheld = data.draw(st.sampled_from([(), ("b/",), ("*.md", "!b/"), ("/b/d.txt",)]))
        entities = data.draw(st.sampled_from([None, ["Paint"], ["stripe.paint", "paint"]]))
        async with expert_over(Path(folder)) as expert:
            await expert.search(call_for("zebra horse", *projects))  # everything is indexed, and still only some of it may be seen
            granted = [replace(project, withheld=withheld) for project in visible]
            result = await expert.search(call_for("zebra horse", *granted, path=prefix, entities=entities))
        allowed = {p.id for p in visible}
        assert {h.project for h in result.hits} <= allowed
        assert {project for project, _ in result.hidden} <= allowed
        assert all(prefix is None or (h.path or "").startswith("b/") for h in result.hits)
        gone = {(): "", ("b/",): "b/", ("*.md", "!b/"): "a.md", ("/b/d.txt",): "b/d.txt"}[withheld]
        shown = [path or "" for path in (*(h.path for h in result.hits), *(path for _, path in result.hidden))]
        assert not gone or not any(path.startswith(gone) for path in shown)
        names = {None: "", ("Paint",): "paint", ("stripe.paint", "paint"): "Stripe.paint"}[tuple(entities) if entities else None]
        texts = {p.id: files for p, files in zip(projects, worlds, strict=True)}
        assert all(names in texts[h.project][h.path or ""] for h in result.hits)
        assert [s.stage for s in result.stages][:3] == ["lexical", "semantic", "document"]


async def test_a_listing_that_fails_everywhere_is_the_failure(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "zebra\n"})
    os.rename(project.root, tmp_path / "gone")
    async with expert_over(tmp_path) as expert:
        with pytest.raises(ExpertError):
            await expert.search(call_for("zebra", project))
