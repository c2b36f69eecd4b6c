"""Everything that the console shows, as a JSON API with an OpenAPI 3.1 document of itself at /api/openapi.json."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from search_router import __version__
from search_router.answers import ExperimentAnswer
from search_router.console.readings import Readings
from search_router.console.receipt_list import ReceiptFilter
from search_router.console.records import (
    Comparison,
    Configuration,
    Experts,
    Overview,
    ReceiptPage,
    ReceiptView,
    Refusal,
    Repositories,
    Slugs,
)
from search_router.console.shown import RECEIPT_ID
from search_router.errors import ReceiptNotFound, SearchRouterError
from search_router.schema import Answer, Intent, SearchRequest, Status
from search_router.wire_text import encodable_json

API: Final = "/api/"
OPENAPI_PATH: Final = "/api/openapi.json"
WORD: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NUMBER: Final = "[1-9][0-9]{0,2}"
MAX_BODY: Final = 64 * 1024


class BadParameter(Exception):
    """A parameter that the endpoint does not have, or not in this form."""


class TooLarge(Exception):
    """A body of more than MAX_BODY bytes."""


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


def receipt_filter(values: Mapping[str, str]) -> ReceiptFilter:
    """The filter that query parameters ask for."""
    return ReceiptFilter(values.get("status"), values.get("intent"), values.get("operation"), values.get("expert"))


async def _overview(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return await readings.overview()


async def _receipts(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return await readings.receipts(receipt_filter(values), int(values.get("limit", "50")), values.get("before"))


async def _receipt(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return await readings.receipt(values["receipt_id"])


async def _experts(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return await readings.experts()


async def _repositories(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return await readings.repositories()


async def _experiment(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return (await readings.experiment(values.get("paper_slug")))[0]


async def _slugs(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return await readings.slugs()


async def _compare(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return await readings.compare(values.get("paper_slug"), values["a"], values["b"])


async def _configuration(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return readings.configuration()


async def _search(readings: Readings, _: Mapping[str, str], body: Any) -> BaseModel:
    answer, _text = await readings.search(body)
    return answer


FILTERS: Final = (
    Parameter("status", "|".join(s.value for s in Status), "only receipts with this status"),
    Parameter("intent", "|".join(i.value for i in Intent), "only receipts of this class of question"),
    Parameter("operation", "[a-z_]{1,40}", "only receipts of this operation, such as search or fetch"),
    Parameter("expert", WORD, "only receipts of requests that asked this expert"),
    Parameter("before", RECEIPT_ID, "only what is older than this receipt"),
)
SLUG: Final = Parameter("paper_slug", "[a-z0-9][a-z0-9._-]{0,99}", "which experiment; without it the configured one")
COMPARED: Final = (
    Parameter("a", "[0-9a-f]{8,64}", "the beginning of a configuration's hash", required=True),
    Parameter("b", "[0-9a-f]{8,64}", "the beginning of the other's", required=True),
)
ENDPOINTS: Final = (
    Endpoint("/api/overview", "The newest requests in numbers.", Overview, _overview),
    Endpoint(
        "/api/receipts",
        "Receipts, newest first.",
        ReceiptPage,
        _receipts,
        (*FILTERS, Parameter("limit", NUMBER, "at most so many, 1 to 999")),
    ),
    Endpoint(
        "/api/receipts/{receipt_id}",
        "One receipt with its verdict.",
        ReceiptView,
        _receipt,
        (Parameter("receipt_id", RECEIPT_ID, "log and number", "path"),),
    ),
    Endpoint("/api/experts", "Experts, health and projects.", Experts, _experts),
    Endpoint("/api/doctor/repos", "Coverage of every repository by the index.", Repositories, _repositories),
    Endpoint(
        "/api/experiments",
        "What the benchmark events of one paper slug add up to; without a slug of the configured one.",
        ExperimentAnswer,
        _experiment,
        (SLUG,),
    ),
    Endpoint("/api/experiments/slugs", "Every experiment that has events, most recent first.", Slugs, _slugs),
    Endpoint(
        "/api/experiments/comparison",
        "Two configurations of one experiment, arm by arm.",
        Comparison,
        _compare,
        (SLUG, *COMPARED),
    ),
    Endpoint("/api/config", "Every effective value and the layer that set it.", Configuration, _configuration),
    Endpoint("/api/search", "Ask a question, as the tool search_knowledge does. Leaves a receipt.", Answer, _search, body=SearchRequest),
)


def api_routes(readings: Readings) -> list[Route]:
    """The endpoints and their description."""
    document = openapi()

    async def describe(_: Request) -> Response:
        return JSONResponse(document)

    return [*(_route(endpoint, readings) for endpoint in ENDPOINTS), Route(OPENAPI_PATH, describe, methods=["GET"])]


def _route(endpoint: Endpoint, readings: Readings) -> Route:
    async def answer(request: Request) -> Response:
        try:
            values = read_parameters(endpoint.parameters, request)
            body = await _read_body(request) if endpoint.body is not None else None
        except BadParameter as error:
            return refuse(400, "invalid-request", str(error), f"{OPENAPI_PATH} describes the parameters.")
        except TooLarge:
            return refuse(413, "too-large", f"The body has more than {MAX_BODY} bytes.")
        try:
            found = await endpoint.call(readings, values, body)
        except SearchRouterError as error:
            return refuse(status_of(error), error.code, error.message, error.remedy)
        return JSONResponse(encodable_json(found.model_dump(mode="json", by_alias=True)))

    return Route(endpoint.path, answer, methods=[endpoint.method])


def read_parameters(parameters: Sequence[Parameter], request: Request) -> dict[str, str]:
    """The parameters that were given, each once and in its form. Empty ones of the query count as not given.

    Raises:
        BadParameter: an unknown name, a name given twice or missing, or a value of another form.
    """
    known = {p.name: p for p in parameters}
    given = [(k, v) for k, v in request.query_params.multi_items() if v]
    given += [(k, str(v)) for k, v in request.path_params.items()]
    values: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            raise BadParameter(f"There is no parameter {name[:80]!r} here.")
        if name in values:
            raise BadParameter(f"{name} is given twice.")
        if re.fullmatch(known[name].pattern, value) is None:
            raise BadParameter(f"{name} must look like {known[name].pattern}: {value[:80]!r} does not.")
        values[name] = value
    if missing := [p.name for p in parameters if p.required and p.name not in values]:
        raise BadParameter(f"{missing[0]} is missing.")
    return values


async def _read_body(request: Request) -> Any:
    """A JSON body. A form of another site cannot send this content type without asking first, so it is required."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadParameter("The content type must be application/json.")
    try:
        return json.loads(await bounded_body(request))
    except (ValueError, RecursionError) as error:
        raise BadParameter(f"The body is not JSON: {str(error)[:120]}.") from error


async def bounded_body(request: Request) -> bytes:
    """The whole body. Raises TooLarge as soon as it is too long."""
    parts: list[bytes] = []
    left = MAX_BODY
    async for part in request.stream():
        left -= len(part)
        if left < 0:
            raise TooLarge
        parts.append(part)
    return b"".join(parts)


def status_of(error: SearchRouterError) -> int:
    """The HTTP status of an error of the house: 404 for what is not there, else 503, because it can be mended and tried again."""
    return 404 if isinstance(error, ReceiptNotFound) else 503


def refuse(status: int, code: str, message: str, remedy: str = "") -> Response:
    """A refusal as JSON."""
    return JSONResponse(encodable_json(Refusal(error=code, message=message, remedy=remedy).model_dump(mode="json")), status_code=status)


def openapi() -> dict[str, Any]:
    """The description of the API: https://spec.openapis.org/oas/v3.1.1.html."""
    models = dict.fromkeys([*(e.answer for e in ENDPOINTS), *(e.body for e in ENDPOINTS if e.body), Refusal])
    pairs: list[tuple[type[BaseModel], Literal["serialization", "validation"]]] = [
        (m, "validation" if m is SearchRequest else "serialization") for m in models
    ]
    references, definitions = models_json_schema(pairs, ref_template="#/components/schemas/{model}")
    schema_of = {model: references[model, mode] for model, mode in pairs}
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
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
