"""A clean copy of the tree, and an environment as on a fresh machine: Python and git on PATH, neither ripgrep nor node, nothing in HOME."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
NOT_THERE = re.compile(r"(?:rg|node|nodejs|npm|npx|corepack|pip|uv|ruff|pyright)\b")


def clean_copy(folder: Path) -> tuple[Path, dict[str, str]]:
    """(what is committed, cloned below `folder`; the environment to run it in)."""
    tree, tools = folder / "search-router", folder / "bin"
    subprocess.run(["git", "clone", "-q", str(TOP), str(tree)], check=True)
    tools.mkdir()
    for place in ("/bin", "/usr/bin"):  # what git itself needs: a shell and the POSIX tools
        for program in Path(place).iterdir():
            link = tools / program.name
            if not link.exists() and not NOT_THERE.match(program.name):
                link.symlink_to(program)
    (tools / "python3").unlink(missing_ok=True)
    (tools / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    folder.chmod(0o755)
    return tree, {"PATH": str(tools), "HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
