from __future__ import annotations

import hashlib
import io
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from search_router.benchmark.gains import Metrics
from search_router.benchmark.knowledge_questions import (
    Found,
    KnowledgeQuestion,
    Label,
    LabelledSet,
    Release,
    Source,
    check_labels,
    read_labelled_set,
    score_answer,
)
from search_router.benchmark.knowledge_sources import build_workspace, unpack
from search_router.benchmark.questions import UnusableData

SECTION = Label(path="a.md", heading="Retries", start=3, end=5, grade=3)
OTHER = Label(path="b.md", grade=1)


def test_the_packaged_questions_are_many_graded_and_of_every_class_in_both_halves() -> None:
    labelled = read_labelled_set()
    assert len(labelled.questions) >= 60
    assert len({q.id for q in labelled.questions}) == len(labelled.questions)
    counts = Counter((q.class_, q.half) for q in labelled.questions)
    assert set(counts) == {(c, h) for c in ("docs", "changelog", "decision", "history", "runbook") for h in ("dev", "held-out")}
    assert min(counts.values()) >= 7
    assert {q.source for q in labelled.questions} == {s.name for s in labelled.sources}
    assert all(s.licence for s in labelled.sources)
    assert {label.grade for q in labelled.questions for label in q.labels} == {1, 2, 3}


def test_the_answer_at_the_top_is_worth_one_and_an_empty_list_nothing() -> None:
    top = [Found("a.md", 4, 4), Found("b.md", 1, 9)]
    assert score_answer(top, [SECTION, OTHER]) == Metrics(1.0, 1.0, 1.0)
    assert score_answer([], [SECTION, OTHER]) == Metrics(0.0, 0.0, 0.0)


def test_another_section_of_the_right_document_is_near_and_no_answer() -> None:
    """Gain 1 of 7 (2^1 - 1 of 2^3 - 1), and neither a first answer nor a recalled one."""
    ndcg, mrr, recall = score_answer([Found("a.md", 9, 12)], [SECTION])
    assert (round(ndcg, 4), mrr, recall) == (round(1 / 7, 4), 0.0, 0.0)


def test_a_label_is_earned_once_and_ranks_are_discounted() -> None:
    """The second rank is worth 1 / log2(3) = 0.6309; a repetition of the same section adds nothing."""
    ndcg, mrr, _ = score_answer([Found("x.md"), Found("a.md", 3, 3), Found("a.md", 5, 5)], [SECTION])
    assert (round(ndcg, 4), mrr) == (0.6309, 0.5)


def test_a_commit_is_met_by_its_version_alone() -> None:
    label = [Label(commit="1.2.0", grade=3)]
    assert score_answer([Found(None, commit="1.2.0")], label).ndcg == 1.0
    assert score_answer([Found("a.md", 3, 5), Found(None, commit="1.2.1")], label).ndcg == 0.0


def labelled_over(label: Label, digest: str) -> LabelledSet:
    source = Source(name="demo", registry="npm", licence="MIT", releases=(Release(version="1.0", file="d.tgz", sha256="0" * 64),))
    question = KnowledgeQuestion.model_validate(
        {"id": "q", "class": "docs", "source": "demo", "half": "dev", "intent": "docs", "question": "how", "labels": (label,)}
    )
    return LabelledSet((source,), (question,), {"demo/a.md": digest})


TEXT = b"# Title\n\n## Retries\n\nFive.\n"


@pytest.mark.parametrize(
    ("text", "label", "said"),
    [
        (TEXT + b"\n", SECTION, "another file"),
        (TEXT, SECTION.model_copy(update={"heading": "Timeouts"}), "q: a.md Timeouts"),
        (TEXT, SECTION.model_copy(update={"end": 50}), "q: a.md Retries"),
        (TEXT, SECTION.model_copy(update={"path": "gone.md"}), "q: gone.md"),
        (TEXT, Label(commit="2.0", grade=3), "q: 2.0"),
    ],
)
def test_a_stale_label_fails_the_load(tmp_path: Path, text: bytes, label: Label, said: str) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "a.md").write_bytes(text)
    labelled = labelled_over(label, hashlib.sha256(TEXT).hexdigest())
    with pytest.raises(UnusableData, match="stale") as raised:
        check_labels(labelled, tmp_path)
    assert said in str(raised.value)


def test_labels_that_stand_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "a.md").write_bytes(TEXT)
    check_labels(labelled_over(SECTION, hashlib.sha256(TEXT).hexdigest()), tmp_path)


def archive(path: Path, files: dict[str, bytes], *links: str) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
        for name in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            packed.addfile(member)
    return path


def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tgz", {"p/ok.md": b"1", "p/../../evil": b"2", "/abs/evil": b"3", "top": b"4"}, "p/link")
    unpack(packed, tmp_path / "out" / "deep")
    written = sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if not p.is_dir())
    assert written == ["deep/abs/evil", "deep/ok.md"]
    with pytest.raises(UnusableData, match="cannot be unpacked"):
        (tmp_path / "b.tgz").write_bytes(b"no archive")
        unpack(tmp_path / "b.tgz", tmp_path / "out")


def test_another_archive_than_the_labelled_one_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "d.tgz", {"p/a.md": TEXT})
    with pytest.raises(UnusableData, match="not the archive that was labelled"):
        build_workspace(labelled_over(SECTION, "").sources, tmp_path, tmp_path / "work")


def test_releases_become_the_same_commits_every_time(tmp_path: Path) -> None:
    releases: list[Release] = []
    for version in ("1.0", "1.1"):
        path = archive(tmp_path / f"d-{version}.tgz", {"p/CHANGELOG.md": f"# {version}\n- news of {version}\n".encode()})
        releases.append(Release(version=version, file=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    source = Source(name="demo", registry="npm", licence="MIT", history=True, releases=tuple(releases))
    first = build_workspace([source], tmp_path, tmp_path / "one")
    assert first == build_workspace([source], tmp_path, tmp_path / "two")
    assert set(first["demo"]) == {"1.0", "1.1"}
