"""Other engines: a real ripgrep, and semble's driver against a stand-in of its package with the same calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark import peers
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.ripgrep_peer import ask_keywords, ask_literally, keywords
from tests.benchmark.small_data import make_data, write_files

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
    result: dict[str, Any] = peers.run(make_data(tmp_path), semble_python=stand_in_python(tmp_path), semble_model=tmp_path / "model", rg=RG)
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
        peers.run(make_data(tmp_path), semble_python=program)


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
