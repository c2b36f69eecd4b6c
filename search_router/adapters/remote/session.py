"""One server and its owner task: started by the first call, shared by all, started again after a fall, never faster than its back-off.

Everything that must be opened and closed in one task (a child, streams, cancel scopes) lives in the owner; callers wait for a future and
then talk over the link. So any number of first calls start one server, and a caller that leaves takes nothing with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from search_router.adapters.remote.handshake import Connected, shake_hands
from search_router.adapters.remote.http import open_http, open_sse
from search_router.adapters.remote.link import Opener, SessionLost, Target
from search_router.adapters.remote.rpc import Reply, RpcError
from search_router.adapters.remote.stdio import open_stdio
from search_router.errors import ExpertError, FailureClass
from search_router.observing import RemoteCall, current, trace_headers

OPENERS: Mapping[str, Opener] = {"stdio": open_stdio, "http": open_http, "sse": open_sse}
FIRST_BACK_OFF = 1.0
LONGEST_BACK_OFF = 300.0
FAILURES_TO_OPEN = 3
"""So many calls in a row without a usable answer open the circuit; a start that fails, or a crash, does at once."""
CONDEMNING = frozenset({FailureClass.TIMEOUT, FailureClass.CRASHED, FailureClass.PROTOCOL_ERROR, FailureClass.UNAVAILABLE})


@dataclass(slots=True)
class Circuit:
    """When a server may be tried again. Pure but for its clock, in seconds."""

    clock: Callable[[], float] = time.monotonic
    openings: int = 0
    failures: int = 0
    until: float = 0.0
    last: ExpertError | None = None

    def check(self) -> None:
        """Raises the last failure, with the time of the next try, while the circuit is open."""
        if self.last is not None and (left := self.until - self.clock()) > 0:
            said = f"{self.last.message} Not tried again for {left:.1f} s (attempt {self.openings} failed)."
            raise ExpertError(self.last.failure, said, remedy=self.last.remedy, detail=self.last.detail)

    def open(self, error: ExpertError) -> None:
        """Back off: twice as long as the time before."""
        self.openings += 1
        self.failures = 0
        self.last = error
        self.until = self.clock() + min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2 ** min(self.openings - 1, 16))

    def count(self, error: ExpertError) -> bool:
        """Take note of a call without a usable answer; whether that opened the circuit."""
        self.failures += 1
        if error.failure is FailureClass.CRASHED or self.failures >= FAILURES_TO_OPEN:
            self.open(error)
            return True
        return False

    def close(self) -> None:
        """It answered."""
        self.openings = self.failures = 0
        self.last, self.until = None, 0.0

    @property
    def next_try_in(self) -> float:
        """Seconds, 0 when it may be tried now."""
        return max(0.0, self.until - self.clock()) if self.last is not None else 0.0


class ServerSession:
    """One server. Every public method may be called by any number of tasks of one event loop."""

    def __init__(self, target: Target, start_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.target = target
        self.circuit = Circuit(clock)
        self.starts = 0
        """How often it was started."""
        self._start_seconds = start_seconds
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Connected] | None = None
        self._stop = asyncio.Event()
        self._started_at = 0.0
        self._closed = False
        self._calls: dict[int, int] = {}
        self._given_up: dict[int, asyncio.Event] = {}

    @property
    def connected(self) -> Connected | None:
        """The server, when it is ready."""
        ready = self._ready
        return ready.result() if ready is not None and ready.done() and not ready.cancelled() and ready.exception() is None else None

    @property
    def starting(self) -> bool:
        return self._ready is not None and not self._ready.done()

    @property
    def share_of_start(self) -> float:
        """How much of the time for its start has gone, 0 to 1; 1 when it does not start."""
        return min(1.0, (time.monotonic() - self._started_at) / self._start_seconds) if self.starting else 1.0

    async def ready(self, seconds: float) -> Connected:
        """The server, started when it does not run. Waits at most so long; the start goes on without those who leave.

        Raises:
            ExpertError: why it cannot be started, `timeout` when it is still starting.
        """
        if self._closed:
            raise ExpertError(FailureClass.UNAVAILABLE, "The router is closing.")
        if self._ready is None:
            self.circuit.check()
            self._start()
        assert self._ready is not None
        if self._ready.done():
            return self._ready.result()  # a warm call takes no turn of the event loop for it
        done, _ = await asyncio.wait((self._ready,), timeout=max(0.0, seconds))
        if not done:
            raise ExpertError(
                FailureClass.TIMEOUT,
                f"It is still starting, which may take up to {self._start_seconds:g} s; it was waited for {seconds:.1f} s.",
                remedy="Ask again, or raise its cap_ms and budget.latency_ms.",
            )
        return done.pop().result()

    async def call_tool(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> tuple[Reply, Connected]:
        """The result of one tool, within so many seconds, start and all.

        A session that the server has forgotten is opened anew, and the call made in the new one: the server has not looked at it before.

        Raises:
            RpcError: the server refused this call; that says nothing about the next.
            ExpertError: there is no answer.
        """
        until = time.monotonic() + seconds
        for renewed in (False, True):
            connected = await self.ready(until - time.monotonic())
            left = max(0.001, until - time.monotonic())
            self._calls[id(connected)] = self._calls.get(id(connected), 0) + 1
            try:
                reply = await self._ask(connected, tool, arguments, left)
            except SessionLost:
                self._drop(connected)
                if renewed:
                    raise ExpertError(FailureClass.PROTOCOL_ERROR, "The server forgets each session at once.") from None
            except RpcError:
                self.circuit.close()
                raise
            except ExpertError as error:
                if error.failure in CONDEMNING and self._is_current(connected) and self.circuit.count(error):
                    self._drop(connected)
                raise
            else:
                self.circuit.close()
                return reply, connected
            finally:
                self._leave(connected)
        raise AssertionError("unreachable")

    async def _ask(self, connected: Connected, tool: str, arguments: Mapping[str, Any], seconds: float) -> Reply:
        """One call, watched. It carries the trace in `_meta`, under the names that SEP-414 keeps for it."""
        with current().remote(RemoteCall(tool, self.target.transport, self.target.url, connected.protocol)) as watch:
            params: dict[str, Any] = {"name": tool, "arguments": dict(arguments)}
            if trace := trace_headers():
                params["_meta"] = dict(trace)
            reply = await connected.link.call("tools/call", params, seconds)
            if reply.result.get("isError") is True:
                watch.tell("tool_error")
            return reply

    async def aclose(self) -> None:
        """Stop the server, bounded by what the transports take to close. Safe to call twice."""
        self._closed = True
        for stop in (self._stop, *self._given_up.values()):
            stop.set()
        owner = self._owner
        if owner is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(owner)

    @property
    def closed(self) -> bool:
        return self._closed

    # ------------------------------------------------------------------ the owner

    def _start(self) -> None:
        self.starts += 1
        self._started_at = time.monotonic()
        self._ready = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        before = self._owner
        self._owner = asyncio.create_task(self._own(self._ready, self._stop, before), name=f"owner of {self.target!r}")

    async def _own(self, ready: asyncio.Future[Connected], stop: asyncio.Event, before: asyncio.Task[None] | None) -> None:
        """The whole life of one connection."""
        error: ExpertError | None = ExpertError(FailureClass.INTERNAL, "The server's owner ended unexpectedly.")
        try:
            if before is not None:
                await asyncio.wait((before,))
            error = await self._live(ready, stop)
        except ExpertError as failed:
            error = failed
        finally:
            if self._ready is ready:
                self._ready = None
            if error is not None and not stop.is_set():
                self.circuit.open(error)
            if not ready.done():
                ready.set_exception(error or ExpertError(FailureClass.UNAVAILABLE, "It was stopped while it was starting."))
                ready.exception()  # seen, also when nobody waits any more

    async def _live(self, ready: asyncio.Future[Connected], stop: asyncio.Event) -> ExpertError | None:
        """Open, shake hands, and stay until the end. An error is returned, because a task group would wrap it."""
        stopping = asyncio.ensure_future(stop.wait())
        try:
            async with OPENERS[self.target.transport](self.target) as link:
                shaking = asyncio.ensure_future(shake_hands(link, self._start_seconds))
                try:
                    await asyncio.wait((shaking, stopping), return_when=asyncio.FIRST_COMPLETED)
                    if not shaking.done():
                        return None
                    ready.set_result(shaking.result())
                except ExpertError as error:
                    return error
                except SessionLost:
                    return ExpertError(FailureClass.PROTOCOL_ERROR, "The server forgot the session while it was being opened.")
                finally:
                    shaking.cancel()
                ending = asyncio.ensure_future(link.ended())
                try:
                    await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
                    return ExpertError(FailureClass.CRASHED, f"{ending.result()}.") if ending.done() else None
                finally:
                    ending.cancel()
        finally:
            stopping.cancel()

    def _is_current(self, connected: Connected) -> bool:
        return self.connected is connected

    def _drop(self, connected: Connected) -> None:
        """Give a connection up: the next call opens another, after this one has been left by the calls that still wait and is closed."""
        if self._is_current(connected):
            self._ready = None
            self._given_up[id(connected)] = self._stop

    def _leave(self, connected: Connected) -> None:
        """A call is over; the last one of a connection that was given up lets it close."""
        name = id(connected)
        self._calls[name] -= 1
        if not self._calls[name]:
            del self._calls[name]
            if (stop := self._given_up.pop(name, None)) is not None:
                stop.set()


class ServerPool:
    """The servers of one router: experts with the same target share one server."""

    def __init__(self) -> None:
        self._sessions: dict[Target, ServerSession] = {}

    def session(self, target: Target, start_seconds: float) -> ServerSession:
        """The server at a target, not started yet when nobody has asked it."""
        found = self._sessions.get(target)
        if found is None or found.closed:
            found = self._sessions[target] = ServerSession(target, start_seconds)
        return found
