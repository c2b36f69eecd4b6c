"""The `scripted` expert, the product's test double: it replays answers, delays and faults from a JSON file.

    {"server": {"name": "demo", "version": "1"},
     "answers": [{"when": "parse", "delay_ms": 5, "hits": [{"path": "a.py", "start_line": 3, "end_line": 9}]},
                 {"when": "boom", "fault": "crashed", "message": "it fell over"},
                 {"when": "*", "hits": []}]}

`when` is a substring of the question, `*` matches all; the first match counts. `fault` is a failure class, `hang` (never answers) or `bug`
(an unexpected exception).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from search_router.adapters.local.cards import embedded_card
from search_router.config.experts import ScriptedConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import CommitRecord, ExpertCall, ExpertResult, ExpertStatus, Health, Hit, Project


class ScriptedCommit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    date: str = "2000-01-01T00:00:00Z"
    author: str = ""
    subject: str = ""
    paths: tuple[str, ...] = ()


class ScriptedHit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None = None
    project: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    line_base: Literal[0, 1] = 1
    end_exclusive: bool = False
    symbol: str | None = None
    kind: str | None = None
    is_definition: bool = False
    is_exact: bool = False
    native_score: float | None = None
    content_hash: str | None = None
    commit: ScriptedCommit | None = None
    flags: tuple[str, ...] = ()


class ScriptedAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    when: str = "*"
    delay_ms: int = Field(default=0, ge=0)
    hits: tuple[ScriptedHit, ...] = ()
    fault: FailureClass | Literal["hang", "bug"] | None = None
    message: str = "scripted fault"
    partial: str | None = None
    notes: tuple[str, ...] = ()


class Server(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "scripted"
    version: str = "0"


class Script(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    server: Server = Server()
    answers: tuple[ScriptedAnswer, ...] = ()


class ScriptedExpert:
    """Replays a script. `asked`, `answered` and `cancelled` count what happened to its calls."""

    def __init__(self, expert_id: str, config: ScriptedConfig) -> None:
        self.card = embedded_card(expert_id, config)
        self._file = Path(config.script)
        self._script: Script | None = None
        self._templates: dict[int, tuple[Hit, ...]] = {}
        self.asked = self.answered = self.cancelled = 0

    async def search(self, call: ExpertCall) -> ExpertResult:
        script = self._load()
        self.asked += 1
        answer = next((a for a in script.answers if a.when == "*" or a.when in call.sub_query.text), ScriptedAnswer())
        try:
            if answer.delay_ms:
                await anyio.sleep(answer.delay_ms / 1000)
            if answer.fault == "hang":
                await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if answer.fault == "bug":
            raise RuntimeError(answer.message)
        if isinstance(answer.fault, FailureClass):
            raise ExpertError(answer.fault, answer.message)
        self.answered += 1
        projects = {p.id for p in call.projects}
        hits = tuple(h for h in self._hits(answer, call.projects[0].id) if h.project in projects)[: call.limit]
        return ExpertResult(hits, answer.partial, answer.notes, 0, script.server.name, script.server.version)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        try:
            script = self._load()
        except ExpertError as error:
            return Health(False, str(error), ExpertStatus(error.failure.value))
        return Health(True, "replays its script", version=script.server.version)

    async def aclose(self) -> None:
        self._script = None

    def _hits(self, answer: ScriptedAnswer, project: str) -> tuple[Hit, ...]:
        if id(answer) not in self._templates:
            self._templates[id(answer)] = tuple(_hit(h, project) for h in answer.hits)
        return self._templates[id(answer)]

    def _load(self) -> Script:
        if self._script is None:
            try:
                self._script = TypeAdapter(Script).validate_json(self._file.read_bytes())
            except FileNotFoundError as error:
                raise ExpertError(FailureClass.UNCONFIGURED, f"The script {self._file} does not exist.") from error
            except (OSError, ValidationError) as error:
                raise ExpertError(FailureClass.UNCONFIGURED, f"The script {self._file} cannot be read: {error}") from error
        return self._script


def _hit(given: ScriptedHit, project: str) -> Hit:
    fields = given.model_dump(exclude={"commit", "project"})
    commit = CommitRecord(**given.commit.model_dump()) if given.commit is not None else None
    return Hit(project=given.project or project, commit=commit, **fields)
