"""Shell sessions in the documents, run as a reader would type them. As a program it writes what is printed today into the pages.

    <!-- session: NAME -->          a fenced block: lines after `$ ` are commands (`> ` goes on), the others what they print
    <!-- file: NAME -->             a fenced block that is put into the home directory under that name first

All sessions of a page are one shell, in order, in a home directory of its own. A command must end with 0, or with N after
`# exit code N`. In what is printed, `…` stands for any part of a line, and alone in a line for any lines; times, hashes and ids may differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.scripted_router import EMBEDDED

TOP = Path(__file__).resolve().parent.parent
HOME = "/home/me"
SECONDS = 280
PATIENCE_MS = 60_000
"""For requests and experts: on a loaded machine the configured times are soon over, and the pages are not about that."""
_BLOCK = re.compile(r"(<!-- (session|file): ([\w.-]+) -->\n```\w*\n)(.*?)(\n```)", re.S)
_EXIT = re.compile(r"# exit code (\d+)$", re.M)
_DIFFERS = (
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "ID"),
    (re.compile(r"\beyJ[\w=-]+"), "CURSOR"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{4}-\d\d-\d\d"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|KiB|MiB|GiB)\b"), r"N \2"),
    (re.compile(r",? changed since"), ""),  # from a checkout with edits
    (re.compile(r"^why: the code has changes that no commit tells.*\n?", re.M), ""),  # the same
    (re.compile(r"Held against \d+"), "Held against N"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command and what the page says that it prints; after a run what it printed, and its exit code."""

    command: str
    printed: str
    code: int

    @property
    def text(self) -> str:
        command = "$ " + self.command.replace("\n", "\n> ")
        return f"{command}\n{self.printed}" if self.printed else command


def steps_of(block: str) -> list[Step]:
    steps: list[Step] = []
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.split("\n")
        end = next((i for i, line in enumerate(lines) if i and not line.startswith("> ")), len(lines))
        command = "\n".join([lines[0], *(line[2:] for line in lines[1:end])])
        code = _EXIT.search(command)
        steps.append(Step(command, "\n".join(lines[end:]).strip("\n"), int(code[1]) if code else 0))
    return steps


def matches(said: str, printed: str) -> bool:
    """Whether the page says what was printed."""
    lines = [".*\n?(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in _masked(said).split("\n")]
    return re.fullmatch("".join(lines), _masked(printed) + "\n") is not None


def _masked(text: str) -> str:
    for pattern, word in _DIFFERS:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def file_of(page: Path, name: str) -> str:
    """A file that a page gives its reader."""
    return next(text + "\n" for _, kind, called, text, _ in _BLOCK.findall(page.read_text("utf-8")) if (kind, called) == ("file", name))


def run_page(page: Path, home: Path) -> list[tuple[Step, Step]]:
    """Every step of the page beside what came of it. `home` is the reader's home directory, with this checkout at `search-router`."""
    steps: list[Step] = []
    for _, kind, name, text, _ in _BLOCK.findall(page.read_text("utf-8")):
        if kind == "file":
            (home / name).write_text(text + "\n", "utf-8")
        else:
            steps += steps_of(text)
    _furnish(home)
    mark = f"--{os.urandom(8).hex()}--"
    script = "".join(f"{step.command}\nprintf '\\n{mark} %s\\n' $?\n" for step in steps)
    (home / ".session").write_text(script, "utf-8")
    done = subprocess.run(
        ["bash", ".session"],
        cwd=home,
        env=_environ(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    text = re.sub(r"[ \t]+$", "", done.stdout.replace(str(home), HOME), flags=re.M)
    ends = re.findall(rf"(.*?)\n{mark} (\d+)\n", text, re.S)
    assert len(ends) == len(steps), done.stdout[-2000:]
    return [(step, Step(step.command, printed.strip("\n"), int(code))) for step, (printed, code) in zip(steps, ends, strict=True)]


def _furnish(home: Path) -> None:
    programs = home / ".local/bin"
    programs.mkdir(parents=True)
    for name, arguments in (("search-router", "-m search_router"), ("python3", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    (home / "search-router").symlink_to(TOP)


def _environ(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEARCH_ROUTER", "XDG_", "LC_", "GIT_", "COLUMNS"))}
    person = {
        "GIT_AUTHOR_NAME": "Me",
        "GIT_AUTHOR_EMAIL": "me@example.org",
        "GIT_COMMITTER_NAME": "Me",
        "GIT_COMMITTER_EMAIL": "me@example.org",
    }
    path = f"{home / '.local/bin'}{os.pathsep}{os.environ['PATH']}"
    caps = {f"SEARCH_ROUTER__EXPERTS__{name.upper().replace('-', '_')}__CAP_MS": str(PATIENCE_MS) for name in EMBEDDED}
    patience = {"SEARCH_ROUTER__BUDGET__LATENCY_MS": str(PATIENCE_MS), **caps}
    return {**kept, **person, **patience, "HOME": str(home), "PATH": path, "PYTHONPATH": str(TOP), "LANG": "C.UTF-8"}


def copy_state(home: Path, release: str) -> None:
    """The state directory that a release left behind, with the modes that it had: a checkout does not keep them."""
    state = home / ".local/share/search-router"
    shutil.copytree(TOP / "tests/upgrades" / release, state, ignore=shutil.ignore_patterns("cache"))
    for path in (state, *state.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o644 if path.suffix == ".pub" else 0o600)


PAGES = {"docs/first-question.md": None, "docs/tuning.md": None, "docs/operating.md": "1.0.0"}
"""A page with sessions to the release whose state directory is there when it begins."""


def prepared(page: str, home: Path) -> Path:
    if release := PAGES[page]:
        copy_state(home, release)
    return TOP / page


def main() -> int:
    for name in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            page = prepared(name, Path(folder))
            pairs = run_page(page, Path(folder))
        for said, came in pairs:
            if said.code != came.code:
                print(f"{name}: exit code {came.code}: {said.command}\n{came.printed}")
        if all(matches(said.printed, came.printed) for said, came in pairs):
            continue
        results = iter(pairs)
        text = page.read_text("utf-8")
        for block in _BLOCK.findall(text):
            if block[1] == "session":
                steps = [next(results) for _ in steps_of(block[3])]
                texts = [said.text if "…" in said.printed and matches(said.printed, came.printed) else came.text for said, came in steps]
                text = text.replace("".join(block[i] for i in (0, 3, 4)), block[0] + "\n".join(texts) + block[4], 1)
        page.write_text(text, "utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
