"""A router over real files whose experts replay scripts: for the failure contract."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import search_router.config.loader
from search_router.router.opening import open_router
from search_router.router.service import Router

FILES = {
    "src/app.py": "import os\n\n\ndef start(name):\n    value = os.environ[name]\n    return value\n\n\ndef stop():\n    return None\n",
    "src/twin_a.py": "TWIN = 'the very same text'\n",
    "src/twin_b.py": "TWIN = 'the very same text'\n",
    "notes.txt": "start here\n",
}
EMBEDDED = tuple(tomllib.loads((Path(search_router.config.loader.__file__).parent / "default.toml").read_text("utf-8"))["experts"])
"""Every expert of the packaged configuration."""
INTENTS = '["conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history"]'


def write_files(root: Path, files: Mapping[str, str] = FILES) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def expert_flags(
    name: str,
    script: Path,
    *,
    precision: str = "lexical",
    engine: str | None = None,
    cap_ms: int = 2000,
    prior: float = 0.8,
    more: str = "",
) -> list[str]:
    block = (
        f'kind="scripted", precision_class="{precision}", engine="{engine or name}", cap_ms={cap_ms}, intents={INTENTS}, script="{script}"'
    )
    priors = [
        f"priors.{intent}.{name}={prior}"
        for intent in ("conceptual", "identifier", "typed-symbol", "docs", "unknown", "history", "cross-repo-impact")
    ]
    return [f"experts.{name}={{{block}{more}}}", *priors]


@asynccontextmanager
async def scripted_router(
    folder: Path,
    scripts: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    files: Mapping[str, str] = FILES,
    flags: Sequence[str] = (),
    roots: Sequence[Path] = (),
    **more: Any,
) -> AsyncGenerator[Router]:
    """A router whose only experts are the given scripts: expert id to its answers. `more` goes to every expert's declaration."""
    root = folder / "work"
    root.mkdir(exist_ok=True)
    write_files(root, files)
    chosen = [f"experts.{name}.enabled=false" for name in EMBEDDED]
    chosen += [f"gate.default_set={json.dumps(sorted(scripts))}"]
    for name, answers in scripts.items():
        script = folder / f"{name}.json"
        script.write_text(json.dumps({"answers": list(answers)}))
        chosen += expert_flags(name, script, **more)
    async with open_router(roots=roots or [root], flags=[*chosen, *flags], environ=environ(folder)) as router:
        yield router


def environ(folder: Path) -> dict[str, str]:
    """A state directory of the test's own."""
    config = folder / "user.toml"
    config.touch()
    return {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(config)}


def hit(path: str = "src/app.py", start: int = 4, end: int | None = None, **more: Any) -> dict[str, Any]:
    return {"path": path, "start_line": start, "end_line": end or start, **more}
