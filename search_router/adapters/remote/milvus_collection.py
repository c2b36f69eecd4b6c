"""Reads collections with pymilvus: connections that are kept, what a collection has, and one search. Blocks.

Runs in a child (see `milvus_worker`), because of what pymilvus and milvus-lite bring with them. The filter and the names of fields come
from the configuration; a token comes from this process' environment, and is in no error.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ConfigDict

from search_router.adapters.local.embed_choice import load_embedder
from search_router.adapters.local.embed_protocol import Embedder
from search_router.adapters.remote.milvus_failures import milvus_failures
from search_router.config.vectors import VectorsConfig
from search_router.errors import ExpertError, FailureClass

LITE_SUFFIX = ".db"
LITE_VERSION = "milvus_lite"
INSTALL = "pip install 'search-router[milvus]'"


class Asked(BaseModel):
    """One search. `vectors` is the embedder's configuration; without it, the question itself is sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str
    token_env: str
    database: str
    collection: str
    vector_field: str
    metric: str
    question: str
    vectors: VectorsConfig | None
    filter: str
    limit: int
    fields: dict[str, str]
    seconds: float
    idle_seconds: float


class Found(NamedTuple):
    """Rows with the names that the router knows, best first, each with its `score`; and the server's version."""

    rows: list[dict[str, Any]]
    version: str


class Shape(NamedTuple):
    """What one collection has: the field that is searched, its dimensions (0: not told), its metric, and its other fields."""

    vector_field: str
    dimensions: int
    metric: str
    fields: frozenset[str]
    dynamic: bool


@dataclass
class Place:
    """One open connection."""

    client: Any
    version: str
    used: float = 0.0
    idle_seconds: float = 10.0
    users: int = 0
    shapes: dict[tuple[str, str], Shape] = field(default_factory=dict[tuple[str, str], Shape])
    """By collection and configured field."""


class Collections:
    """Connections and embedders of one process. Any number of threads may search at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._makers: dict[object, threading.Lock] = {}
        """One for each thing that is made once: a server that hangs holds up nobody but who asks it."""
        self._places: dict[tuple[str, str, str], Place] = {}
        self._embedders: dict[str, Embedder] = {}

    def search(self, asked: Asked) -> Found:
        """The nearest rows.

        Raises:
            ExpertError: `unconfigured`: a package, field, metric, token or embedder is missing or does not fit; `index-missing`: there is
                no such database or collection; `busy`: another process has the database open; `unavailable`, `timeout`, `rejected`.
        """
        until = time.monotonic() + asked.seconds
        query: Any = asked.question if asked.vectors is None else self._embed(asked.vectors, asked.question)
        with milvus_failures(asked.collection, asked.token_env, asked.seconds):
            place = self._enter(asked, until)
            found: Found | None = None
            try:
                found = self._search(place, asked, query, until)
                return found
            finally:
                if found is None:
                    place.shapes.pop((asked.collection, asked.vector_field), None)  # it may have been made anew
                with self._lock:
                    place.users -= 1
                    place.used = time.monotonic()

    def release_idle(self) -> None:
        """Let go of milvus-lite databases that nobody has asked for a while, so that who fills them can open them."""
        now = time.monotonic()
        with self._lock:
            idle = [key for key, p in self._places.items() if is_lite(key[0]) and not p.users and now - p.used > p.idle_seconds]
        for key in idle:
            with self._maker(key):
                with self._lock:
                    place = self._places.get(key)
                    if place is None or place.users:
                        continue
                    del self._places[key]
                place.client.close()
                _release_lite(key[0])

    def _search(self, place: Place, asked: Asked, query: Any, until: float) -> Found:
        shape = place.shapes.get((asked.collection, asked.vector_field))
        if shape is None:
            shape = read_shape(place.client, asked.collection, asked.vector_field, _left(until))
            if place.version.startswith(LITE_VERSION):  # opened with everything released, and nobody else could load it
                place.client.load_collection(asked.collection, timeout=_left(until))
            place.shapes[asked.collection, asked.vector_field] = shape
        check_shape(shape, asked, None if isinstance(query, str) else len(query))
        wanted = [name for name in asked.fields.values() if shape.dynamic or name in shape.fields]
        (rows,) = place.client.search(
            asked.collection,
            data=[query],
            anns_field=shape.vector_field,
            filter=asked.filter,
            limit=asked.limit,
            output_fields=wanted,
            search_params={"metric_type": shape.metric} if shape.metric else {},
            timeout=_left(until),
        )
        sign = -1.0 if shape.metric == "L2" else 1.0
        return Found([_row(cast("Mapping[str, Any]", row), asked.fields, sign) for row in rows], place.version)

    def _enter(self, asked: Asked, until: float) -> Place:
        """The connection for a search, opened when there is none. A milvus-lite database can be open once."""
        key = (asked.uri, asked.database, asked.token_env)
        with self._maker(key):
            with self._lock:
                place = self._places.get(key)
                if place is not None:
                    place.users += 1  # before it can be let go of
            if place is None:
                client = open_client(asked, _left(until))
                place = Place(client, str(client.get_server_version(timeout=_left(until))), users=1)
                with self._lock:
                    self._places[key] = place
        place.idle_seconds = asked.idle_seconds
        return place

    def _embed(self, settings: VectorsConfig, question: str) -> list[float]:
        key = settings.model_dump_json()
        with self._maker(key):
            embedder = self._embedders.get(key)
            if embedder is None:
                embedder = self._embedders[key] = load_embedder(settings)
        return [float(number) for number in embedder.embed_query(question)]

    def _maker(self, key: object) -> threading.Lock:
        with self._lock:
            return self._makers.setdefault(key, threading.Lock())


def is_lite(uri: str) -> bool:
    """Whether it is a file of milvus-lite, by pymilvus' own rule."""
    return uri.endswith(LITE_SUFFIX) and "://" not in uri


def open_client(asked: Asked, seconds: float) -> Any:
    """A connected client. A database that is not there is `index-missing`: the client would make an empty one."""
    if is_lite(asked.uri):
        if not Path(asked.uri).exists():
            raise ExpertError(FailureClass.INDEX_MISSING, f"There is no database {asked.uri}.", remedy="Make it, or set `uri`.")
        if importlib.util.find_spec("milvus_lite") is None:
            raise ExpertError(FailureClass.UNCONFIGURED, "The package milvus-lite is not installed.", remedy=f"Run {INSTALL}.")
    try:
        pymilvus: Any = importlib.import_module("pymilvus")
    except ImportError as error:
        raise ExpertError(FailureClass.UNCONFIGURED, "The package pymilvus is not installed.", remedy=f"Run {INSTALL}.") from error
    token = os.environ.get(asked.token_env, "") if asked.token_env else ""
    if asked.token_env and not token:
        raise ExpertError(FailureClass.UNCONFIGURED, f"The variable {asked.token_env} holds no token.", remedy=f"Set {asked.token_env}.")
    return pymilvus.MilvusClient(asked.uri, token=token, db_name=asked.database, timeout=seconds)


def _release_lite(uri: str) -> None:
    manager: Any = importlib.import_module("milvus_lite.server_manager")
    manager.server_manager_instance.release_server(uri)


def read_shape(client: Any, collection: str, wanted: str, seconds: float) -> Shape:
    """What a collection has. Raises ExpertError `unconfigured` when it does not say by itself which field is to be searched."""
    about: dict[str, Any] = client.describe_collection(collection, timeout=seconds)
    fields: list[dict[str, Any]] = about["fields"]
    vectors = [each for each in fields if str(getattr(each["type"], "name", each["type"])).endswith("_VECTOR")]
    chosen = [each for each in vectors if each["name"] == wanted] if wanted else vectors
    if len(chosen) != 1:
        names = ", ".join(each["name"] for each in vectors) or "none"
        which = f"no vector field {wanted!r}" if wanted else "not exactly one vector field"
        raise ExpertError(
            FailureClass.UNCONFIGURED, f"The collection {collection} has {which}; it has {names}.", remedy="Set `vector_field`."
        )
    name = chosen[0]["name"]
    metric = ""
    for index in client.list_indexes(collection, field_name=name, timeout=seconds):
        told: dict[str, Any] = client.describe_index(collection, index, timeout=seconds) or {}
        if told.get("field_name") == name:
            metric = str(told.get("metric_type") or "")
    dimensions = int(chosen[0].get("params", {}).get("dim") or 0)
    return Shape(name, dimensions, metric, frozenset(each["name"] for each in fields), bool(about.get("enable_dynamic_field")))


def check_shape(shape: Shape, asked: Asked, dimensions: int | None) -> None:
    """Whether a collection can be asked as configured. Raises ExpertError `unconfigured` that says what does not fit. Pure."""
    missing = [name for name in asked.fields.values() if name not in shape.fields] if not shape.dynamic else []
    if missing:
        there = ", ".join(sorted(shape.fields - {shape.vector_field}))
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"The collection {asked.collection} has no field {', '.join(missing)}; it has {there}.",
            remedy="Name its fields in `fields`, with an empty name for what it does not have.",
        )
    if asked.metric and shape.metric and asked.metric != shape.metric:
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"Its field {shape.vector_field} is indexed with {shape.metric}, and {asked.metric} is configured.",
            remedy="Correct `metric`.",
        )
    if dimensions is not None and shape.dimensions and dimensions != shape.dimensions:
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"The embedder makes {dimensions} dimensions, and {shape.vector_field} has {shape.dimensions}.",
            remedy="Configure the embedder that made the collection.",
        )


def _row(row: Mapping[str, Any], fields: Mapping[str, str], sign: float) -> dict[str, Any]:
    entity = cast("Mapping[str, Any]", row.get("entity") or {})
    values = {name: entity.get(there) for name, there in fields.items()}
    kept = {name: value for name, value in values.items() if isinstance(value, str | int | float)}
    return {**kept, "score": sign * float(row["distance"])}


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise ExpertError(FailureClass.TIMEOUT, "The time was over before the collection was asked.")
    return left


def answer_of(found: Found) -> dict[str, Any]:
    """What is told of a search, as an MCP tool's result."""
    told = {"rows": found.rows, "version": found.version}
    return {"content": [{"type": "text", "text": json.dumps(told, ensure_ascii=False)}], "structuredContent": told, "isError": False}
