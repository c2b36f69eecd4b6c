"""Resolves uses of Python names with jedi; the program of the child process: `python -m …python_types_worker`.

Standard input carries one JSON object a line: first {"cache"}, then one {"root", "beside", "path", "name", "lines", "targets"} a job:
whether the name on these lines of this file is one of these definitions. Standard output answers each job in order with {"places",
"failed", "content_hash", "resident_kb"}. jedi only reads: no interpreter of the searched project is started and none of its modules is
imported.
"""

from __future__ import annotations

import importlib
import json
import pickle
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from search_router.adapters.local.jedi_api import Jedi, JediName, JediScript
from search_router.adapters.local.textfile import read_text_file, split_lines
from search_router.errors import EvidenceError

MAX_BYTES = 2 << 20
MAX_RESOLVERS = 4
MAX_COLUMNS = 8
"""So many places of a name on one line are looked at."""
# What jedi's inference is known to raise on code that it cannot follow; any of it costs one place.
_CANNOT_FOLLOW = (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError, AssertionError, NotImplementedError, OSError)
_DAMAGED_CACHE = (pickle.UnpicklingError, EOFError, ImportError)

Target = tuple[str, int, int]
"""Absolute real path, first and last line of a definition."""


class Resolver:
    """jedi on one project, with the files that it has read."""

    def __init__(self, jedi: Jedi, root: Path, beside: list[Path]) -> None:
        self._jedi = jedi
        self._root = root
        self._environment = jedi.InterpreterEnvironment()
        paths = [str(path) for path in _import_paths(root, beside)]
        self._project = jedi.Project(str(root), sys_path=paths, load_unsafe_extensions=False, smart_sys_path=False)

    def resolve(self, path: str, name: str, lines: list[int], targets: list[Target]) -> dict[str, Any]:
        """Which of the lines use one of the targets: {"places": [[line, index of the target], …], "failed": how many could not be told}."""
        try:
            source = read_text_file(self._root, path, max_bytes=MAX_BYTES)
        except EvidenceError as error:
            return {"places": [], "failed": len(lines), "why": error.code}
        text = split_lines(source.text)
        script = self._jedi.Script(source.text, path=str(self._root / path), environment=self._environment, project=self._project)
        places: list[list[int]] = []
        failed = 0
        for line in lines:
            if not 1 <= line <= len(text):
                continue
            try:
                target = self._target_on(script, text[line - 1], line, name, targets)
            except _CANNOT_FOLLOW:
                failed += 1
                continue
            if target is not None:
                places.append([line, target])
        return {"places": places, "failed": failed, "content_hash": source.content_hash}

    def _target_on(self, script: JediScript, text: str, line: int, name: str, targets: list[Target]) -> int | None:
        for match in _occurrences(text, name):
            for found in script.goto(line, match.start(), follow_imports=True, follow_builtin_imports=False):
                index = _index_of(found, targets)
                if index is not None:
                    return index
        return None


def _occurrences(text: str, name: str) -> Iterator[re.Match[str]]:
    for number, match in enumerate(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)):
        if number == MAX_COLUMNS:
            return
        yield match


def _index_of(found: JediName, targets: list[Target]) -> int | None:
    """Which target jedi found, if any."""
    if found.module_path is None or found.line is None:
        return None
    path = str(found.module_path)
    for index, (target, first, last) in enumerate(targets):
        if path == target and first <= found.line <= last:
            return index
    return None


def _import_paths(root: Path, beside: list[Path]) -> Iterator[Path]:
    """Where modules are looked for: the project, the projects beside it, its virtual environment, this interpreter's own library."""
    for project in (root, *beside):
        yield from (path for path in (project, project / "src", project / "lib") if path.is_dir())
    for name in (".venv", "venv"):
        yield from sorted((root / name / "lib").glob("python3*/site-packages"))
    yield from (Path(path) for path in sys.path if path and Path(path).is_dir())


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer every job until the input ends."""
    start = json.loads(requests.readline())
    jedi = cast(Jedi, importlib.import_module("jedi"))
    jedi.settings.cache_directory = start["cache"]
    resolvers: dict[tuple[str, ...], Resolver] = {}
    for line in requests:
        job = json.loads(line)
        key = (job["root"], *job["beside"])
        if key not in resolvers:
            if len(resolvers) == MAX_RESOLVERS:
                resolvers.clear()
            resolvers[key] = Resolver(jedi, Path(job["root"]), [Path(path) for path in job["beside"]])
        wanted = job["path"], job["name"], job["lines"], [(p, a, b) for p, a, b in job["targets"]]
        try:
            answer = resolvers[key].resolve(*wanted)
        except _DAMAGED_CACHE:  # a process that was killed left half a file, and would for ever
            shutil.rmtree(start["cache"], ignore_errors=True)
            jedi.settings.use_filesystem_cache = False
            resolvers = {key: Resolver(jedi, Path(job["root"]), [Path(path) for path in job["beside"]])}
            answer = resolvers[key].resolve(*wanted)
        answer["resident_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answers.write(json.dumps(answer).encode("ascii") + b"\n")
        answers.flush()


if __name__ == "__main__":
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever jedi or a plug-in of it prints must not stand between the answers
    serve(sys.stdin.buffer, out)
