"""Everything that the console shows, as a JSON API with an OpenAPI 3.1 document of itself at /api/openapi.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from search_router.answers import ExperimentAnswer
from search_router.console.bench_folders import RUN_ID, RunNotFound
from search_router.console.bench_reading import ARM as ARM_NAME
from search_router.console.bench_records import BenchComparison, BenchRuns, BenchRunView
from search_router.console.bench_shapes import FUSED
from search_router.console.openapi import Endpoint, Parameter, describe_api
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


async def _runs(readings: Readings, _: Mapping[str, str], __: Any) -> BaseModel:
    return await readings.bench.runs()


async def _run(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return await readings.bench.run(values["run_id"], values.get("arm"))


async def _compare_runs(readings: Readings, values: Mapping[str, str], _: Any) -> BaseModel:
    return await readings.bench.compare(values["a"], values["b"], values.get("arm", FUSED))


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
RUN: Final = Parameter("run_id", RUN_ID, "a run of the list", "path")
ARM: Final = Parameter("arm", ARM_NAME, "which arm; without it `fused`, the product as it is")
COMPARED_RUNS: Final = (
    Parameter("a", RUN_ID, "the run to compare with", required=True),
    Parameter("b", RUN_ID, "the run that is judged", required=True),
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
    Endpoint("/api/experiments/runs", "Results of `bench run`, newest first.", BenchRuns, _runs),
    Endpoint(
        "/api/experiments/runs/comparison",
        "What `bench compare` says of run B against run A.",
        BenchComparison,
        _compare_runs,
        (*COMPARED_RUNS, ARM),
    ),
    Endpoint("/api/experiments/runs/{run_id}", "One run, family by family.", BenchRunView, _run, (RUN, ARM)),
    Endpoint("/api/config", "Every effective value and the layer that set it.", Configuration, _configuration),
    Endpoint("/api/search", "Ask a question, as the tool search_knowledge does. Leaves a receipt.", Answer, _search, body=SearchRequest),
)


def api_routes(readings: Readings) -> list[Route]:
    """The endpoints and their description."""
    document = describe_api(ENDPOINTS)

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
    return 404 if isinstance(error, (ReceiptNotFound, RunNotFound)) else 503


def refuse(status: int, code: str, message: str, remedy: str = "") -> Response:
    """A refusal as JSON."""
    return JSONResponse(encodable_json(Refusal(error=code, message=message, remedy=remedy).model_dump(mode="json")), status_code=status)
