"""Turning a preset into an expert that runs: the block in the configuration, its program, its variables, and a first question."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.presets import Preset, load_preset, preset_names
from search_router.adapters.remote.surroundings import find_program, missing_variables
from search_router.config.loader import PROJECT_FILE, load_config
from search_router.config.remote import McpConfig, MilvusConfig
from search_router.errors import ConfigError, ExpertError
from search_router.plain_files import read_plain
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import ExpertCall, Intent, QueryForm, SubQuery

PROBE_SECONDS = 30.0
SHOWN_HITS = 3


class UnknownPreset(ValueError):
    """There is no preset of this name."""


class ExistsAlready(ValueError):
    """The configuration has an expert of this name already."""


@dataclass(frozen=True, slots=True)
class Added:
    """What was written, and where, in sentences."""

    preset: Preset
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probed:
    """What one expert did with one question."""

    expert: str
    ok: bool
    what: str

    def __str__(self) -> str:
        return f"{'ok   ' if self.ok else 'FAULT'} {self.expert}: {self.what}"


def add_preset(name: str, *, roots: Sequence[Path], environ: Mapping[str, str], enabled: bool, in_project: bool) -> Added:
    """Append a preset's blocks to the user's file (and, with `in_project`, one line each to the project's). All or nothing.

    Raises:
        UnknownPreset, ExistsAlready: nothing was written.
        ConfigError: the configuration had mistakes before, or would have some now; nothing was written.
    """
    try:
        preset = load_preset(name)
    except KeyError:
        raise UnknownPreset(f"There is no preset {name!r}; there are {', '.join(preset_names())}.") from None
    loaded = load_config(roots=list(roots), environ=environ)
    if there := [expert for expert in preset.experts if expert in loaded.config.experts]:
        raise ExistsAlready(f"The configuration has {', '.join(there)} already; change it there, or delete it first.")
    user, project = loaded.paths.user_config, loaded.root / PROJECT_FILE
    before = {path: read_plain(path).decode("utf-8") if path.exists() else "" for path in ((user, project) if in_project else (user,))}
    after = {user: _with_priors(_joined(before[user], _block(preset, enabled)), preset.priors)}
    if in_project:
        switched = "\n".join(f"[experts.{expert}]\nenabled = true\n" for expert in preset.experts)
        after[project] = _joined(before[project], switched)
    for path, text in after.items():
        _write(path, text)
    try:
        load_config(roots=list(roots), environ=environ)
    except ConfigError:
        for path, text in before.items():
            _write(path, text)
        raise
    state = "switched on" if enabled else "switched off"
    said = [f"wrote {', '.join(preset.experts)} to {user}, {state}"]
    if in_project:
        said.append(f"switched on in {project}")
    return Added(preset, (*said, *(f"note: {note}" for note in preset.notes)))


def _block(preset: Preset, enabled: bool) -> str:
    """The experts' blocks as text."""
    experts = preset.text[: preset.text.index("[priors.")]
    if not enabled:
        experts = re.sub(r'^(kind = ".*")$', r"\1\nenabled = false", experts, flags=re.MULTILINE)
    return f"# {preset.summary} ({preset.seen}): docs/experts/{preset.name}.md\n{experts}"


def _with_priors(text: str, priors: Mapping[str, Mapping[str, float]]) -> str:
    """The text with the priors in it: below the table of their intent where there is one (TOML opens a table only once), else behind."""
    for intent, values in priors.items():
        lines = "".join(f"{expert} = {prior}\n" for expert, prior in values.items())
        head = re.search(rf"^\[priors\.{re.escape(intent)}\][ \t]*(?:#[^\n]*)?\n", text, re.MULTILINE)
        text = f"{text[: head.end()]}{lines}{text[head.end() :]}" if head else f"{text.rstrip()}\n\n[priors.{intent}]\n{lines}"
    return text


def _joined(before: str, block: str) -> str:
    return f"{before.rstrip()}\n\n{block}" if before.strip() else block


def _write(path: Path, text: str) -> None:
    """Replace a file in one step, for its owner alone when it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, path.stat().st_mode & 0o777 if path.exists() else 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    beside.replace(path)


def look_around(preset: Preset, environ: Mapping[str, str]) -> list[str]:
    """Whether its program and its variables are there, in sentences; never a variable's value."""
    said: list[str] = []
    if preset.program:
        found = find_program(preset.program)
        said.append(f"program {preset.program}: {found}" if found else f"program {preset.program}: NOT on PATH; install: {preset.install}")
    missing = set(missing_variables(preset.variables, environ))
    said += [f"variable {name}: {'NOT set' if name in missing else 'is set'}" for name in preset.variables]
    return said


# ------------------------------------------------------------------ probe


async def probe_all(ids: Sequence[str], question: str | None, roots: Sequence[Path], flags: Sequence[str]) -> list[Probed]:
    """One question to each expert, with time to start its server. No receipt: nothing is answered, it is only tried."""
    async with open_router(roots=roots, flags=flags) as router:
        asked = question or await _some_name(router)
        return [await _probe(router, name, asked) for name in ids]


async def _some_name(router: Router) -> str:
    """A name that is defined in the workspace."""
    answer = await router.search({"question": "main function", "intent": "conceptual", "limit": 20}, principal="probe")
    return next((item.symbol.rpartition(".")[2] for item in answer.evidence if item.symbol), "main")


async def _probe(router: Router, name: str, question: str) -> Probed:
    expert = router.experts.get(name)
    if expert is None:
        return Probed(name, False, "is not configured, or switched off")
    if not isinstance(expert, RemoteExpert):
        return Probed(name, True, "is an embedded expert")
    settings = router.loaded.config.experts[name]
    start = settings.start_ms / 1000 if isinstance(settings, McpConfig | MilvusConfig) else 0.0
    call = ExpertCall(
        expert=name,
        sub_query=SubQuery(QueryForm.SYMBOL if question.isidentifier() else QueryForm.KEYWORDS, tuple(question.split()), question),
        projects=router.workspace.projects[:1],
        path=None,
        language=None,
        limit=10,
        budget_ms=round((PROBE_SECONDS + start) * 1000),
        prior=0,
        reason="probe",
        intent=Intent.UNKNOWN,
    )
    begun = time.perf_counter()
    try:
        result = await expert.search(call)
        cold = time.perf_counter() - begun
        begun = time.perf_counter()
        result = await expert.search(replace(call, budget_ms=settings.cap_ms))
    except ExpertError as error:
        return Probed(name, False, f"{error.failure.value}: {error}")
    warm = time.perf_counter() - begun
    version = " ".join(filter(None, (result.server_name, result.server_version))) or "a system that names no version"
    places = ", ".join(
        f"{h.path}:{h.start_line}" if h.path else (h.document.title or "a document" if h.document else "?") for h in result.hits
    )
    shown = json.dumps(places[:200], ensure_ascii=False) if places else "nothing"
    return Probed(name, True, f"{version}: {len(result.hits)} hits for {question!r} ({shown}), first {cold:.2f} s, then {warm:.3f} s")
