"""What an endpoint of the API is, and the OpenAPI 3.1 document of some: https://spec.openapis.org/oas/v3.1.1.html."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from search_router import __version__
from search_router.console.readings import Readings
from search_router.console.records import Refusal
from search_router.schema import SearchRequest


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; the whole value must match `pattern`."""

    name: str
    pattern: str
    about: str
    place: Literal["query", "path"] = "query"
    required: bool = False


Call = Callable[[Readings, Mapping[str, str], Any], Awaitable[BaseModel]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path of the API, its parameters, and the model of its answer; `body` is the model of what is posted."""

    path: str
    about: str
    answer: type[BaseModel]
    call: Call
    parameters: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


def describe_api(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The description of these endpoints."""
    models = dict.fromkeys([*(e.answer for e in endpoints), *(e.body for e in endpoints if e.body), Refusal])
    pairs: list[tuple[type[BaseModel], Literal["serialization", "validation"]]] = [
        (m, "validation" if m is SearchRequest else "serialization") for m in models
    ]
    references, definitions = models_json_schema(pairs, ref_template="#/components/schemas/{model}")
    schema_of = {model: references[model, mode] for model, mode in pairs}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation: dict[str, Any] = {
            "summary": endpoint.about,
            "operationId": endpoint.path.removeprefix("/api/").replace("/", "_").replace("{", "").replace("}", ""),
            "parameters": [_describe(p) for p in endpoint.parameters],
            "responses": {
                "200": _content("The answer.", schema_of[endpoint.answer]),
                **{
                    code: _content(about, schema_of[Refusal])
                    for code, about in (
                        ("400", "A parameter or the body is wrong."),
                        ("401", "The bearer token is missing."),
                        ("404", "There is no such thing."),
                        ("408", "The body did not come in time."),
                        ("413", "The body is too large."),
                        ("429", "Too many requests."),
                        ("503", "It cannot be read at the moment."),
                    )
                },
                "403": _text("The Origin is foreign."),
                "421": _text("The Host is foreign."),
            },
        }
        if endpoint.body is not None:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema_of[endpoint.body]}}}
        paths[endpoint.path] = {endpoint.method.lower(): operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "search-router", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _describe(parameter: Parameter) -> dict[str, Any]:
    schema = {"type": "string", "pattern": f"^(?:{parameter.pattern})$"}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required or parameter.place == "path",
        "description": parameter.about,
        "schema": schema,
    }


def _text(about: str) -> dict[str, Any]:
    return {"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}}


def _content(about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
