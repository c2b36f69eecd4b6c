"""Other engines: a real ripgrep, and semble's driver against a stand-in of its package with the same calls."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark import peers
from search_router.benchmark.chunkhound_peer import rank_files
from search_router.benchmark.gains import Result
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.ripgrep_peer import ask_keywords, ask_literally, keywords
from search_router.benchmark.suite_data import SuiteData
from search_router.schema import Hit
from tests.benchmark.small_data import make_data, write_files
from tests.benchmark.small_suite import QUESTIONS, make_suite
from tests.command_line import run_cli

pytestmark = pytest.mark.heavy

RG = str(Path(sys.executable).with_name("rg"))
STAND_IN = """
from dataclasses import dataclass
from pathlib import Path
__version__ = "0.0"
@dataclass
class Chunk:
    file_path: str
    start_line: int = 1
    end_line: int = 9
@dataclass
class SearchResult:
    chunk: Chunk
class SembleIndex:
    def __init__(self, chunks): self.chunks = chunks
    @classmethod
    def from_path(cls, path, model_path=None):
        assert model_path, "the hub would be asked"
        return cls([Chunk(p.name) for p in sorted(Path(path).rglob("*")) if p.is_file()])
    def search(self, query, top_k=10): return [SearchResult(c) for c in self.chunks[:top_k]]
"""


def stand_in_python(folder: Path) -> Path:
    """An interpreter that finds the stand-in."""
    (folder / "site/semble").mkdir(parents=True)
    (folder / "site/semble/__init__.py").write_text(STAND_IN)
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def test_all_systems_answer_the_same_questions_in_one_table(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    result: dict[str, Any] = peers.run(
        make_data(tmp_path), peers.Others(stand_in_python(tmp_path), tmp_path / "model", RG), out=tmp_path / "out"
    )
    systems = result["systems"]
    assert list(systems) == ["search-router", "semble 0.0", "ripgrep, the question", "ripgrep, keywords"]
    assert systems["search-router"]["ndcg10"] == 1.0
    assert 0 < systems["semble 0.0"]["ndcg10"] < 1
    assert systems["search-router"]["index_ms_a_thousand_lines"] > 0
    assert systems["ripgrep, keywords"]["index_ms_a_thousand_lines"] is None
    assert str(tmp_path / "model") in systems["semble 0.0"]["what"]
    assert result["lines"] == 21


def test_a_driver_that_fails_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no semble here >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(UnusableData, match=r"exit code 3: no semble here"):
        peers.run(make_data(tmp_path), peers.Others(program))


def test_ripgrep_ranks_by_different_keywords_before_counts(tmp_path: Path) -> None:
    (tmp_path / "both.txt").write_text("alpha beta\n")
    (tmp_path / "often.txt").write_text("alpha\n" * 9)
    assert keywords("How is the alpha in Beta, alpha") == ["alpha", "beta"]
    assert [r.path for r in ask_keywords(RG, tmp_path, "the alpha of beta").results] == ["both.txt", "often.txt"]
    assert [r.path for r in ask_literally(RG, tmp_path, "Alpha Beta").results] == ["both.txt"]
    assert ask_literally(RG, tmp_path, "gamma").results == []


def test_lines_are_counted_in_text_files_alone(tmp_path: Path) -> None:
    write_files(tmp_path)
    before = peers.count_lines(tmp_path)
    (tmp_path / "image").write_bytes(b"\0\n\n\n")
    (tmp_path / ".hidden").write_text("\n\n")
    assert peers.count_lines(tmp_path) == before > 0


def test_the_page_has_every_system_and_the_plot_is_kept_twice(tmp_path: Path) -> None:
    result = peers.run(make_data(tmp_path), peers.Others(rg=RG), out=tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    assert "ripgrep, keywords" in page and "<script" not in page and "src=" not in page
    assert json.loads((tmp_path / "out/peers.json").read_text()) == result
    if importlib.util.find_spec("matplotlib") is not None:
        assert "<svg" in page
        assert (tmp_path / "out/peers.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "out/peers.svg").read_text().count("ripgrep, keywords") == 1


def test_a_suite_is_asked_project_by_project_without_what_only_we_have(tmp_path: Path) -> None:
    suite, built = make_suite(tmp_path)
    plan = SuiteData(str(suite), built).plan(tmp_path / "home")
    assert [r.name for r in plan.repositories] == ["till", "ferry"]
    assert len(plan.questions) == len(QUESTIONS)  # neither the one about a commit nor the empty one
    assert {q.repo for q in SuiteData(str(suite), built, only=("ferry",)).plan(tmp_path / "home").questions} == {"ferry"}
    assert len(SuiteData(str(suite), built, drawn=4).plan(tmp_path / "home").questions) == 4
    with pytest.raises(UnusableData, match="Known: till, ferry"):
        SuiteData(str(suite), built, only=("pier",)).plan(tmp_path / "home")


def test_the_command_needs_a_suite_or_all_three_data_options(tmp_path: Path) -> None:
    ended = run_cli(tmp_path, "bench", "peers", "--rg", RG)
    assert ended.code == 2 and "--suite" in ended.stderr


CHUNKHOUND = """
import sys, pathlib
if sys.argv[1] == "index":
    print("broken index", file=sys.stderr)
    sys.exit(4)
"""


def test_a_chunkhound_that_does_not_index_is_an_error_with_what_it_said_and_the_checkout_is_untouched(tmp_path: Path) -> None:
    data = make_data(tmp_path)
    (tmp_path / "script.py").write_text(CHUNKHOUND)
    program = tmp_path / "chunkhound"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/script.py" "$@"\n')
    program.chmod(0o755)
    before = sorted((tmp_path / "checkouts").rglob("*"))
    with pytest.raises(UnusableData, match="broken index"):
        peers.run(data, peers.Others(chunkhound=program))
    assert sorted((tmp_path / "checkouts").rglob("*")) == before


def test_files_of_unranked_hits_are_ranked_by_different_keywords(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text("alpha\nbeta\n")
    (tmp_path / "often.py").write_text("alpha\n" * 3)
    hits = [Hit("p", "often.py", n, n) for n in (1, 2, 3)] + [Hit("p", str(tmp_path / "both.py"), 1, 2)]
    assert rank_files(hits, ("alpha", "beta"), tmp_path) == [Result("both.py", 1, 2), Result("often.py", 1, 1)]
