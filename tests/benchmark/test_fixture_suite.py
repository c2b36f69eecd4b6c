"""A suite: built the same way every time, and every label held against the code."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from search_router.benchmark.fixture_archives import fetch_archive, files_of
from search_router.benchmark.fixture_audit import agreement, cohens_kappa
from search_router.benchmark.fixture_build import build_suite, changelog_sections, check_corpus, head_of
from search_router.benchmark.fixture_edges import importers_of
from search_router.benchmark.fixture_gold import GOLD, SOLE
from search_router.benchmark.fixture_manifest import PACKAGED, read_manifest, suite_folder
from search_router.benchmark.fixture_suite import CLASSES, StaleLabel, load_suite, read_fixture_questions, read_labels
from search_router.benchmark.questions import UnusableData
from tests.benchmark.small_suite import make_suite


def test_the_same_archives_make_the_same_commits(tmp_path: Path) -> None:
    suite, place = make_suite(tmp_path)
    again = tmp_path / "again"
    projects = build_suite(suite, again, tmp_path / "archives")
    assert [head_of(projects / name) for name in ("till", "ferry")] == [head_of(place / "projects" / name) for name in ("till", "ferry")]
    assert check_corpus(again) == check_corpus(place)


def test_a_release_is_a_commit_with_its_section_of_the_changelog_and_without_the_changelog(tmp_path: Path) -> None:
    _, place = make_suite(tmp_path)
    till = place / "projects" / "till"
    log = subprocess.run(["git", "log", "--format=%s|%ad|%b", "--date=short"], cwd=till, capture_output=True, text=True, check=True).stdout
    assert "till 1.0|2020-02-03|- First." in log and "- Added the cash drawer." in log
    assert not (till / "CHANGES.rst").exists()
    assert head_of(till, "1.1") == head_of(till)


def test_code_that_somebody_changed_is_noticed(tmp_path: Path) -> None:
    _, place = make_suite(tmp_path)
    (place / "projects/ferry/lib/weather.py").write_text("changed\n")
    with pytest.raises(UnusableData, match="not what was built"):
        check_corpus(place)


def test_an_archive_of_other_bytes_is_refused(tmp_path: Path) -> None:
    suite, _ = make_suite(tmp_path)
    (tmp_path / "archives/ferry-1.1.tar.gz").write_bytes(b"other")
    manifest, _ = read_manifest(suite)
    with pytest.raises(UnusableData, match="SHA-256"):
        fetch_archive(manifest.archives[1], tmp_path / "archives")


def test_a_member_that_leaves_the_archive_is_refused_and_links_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("top/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert list(files_of(path, ())) == []
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("top/../../up.py")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(UnusableData, match="leaves it"):
        list(files_of(path, ()))


def test_sections_of_a_changelog_are_told_apart_and_links_become_numbers() -> None:
    text = "pluggy 1.7.0 (2026-10-14)\n=====\n\n- `#170 <https://x/170>`_: Defaults.\n\nv1.6 (2025)\n-----\n\nOld.\n"
    assert changelog_sections(text) == {"1.7.0": "- #170: Defaults.", "1.6": "Old."}


def test_a_suite_that_fits_is_loaded_with_its_commits(tmp_path: Path) -> None:
    suite, place = make_suite(tmp_path)
    loaded = load_suite(suite, place / "projects")
    assert loaded.labels["history-0"][0].commit == head_of(place / "projects/till", "1.1")
    assert [root.name for root in loaded.roots()] == ["till", "ferry"]


def test_a_label_about_other_bytes_or_lines_or_another_commit_fails_the_load(tmp_path: Path) -> None:
    suite, place = make_suite(tmp_path)
    qrels = suite / "qrels.tsv"
    whole = qrels.read_text()
    rows = [line.split("\t") for line in whole.splitlines()]
    lines = [*rows[1][:3], "5", "99", "", "3", rows[1][7]]
    bytes_ = [*rows[2][:7], "0" * 12]
    commit = [*rows[-1][:7], "0" * 12]
    qrels.write_text("\n".join("\t".join(row) for row in [rows[0], lines, bytes_, *rows[3:-1], commit]) + "\n")
    with pytest.raises(StaleLabel, match=r"3 labels.*has 6 lines, not 5 to 99.*has other bytes.*is commit"):
        load_suite(suite, place / "projects")


def test_a_question_without_a_label_and_a_faulty_line_are_named(tmp_path: Path) -> None:
    suite, place = make_suite(tmp_path)
    qrels = suite / "qrels.tsv"
    qrels.write_text("\n".join(qrels.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(UnusableData, match="history-0"):
        load_suite(suite, place / "projects")
    (suite / "queries.jsonl").write_text('{"id": "x"}\n')
    with pytest.raises(UnusableData, match=r"queries\.jsonl:1"):
        load_suite(suite, place / "projects")


def test_a_folder_without_a_manifest_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="no suite"):
        suite_folder(str(tmp_path))


def test_the_packaged_suite_has_what_it_promises() -> None:
    questions = read_fixture_questions(PACKAGED / "queries.jsonl")
    scored = [q for q in questions if not q.adversarial]
    assert len(scored) >= 300
    assert {q.kind for q in scored} == set(CLASSES)
    assert Counter(q.kind for q in scored)["conceptual"] >= 60
    assert sum(q.source == "mined" for q in scored) >= 40 and all(q.origin for q in scored if q.source == "mined")
    labelled = {label.query for label in read_labels(PACKAGED / "qrels.tsv")}
    assert labelled == {q.id for q in scored}
    for kind in CLASSES:
        halves = Counter(q.half for q in scored if q.kind == kind)
        assert abs(halves["dev"] - halves["test"]) <= 1


def test_gold_experts_of_the_packaged_suite_are_those_of_the_class() -> None:
    for question in read_fixture_questions(PACKAGED / "queries.jsonl"):
        if question.adversarial:
            assert question.experts == ()
        elif len(question.experts) == 1:
            assert question.experts == (SOLE[question.kind],) and question.path
        else:
            assert set(question.experts) <= set(GOLD[question.kind])


def test_no_question_is_there_twice() -> None:
    texts = Counter((q.text, q.path) for q in read_fixture_questions(PACKAGED / "queries.jsonl"))
    assert [text for text, count in texts.items() if count > 1] == []


def test_kappa_agrees_with_the_hand_computed_case() -> None:
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15  # Cohen's own kind of table: po 0.7, pe 0.5
    assert cohens_kappa(pairs) == pytest.approx(0.4)
    assert cohens_kappa(pairs, weighted=True) == pytest.approx(0.4)
    graded = [(0, 0), (3, 3), (3, 2), (0, 3)]  # weights 0, 0, 1/9, 1; by chance 2*(1 + 4/9 + ...) by hand below
    chance = (2 * 1 * 0 + 2 * 2 * 1 + 2 * 1 * (4 / 9) + 2 * 1 * 1 + 2 * 2 * 0 + 2 * 1 * (1 / 9)) / 16
    assert cohens_kappa(graded, weighted=True) == pytest.approx(1 - ((1 / 9 + 1) / 4) / chance)
    assert cohens_kappa([(1, 1), (1, 1)]) == 1.0


def test_agreement_counts_a_place_that_has_no_label_as_grade_0(tmp_path: Path) -> None:
    suite, _ = make_suite(tmp_path)
    rows = [
        {"query": "conceptual-0", "project": "till", "path": "src/till/receipt_printer.py", "second": 3},
        {"query": "conceptual-0", "project": "till", "path": "src/till/drawer.py", "second": 0},
        {"query": "conceptual-1", "project": "till", "path": "src/till/drawer.py", "second": 2},
    ]
    (suite / "audit.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = agreement(suite)
    assert (found["places"], found["same_grade"], found["same_relevance"], found["kappa_relevance"]) == (3, 2, 3, 1.0)


def test_importers_of_a_name_are_those_in_its_own_package_too_and_importers_of_a_package_are_others(tmp_path: Path) -> None:
    for name, text in {
        "till/src/till/__init__.py": "from .drawer import Drawer\n",
        "till/tests/test_drawer.py": "from till import Drawer\n",
        "ferry/bar.py": "from till.drawer import Drawer as D\n",
        "ferry/kiosk.py": "import till.printer\nfrom ferry.drawer import Drawer\n",
        "ferry/deck.py": "from .drawer import Drawer\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = importers_of(tmp_path, "till", ["Drawer"])
    assert found["till"] == [("ferry", "bar.py"), ("ferry", "kiosk.py")]
    assert found["Drawer"] == [("ferry", "bar.py"), ("till", "src/till/__init__.py"), ("till", "tests/test_drawer.py")]
