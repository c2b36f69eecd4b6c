"""A real git repository built step by step, the same bytes on every machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

FIRST_DAY = 1_600_000_000
DAY = 86_400


class Repository:
    """Commits get one day each, so that their order and dates are known."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.day = 0
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Run git and give its output without the last line break; a failure is an error."""
        moment = f"{FIRST_DAY + self.day * DAY} +0000"
        names = {
            f"GIT_{who}_{what}": f"{value}" for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Ada"), ("EMAIL", "a@b.c"))
        }
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        env = {**os.environ, **names, **dates, **alone}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    def commit(self, message: str | bytes, files: Mapping[str, str | bytes | None] | None = None, *, author: str = "Ada") -> str:
        """Write (None deletes) these files, commit all, and give the commit's name."""
        self.day += 1
        for name, content in (files or {}).items():
            target = self.root / name
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "-A")
        text = message if isinstance(message, bytes) else message.encode()
        config = ("-c", "commit.gpgsign=false", "-c", "i18n.commitEncoding=UTF-8")
        self.git(*config, "commit", "-q", "--allow-empty", "--cleanup=verbatim", f"--author={author} <x@y.z>", "-F", "-", stdin=text)
        return self.git("rev-parse", "HEAD")

    def grow(self, commits: int, lines: int = 20) -> None:
        """Add many commits at once on main (fast-import): each changes one of ten files, `lines` long; none says `needle`."""
        parts: list[str] = []
        parent = self.git("rev-parse", "HEAD")
        for number in range(commits):
            self.day += 1
            message = f"Routine change {number}"
            content = "".join(f"line {line} of {number if line % 7 == 0 else number // 10}\n" for line in range(lines))
            parts.append(
                f"commit refs/heads/main\ncommitter Bob <b@b.b> {FIRST_DAY + self.day * DAY} +0000\ndata {len(message)}\n{message}\n"
                + (f"from {parent}\n" if number == 0 else "")
                + f"M 644 inline bulk/file{number % 10}.txt\ndata {len(content)}\n{content}\n"
            )
        self.git("fast-import", "--quiet", "--force", stdin="".join(parts).encode())
        self.git("reset", "-q", "--hard", "main")
