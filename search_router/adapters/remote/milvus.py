"""A Milvus collection is an expert: a file of milvus-lite, or a cluster, by one client.

The client lives in a child (`milvus_worker`): it brings half a second of imports and its own threads, a milvus-lite database is locked for
as long as it is open, and a call that hangs in it can only be ended with its process. The child is started, shared, watched and stopped
like any other server over standard input and output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, cast

from search_router.adapters.remote.expert import State, Told
from search_router.adapters.remote.link import Target
from search_router.adapters.remote.records import Record, number
from search_router.adapters.remote.rpc import RpcError
from search_router.adapters.remote.session import ServerPool, ServerSession
from search_router.adapters.remote.surroundings import with_environment
from search_router.adapters.remote.template import fill
from search_router.config.remote import AnswerConfig, MilvusConfig
from search_router.config.vectors import VectorsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

WORKER = (sys.executable, "-P", "-m", "search_router.adapters.remote.milvus_worker")
TOOL = "search"
SHARE_OF_TIME = 0.9
"""The rest is for the child's own words about what went wrong."""
NO_EMBEDDER = frozenset({"lsa", "none"})


class MilvusAsker:
    """Asks one collection. `vectors` is the section of that name, for a block without an embedder of its own."""

    def __init__(self, config: MilvusConfig, pool: ServerPool, vectors: VectorsConfig | None = None) -> None:
        self._config = config
        self._vectors = config.vectors or vectors
        self._pool = pool
        self._session: ServerSession | None = None
        self._closed = False

    @property
    def transport(self) -> Literal["stdio"]:
        return "stdio"

    @property
    def templates(self) -> Any:
        return [self._config.uri, self._config.collection]

    @property
    def answer(self) -> AnswerConfig:
        config = self._config
        return AnswerConfig(form="json", line_base=config.line_base, end_exclusive=config.end_exclusive, min_score=config.min_score)

    async def ask(self, values: dict[str, Any], project: Project, seconds: float) -> Told:
        until = time.monotonic() + seconds
        arguments = self.arguments(values, seconds)
        session = self._ready_session()
        try:
            reply, _ = await session.call_tool(TOOL, arguments, until - time.monotonic())
        except RpcError as error:
            raise ExpertError(FailureClass.INTERNAL, f"Its own process refused the call: {error.message}") from error
        content = reply.result.get("structuredContent")
        told = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if reply.result.get("isError") is True:
            raise ExpertError(FailureClass(told["failure"]), told["message"], remedy=told["remedy"])
        rows = cast("list[Record]", told.get("rows", []))
        least = self._config.min_score
        kept = [row for row in rows if least is None or (score := number(row.get("score"))) is None or score >= least]
        return Told(kept, reply.cut, "milvus", told.get("version"))

    def arguments(self, values: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """What the child is asked: everything that it has to know, and names of variables in place of secrets.

        Raises:
            ExpertError: `unconfigured`: a variable of the uri is not set, or there is no embedder that could make the question's vector.
        """
        config = self._config
        embedder = self._vectors
        if config.asks == "vector" and (embedder is None or embedder.embedder in NO_EMBEDDER):
            which = f"vectors.embedder is {embedder.embedder}" if embedder else "none is configured"
            raise ExpertError(
                FailureClass.UNCONFIGURED,
                f"It needs the embedder that made the collection's vectors, and {which}, which gives no such vectors.",
                remedy='Set `vectors` in its block, or asks = "text" for a field that Milvus makes itself.',
            )
        fields = {name: there for name, there in config.fields.model_dump().items() if there}
        return {
            "uri": os.path.expanduser(str(fill(config.uri, with_environment(values, config.uri)))),  # noqa: PTH111 - may be no path
            "token_env": config.token_env,
            "database": config.database,
            "collection": str(fill(config.collection, values)),
            "vector_field": config.vector_field,
            "metric": config.metric,
            "question": values["question"],
            "vectors": embedder.model_dump(mode="json") if config.asks == "vector" and embedder else None,
            "filter": row_filter(config, values),
            "limit": values["limit"],
            "fields": fields,
            "seconds": round(seconds * SHARE_OF_TIME, 3),
            "idle_seconds": config.idle_ms / 1000,
        }

    def _ready_session(self) -> ServerSession:
        if self._closed:
            raise ExpertError(FailureClass.UNAVAILABLE, "The router is closing.")
        if self._session is None or self._session.closed:
            target = Target("stdio", argv=WORKER, cwd="/", inherit=None, max_bytes=self._config.max_bytes)
            self._session = self._pool.session(target, self._config.start_ms / 1000)
        return self._session

    @property
    def share_of_start(self) -> float:
        return self._session.share_of_start if self._session is not None else 1.0

    def state(self) -> State:
        session = self._session
        starts = str(session.starts if session is not None else 0)
        details = (("collection", self._config.collection), ("starts", starts), *self._about_embedder())
        if session is None or (session.circuit.last is None and session.connected is None):
            return State("is started by the first question", details=details)
        if session.connected is not None:
            return State("its process is running", details=details)
        error, left = session.circuit.last, session.circuit.next_try_in
        assert error is not None
        if left <= 0:
            return State(f"{error.message} It is tried again by the next question.", details=details)
        return State(
            f"{error.message} Next try in {left:.1f} s.", failure=error.failure, details=(*details, ("next_try_in_s", f"{left:.1f}"))
        )

    def _about_embedder(self) -> tuple[tuple[str, str], ...]:
        if self._config.asks == "text" or self._vectors is None:
            return ()
        where = f" at {self._vectors.url}" if self._vectors.allow_remote and self._vectors.url else ""
        return (("embedder", f"{self._vectors.embedder}{where}"),)

    async def aclose(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.aclose()


def row_filter(config: MilvusConfig, values: Mapping[str, Any]) -> str:
    """The boolean expression for one call, in Milvus' filter language; empty where every row will do. Pure.

    Values stand in it as string literals, so that nothing in a request can become syntax. A path is a prefix; `_` and `%`, which are
    wild there, let more rows through than were asked for, and the router leaves those out.
    """
    fields = config.fields
    parts: list[str] = [f"({config.filter})"] if config.filter else []
    if fields.project and values.get("projects"):
        parts.append(f"{fields.project} in [{', '.join(map(literal, values['projects']))}]")
    if fields.path and (prefix := str(values.get("path") or "").strip("/")):
        parts.append(f"{fields.path} like {literal(prefix + '%')}")
    if fields.language and values.get("language"):
        parts.append(f"{fields.language} == {literal(values['language'])}")
    return " and ".join(parts)


def literal(text: str) -> str:
    """A string literal of Milvus' filter language, whose escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False)
