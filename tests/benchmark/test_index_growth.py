"""The index of a real server: built, asked, edited and switched."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark import index_growth
from search_router.benchmark.corpus import make_corpus
from search_router.benchmark.questions import UnusableData
from tests.command_line import run_cli

pytestmark = pytest.mark.heavy


def write_sources(folder: Path, files: int) -> Path:
    folder.mkdir()
    for number in range(files):
        (folder / f"part_{number:02d}.py").write_text(f"def compute_part_{number}(value):\n    return value\n" + "# line\n" * 20)
    return folder


def test_a_corpus_takes_files_of_each_directory_in_turn_and_copies_them(tmp_path: Path) -> None:
    one, two = write_sources(tmp_path / "one", 5), write_sources(tmp_path / "two", 5)
    (one / "link.py").symlink_to(two / "part_00.py")
    (one / "data.bin").write_bytes(b"\0" * 10)
    corpus = make_corpus([one, two], 88, tmp_path / "corpus")
    tracked = subprocess.run(["git", "ls-files"], cwd=corpus.root, capture_output=True, text=True, check=True).stdout.split()
    assert [path[:7] for path in tracked] == ["00-one/", "00-one/", "01-two/", "01-two/"]
    assert (corpus.files, corpus.lines) == (4, 88)
    assert all(f"compute_part_{int(path[-5:-3])}" in corpus.names for path in tracked)
    assert (corpus.root / tracked[0]).stat().st_ino != (one / "part_00.py").stat().st_ino


def test_too_few_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="hold 22 lines"):
        make_corpus([write_sources(tmp_path / "one", 1)], 1000, tmp_path / "corpus")


def test_one_size_has_all_its_figures_and_every_edit_is_found(tmp_path: Path) -> None:
    result: dict[str, Any] = index_growth.run([write_sources(tmp_path / "one", 12)], [200], saves=2, switched=3, out=tmp_path / "out")
    (size,) = result["sizes"]
    assert (size["lines"], size["files"]) == (220, 10)
    assert size["build"]["s"] > 0 and size["build"]["cpu_s"] > 0 and size["disk_bytes"] > 0
    assert size["memory"]["peak_rss_mib"] >= size["memory"]["rss_mib"] > 10
    assert size["questions"]["n"] == 10
    assert (size["saves"]["n"], size["saves"]["found"]) == (2, 2)
    assert (size["switches"]["files"], size["switches"]["never_seen"]["found"]) == (3, True)
    assert size["switches"]["seen"]["right"] == size["switches"]["seen"]["of"] == 10
    page = (tmp_path / "out/report.html").read_text()
    assert "after a save p50" in page and "10 of 10" in page and "<script" not in page
    assert json.loads((tmp_path / "out/index.json").read_text()) == result
    if importlib.util.find_spec("matplotlib") is not None:
        assert page.count("<svg") == 3
        assert (tmp_path / "out/plots/build.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "out/home/200/cache").exists()
    kept = run_cli(
        tmp_path, "experiments", "--paper-slug", "bench-index-200", "--json", environ={"SEARCH_ROUTER_HOME": str(tmp_path / "out/home/200")}
    )
    assert kept.json["requests"] > 20
