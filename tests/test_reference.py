"""docs/reference is what the code says today, and the documents' links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_reference_pages_are_made_of_this_code_whatever_the_order_of_hashing(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/reference", "--check"],
        cwd=TOP,
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_what_stands_outside_the_site_links_to_files_that_are_there(page: str) -> None:
    """Links within docs/ are checked when the site is built, headings included: scripts/docs."""
    missing = [target for target, _ in LINK.findall((TOP / page).read_text("utf-8")) if not (TOP / target).exists()]
    assert not missing


def test_the_start_page_names_every_page_of_the_folder() -> None:
    """Sphinx says so too; this one needs no Sphinx."""
    named = set(re.findall(r"^- \[[^\]]+\]\(([\w./-]+\.md)\)", (TOP / "docs/index.md").read_text("utf-8"), re.M))
    pages = {path.name for path in (TOP / "docs").glob("*.md")} | {
        f"reference/{path.name}" for path in (TOP / "docs/reference").glob("*.md")
    }
    assert pages - {"index.md"} <= named
