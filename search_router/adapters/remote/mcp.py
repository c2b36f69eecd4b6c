"""An MCP server is an expert: all that is known of one server is its configuration."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio

from search_router.adapters.remote.expert import State, Told
from search_router.adapters.remote.handshake import check_tool
from search_router.adapters.remote.judge import Received, best_by_words, judge, judge_refusal, read_result, readable, said
from search_router.adapters.remote.link import Target
from search_router.adapters.remote.records import Record
from search_router.adapters.remote.rpc import RpcError
from search_router.adapters.remote.session import ServerPool, ServerSession
from search_router.adapters.remote.surroundings import fill_texts, find_program, inherited_names, with_environment
from search_router.adapters.remote.template import PROJECT_NAMES, fill, placeholders_in
from search_router.canonical import digest
from search_router.config.remote import AnswerConfig, McpConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

MAX_KEPT = 256
LARGE = 65_536
"""Characters of an answer from which on it is read in a thread, so that nobody else waits."""


class McpAsker:
    """The servers of one expert: one, or one a project where its command names the project's root."""

    def __init__(self, config: McpConfig, pool: ServerPool) -> None:
        self._config = config
        self._pool = pool
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._kept: OrderedDict[str, tuple[float, list[Record]]] = OrderedDict()
        self._closed = False

    @property
    def answer(self) -> AnswerConfig:
        return self._config.answer

    @property
    def transport(self) -> Literal["stdio", "sse", "http"]:
        return self._config.transport

    @property
    def templates(self) -> Any:
        config = self._config
        return [self._place, config.arguments, *([config.before.arguments] if config.before else [])]

    @property
    def _place(self) -> list[Any]:
        """The templates that decide which server it is."""
        config = self._config
        return [config.command, config.cwd, config.env] if config.transport == "stdio" else [config.url, config.headers]

    @property
    def sessions(self) -> tuple[ServerSession, ...]:
        return tuple(self._sessions.values())

    async def ask(self, values: dict[str, Any], project: Project, seconds: float) -> Told:
        until = time.monotonic() + seconds
        config = self._config
        if config.before is None:
            arguments = fill(config.arguments, values)  # before anything is started: a question that cannot be put starts nothing
            return await self._call(await self._session(project), config.tool, config.arguments, arguments, config.answer, until)
        session = await self._session(project)
        records: list[Record] = []
        told = Told(())
        for first in await self._first(session, values, until):
            more = values | {f"before.{name}": value for name, value in first.items() if value is not None}
            told = await self._call(session, config.tool, config.arguments, fill(config.arguments, more), config.answer, until)
            about = {name: first[name] for name in ("title", "url") if first.get(name)}
            records += [about | {name: value for name, value in found.items() if value is not None} for found in told.records]
        return replace(told, records=records)

    async def _first(self, session: ServerSession, values: dict[str, Any], until: float) -> list[Record]:
        """The chosen items of the call that comes first; its answer may be a kept one."""
        step = self._config.before
        assert step is not None
        arguments = fill(step.arguments, values)
        key = digest([repr(session.target.argv), session.target.cwd, arguments])
        found = self._kept.get(key)
        if found is None or found[0] < time.monotonic():
            told = await self._call(session, step.tool, step.arguments, arguments, step.answer, until)
            found = (time.monotonic() + step.keep_ms / 1000, list(told.records))
            if step.keep_ms and found[1]:
                self._kept[key] = found
                if len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)
        return best_by_words(found[1], str(values["question"]), step.take) if step.choose == "words" else found[1][: step.take]

    async def _call(
        self,
        session: ServerSession,
        tool: str,
        template: Mapping[str, Any],
        arguments: Mapping[str, Any],
        answer: AnswerConfig,
        until: float,
    ) -> Told:
        connected = await session.ready(until - time.monotonic())
        if self._config.check_tool:
            check_tool(connected.tools, tool, template)
        try:
            reply, connected = await session.call_tool(tool, arguments, until - time.monotonic())
        except RpcError as error:
            raise judge_refusal(answer, error) from error
        received = readable(answer, read_result(reply.result, reply.cut))
        records = await anyio.to_thread.run_sync(judge, answer, received) if len(received.text) > LARGE else judge(answer, received)
        name, version = connected.server_name or None, connected.server_version or None
        return Told(records, reply.cut, name, version, connected.link.noise, received.long_lines)

    async def ask_about_index(self, values: Mapping[str, Any], project: Project, seconds: float) -> Received:
        """What the tool of the freshness probe answers. Raises ExpertError as `ask`."""
        probe = self._config.freshness_probe
        assert probe is not None
        session = await self._session(project)
        try:
            reply, _ = await session.call_tool(probe.tool, fill(probe.arguments, values), seconds)
        except RpcError as error:
            raise ExpertError(FailureClass.REJECTED, f"it refuses {probe.tool}: {said(error.message)}") from error
        return read_result(reply.result, reply.cut)

    @property
    def share_of_start(self) -> float:
        return min((session.share_of_start for session in self._sessions.values()), default=1.0)

    def state(self) -> State:
        config = self._config
        if config.transport == "stdio" and "{" not in config.command[0] and find_program(config.command[0]) is None:
            return State(f"{config.command[0]} is not installed or not on PATH", failure=FailureClass.UNCONFIGURED)
        waiting = [s for s in self._sessions.values() if s.circuit.next_try_in > 0]
        running = [c for s in self._sessions.values() if (c := s.connected) is not None]
        details = (("servers", str(len(running))), ("starts", str(sum(s.starts for s in self._sessions.values()))))
        if waiting and not running:
            worst = min(waiting, key=lambda s: s.circuit.next_try_in)
            error, left = worst.circuit.last, worst.circuit.next_try_in
            assert error is not None
            more = (("next_try_in_s", f"{left:.1f}"), ("failed_attempts", str(worst.circuit.openings)))
            return State(f"{error.message} Next try in {left:.1f} s.", failure=error.failure, details=(*details, *more))
        if running:
            first = running[0]
            spoken = (("protocol", first.protocol), *((("initialize", f"refused: {first.why}"),) if first.why else ()))
            name = first.server_name or "a server without a name"
            return State(f"running: {name}", first.server_version or None, details=(*details, *spoken))
        starting = any(s.starting for s in self._sessions.values())
        fallen = next((s.circuit.last for s in self._sessions.values() if s.circuit.last is not None), None)
        if fallen is not None and not starting:
            return State(f"{fallen.message} It is tried again by the next question.", details=details)
        return State("is starting" if starting else "is started by the first question", details=details)

    async def aclose(self) -> None:
        self._closed = True
        async with anyio.create_task_group() as tasks:
            for session in self._sessions.values():
                tasks.start_soon(session.aclose)

    async def _session(self, project: Project) -> ServerSession:
        """The server for this project, the least recently used one making room; not started yet."""
        if self._closed:
            raise ExpertError(FailureClass.UNAVAILABLE, "The router is closing.")
        shared = not PROJECT_NAMES & placeholders_in(self._place)
        place = "" if shared else f"{project.id}\0{project.root}"
        session = self._sessions.get(place)
        if session is None or session.closed:
            target = self._target({"root": str(project.root), "project": project.id}, () if shared else (project.root,))
            session = self._sessions[place] = self._pool.session(target, self._config.start_ms / 1000)
            if len(self._sessions) > self._config.max_servers:
                _, oldest = self._sessions.popitem(last=False)
                await oldest.aclose()
        else:
            self._sessions.move_to_end(place)
        return session

    def _target(self, values: dict[str, Any], roots: tuple[Path, ...]) -> Target:
        config = self._config
        if config.transport != "stdio":
            url = fill(config.url, with_environment(values, config.url))
            headers = fill_texts(config.headers, values)
            return Target(config.transport, url=str(url), headers=tuple(headers.items()), max_bytes=config.max_bytes, roots=roots)
        argv = tuple(str(part) for part in fill(config.command, with_environment(values, config.command)))
        cwd = str(fill(config.cwd, values)) or "/"
        program = find_program(argv[0], Path(cwd))
        if program is None:
            raise ExpertError(
                FailureClass.SPAWN_FAILED, f"{argv[0]!r} is not installed or not on PATH.", remedy="Install it, or set `command`."
            )
        return Target(
            "stdio",
            argv=(program, *argv[1:]),
            cwd=cwd,
            env=tuple(fill_texts(config.env, values).items()),
            inherit=inherited_names(config.pass_env),
            max_bytes=config.max_bytes,
            roots=roots,
        )
