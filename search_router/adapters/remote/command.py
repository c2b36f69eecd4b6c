"""A command is an expert: one process a question, without a shell, its standard output read like any other answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from search_router.adapters.process import run_command
from search_router.adapters.remote.expert import State, Told
from search_router.adapters.remote.judge import Received, judge, readable, said
from search_router.adapters.remote.surroundings import fill_texts, find_program, inherited_names, with_environment
from search_router.adapters.remote.template import fill
from search_router.config.remote import AnswerConfig, CommandConfig, RemoteConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

VERSION_SECONDS = 2.0
STDERR_SHOWN = 600


class CommandAsker:
    """Runs the configured command."""

    def __init__(self, config: CommandConfig) -> None:
        self._config = config
        self._version: str | None = None
        self._asked_version = False

    @property
    def answer(self) -> AnswerConfig:
        return self._config.answer

    @property
    def transport(self) -> Literal["command"]:
        return "command"

    @property
    def templates(self) -> Any:
        return [self._config.command, self._config.cwd, self._config.env]

    async def ask(self, values: dict[str, Any], project: Project, seconds: float) -> Told:
        config = self._config
        argv = [str(part) for part in fill(config.command, with_environment(values, config.command))]
        cwd = Path(str(fill(config.cwd, values)) or "/")
        program = find_program(argv[0], cwd)
        if program is None:
            raise ExpertError(FailureClass.SPAWN_FAILED, f"{argv[0]!r} is not installed or not on PATH.", remedy="Install it.")
        env, inherit = fill_texts(config.env, values), inherited_names(config.pass_env)
        try:
            async with asyncio.timeout(seconds):
                done = await run_command([program, *argv[1:]], cwd=cwd, env=env, inherit=inherit, max_bytes=config.max_bytes)
        except TimeoutError:
            raise ExpertError(FailureClass.TIMEOUT, f"The command did not end within {round(seconds * 1000)} ms; it was killed.") from None
        heard = Received(done.stdout.decode("utf-8", "replace"), None, done.returncode not in config.ok_exits, done.cut)
        received = readable(config.answer, heard)
        if received.is_error:
            self._raise_failure(done.returncode, received, done.stderr)
        records = judge(config.answer, received)
        return Told(records, done.cut, Path(program).name, await self._learn_version(cwd), long_lines=received.long_lines)

    def _raise_failure(self, code: int, received: Received, stderr: str) -> None:
        """An exit code that is no answer; the configured rules look at both outputs, and `empty` may say that it means nothing found."""
        both = Received(f"{stderr}\n{received.text}".strip(), None, True)
        try:
            judge(self._config.answer, both)
        except ExpertError as error:
            if error.failure is not FailureClass.REJECTED:
                raise
            killed = code < 0
            how = f"was killed by signal {-code}" if killed else f"exited with code {code}"
            failure = FailureClass.CRASHED if killed else FailureClass.REJECTED
            words = said(both.text[-STDERR_SHOWN:])
            raise ExpertError(failure, f"The command {how}{f': {words}' if words else '.'}") from error

    async def _learn_version(self, cwd: Path) -> str | None:
        """The first line that the version command prints, asked once."""
        if self._config.version_command and not self._asked_version:
            self._asked_version = True
            try:
                async with asyncio.timeout(VERSION_SECONDS):
                    inherit = inherited_names(self._config.pass_env)
                    done = await run_command(self._config.version_command, cwd=cwd, inherit=inherit, max_bytes=4096)
                self._version = said(done.stdout.decode("utf-8", "replace").partition("\n")[0], 80) or None
            except (TimeoutError, ExpertError):
                self._version = None
        return self._version

    @property
    def share_of_start(self) -> float:
        return 1.0

    def state(self) -> State:
        program = self._config.command[0]
        if "{" not in program and "/" not in program and find_program(program) is None:
            return State(f"{program} is not installed or not on PATH", failure=FailureClass.UNCONFIGURED)
        return State("runs a command a question", self._version)

    async def aclose(self) -> None:
        """Nothing runs between questions."""


async def ask_command(
    config: RemoteConfig, env: Mapping[str, str], values: Mapping[str, Any], project: Project, seconds: float
) -> Received:
    """What the command of a freshness probe prints. Raises ExpertError: it cannot be run, or takes too long."""
    assert config.freshness_probe is not None
    template = config.freshness_probe.command
    argv = [str(part) for part in fill(template, with_environment(values, template))]
    program = find_program(argv[0], project.root)
    if program is None:
        raise ExpertError(FailureClass.SPAWN_FAILED, f"{argv[0]!r} is not installed or not on PATH")
    inherit = inherited_names(config.pass_env)
    try:
        async with asyncio.timeout(seconds):
            done = await run_command(
                [program, *argv[1:]], cwd=project.root, env=fill_texts(env, values), inherit=inherit, max_bytes=config.max_bytes
            )
    except TimeoutError:
        raise ExpertError(FailureClass.TIMEOUT, f"{Path(program).name} did not end within {seconds:g} s") from None
    words = done.stdout.decode("utf-8", "replace")
    return Received(words if done.returncode == 0 else f"{done.stderr}\n{words}".strip(), is_error=done.returncode != 0, cut=done.cut)
