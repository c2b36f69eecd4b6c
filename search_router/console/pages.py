"""The pages: the readings through templates that escape everything. No script, no style but the one file."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from search_router import __version__
from search_router.answers import ExperimentArm, RegisteredExpert
from search_router.console import charts
from search_router.console.api import (
    COMPARED,
    FILTERS,
    SLUG,
    BadParameter,
    TooLarge,
    bounded_body,
    read_parameters,
    receipt_filter,
    status_of,
)
from search_router.console.bench_pages import COMPARISON_PARAMETERS, RUN_PARAMETERS, RUNS, BenchPages
from search_router.console.formats import FORMATS, clock, duration
from search_router.console.guard import LOGINS_A_MINUTE, Limiter, caller_of
from search_router.console.numbers import BUCKETS_MS
from search_router.console.openapi import Parameter
from search_router.console.readings import Readings
from search_router.console.records import Comparison, Distribution
from search_router.console.session import COOKIE, SECONDS, Sessions
from search_router.console.shown import RECEIPT_ID, Shown, show_predicate
from search_router.errors import SearchRouterError
from search_router.schema import Intent, Status
from search_router.wire_text import encodable

HOME: Final = "/console/"
LOGIN: Final = "/console/login"
STYLE: Final = "/console/console.css"
ICON: Final = "/console/icon.svg"
OPEN_PATHS: Final = frozenset({LOGIN, STYLE, ICON})
"""What is served without a login."""
NAVIGATION: Final = (
    (HOME, "Overview"),
    ("/console/search", "Search"),
    ("/console/receipts", "Receipts"),
    ("/console/experts", "Experts"),
    ("/console/repositories", "Repositories"),
    ("/console/experiments", "Experiments"),
    ("/console/configuration", "Configuration"),
)
_RECEIPT: Final = (Parameter("receipt_id", RECEIPT_ID, "", "path"),)
_EXPERIMENT: Final = (SLUG, *(replace(p, required=False) for p in COMPARED))
STATEMENT_CHARACTERS: Final = 200_000
FORM: Final = "application/x-www-form-urlencoded"
SUMMED: Final = frozenset({"fanout"})
"""Stages that are the expert calls, which the timeline shows one by one."""


def next_try(expert: RegisteredExpert, read_us: int) -> int | None:
    """When a suspended expert is tried again, as Unix microseconds; None for one that is not suspended."""
    try:
        left = float(expert.details["next_try_in_s"])
    except (KeyError, ValueError):
        return None
    return read_us + round(left * 1e6) if 0 < left < 1e6 else None


def distribution_chart(distribution: Distribution) -> Markup:
    """The histogram of one distribution."""
    labels = [*(f"up to {edge} ms" for edge in BUCKETS_MS), f"over {BUCKETS_MS[-1]} ms"]
    title = f"Latencies of {distribution.name}: median {duration(distribution.p50_ms)}, 95th percentile {duration(distribution.p95_ms)}"
    return Markup(charts.bars([b.count for b in distribution.buckets], labels, encodable(title)))  # noqa: S704 - charts escape


def receipt_timeline(shown: Shown) -> Markup:
    """The fan-out of one request: its stages one after the other, and the expert calls side by side where the fan-out stands."""
    spans: list[charts.Span] = []
    at = 0.0
    for stage in shown.stages:
        if "." in stage.name:
            continue  # inside an expert's own call
        took = stage.time_us / 1000
        if stage.name in SUMMED:
            spans += [
                charts.Span(e.expert, at, e.latency_us / 1000, e.status, f"{e.expert} {e.status}, {e.latency_us} µs: {e.reason}")
                for e in shown.asked
                if e.latency_us
            ]
        elif stage.active:
            spans.append(charts.Span(stage.name, at, took, "stage", f"{stage.name} {took:g} ms, {stage.came_in} in, {stage.went_out} out"))
        at += took
    whole = max([at, *(s.begin_ms + s.took_ms for s in spans)], default=1.0)
    return Markup(charts.timeline(spans, whole, "Timeline of the request"))  # noqa: S704 - charts escape


def make_templates() -> jinja2.Environment:
    """The templates, escaping on; a name that is not there is a mistake of ours and fails."""
    loader = jinja2.PackageLoader("search_router.console", "templates")
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(FORMATS, chart=distribution_chart, text=encodable)  # pyright: ignore[reportUnknownMemberType] - jinja2 leaves its tables untyped
    made.globals.update(navigation=NAVIGATION, version=__version__, style=STYLE, icon=ICON, login_path=LOGIN, next_try=next_try)  # pyright: ignore[reportUnknownMemberType] - jinja2 leaves its tables untyped
    return made


def _pairs(compared: Comparison | None) -> list[tuple[str, ExperimentArm | None, ExperimentArm | None]]:
    """(arm, its numbers with A, with B), the router first."""
    if compared is None:
        return []
    a, b = ({arm.arm: arm for arm in arms} for arms in (compared.arms_a, compared.arms_b))
    return [(name, a.get(name), b.get(name)) for name in dict.fromkeys([*a, *b])]


class Pages:
    """The pages over one principal's readings."""

    def __init__(self, readings: Readings, sessions: Sessions) -> None:
        self._readings = readings
        self._sessions = sessions
        self._bench = BenchPages(readings.bench)
        self._templates = make_templates()
        self._logins = Limiter(LOGINS_A_MINUTE)
        static = files("search_router.console").joinpath("static")
        self._style, self._icon = static.joinpath("console.css").read_bytes(), static.joinpath("icon.svg").read_bytes()

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self._home, methods=["GET"]),
            Route(HOME.rstrip("/"), self._home, methods=["GET"]),
            self._page(HOME, "overview", self._overview),
            self._page("/console/receipts", "receipts", self._receipts, (*FILTERS,)),
            self._page("/console/receipts/{receipt_id}", "receipt", self._receipt, _RECEIPT),
            Route("/console/receipts/{receipt_id}/envelope.json", self._envelope, methods=["GET"]),
            self._page("/console/experts", "experts", self._experts),
            self._page("/console/repositories", "repositories", self._repositories),
            self._page("/console/experiments", "experiments", self._experiments, _EXPERIMENT),
            self._page(RUNS, "runs", self._bench.runs),
            self._page(f"{RUNS}/comparison", "run_comparison", self._bench.comparison, COMPARISON_PARAMETERS),
            self._page(f"{RUNS}/{{run_id}}", "run", self._bench.run, RUN_PARAMETERS),
            self._page("/console/configuration", "configuration", self._configuration),
            self._page("/console/search", "search", self._blank_search),
            Route("/console/search", self._search, methods=["POST"]),
            Route(LOGIN, self._login, methods=["GET", "POST"]),
            Route("/console/logout", self._logout, methods=["POST"]),
            Route(STYLE, self._css, methods=["GET"]),
            Route(ICON, self._picture, methods=["GET"]),
        ]

    def _page(
        self, path: str, template: str, read: Callable[[Mapping[str, str]], Awaitable[dict[str, Any]]], known: tuple[Parameter, ...] = ()
    ) -> Route:
        async def show(request: Request) -> Response:
            try:
                values = read_parameters(known, request)
                told = await read(values)
            except BadParameter as error:
                return self._not_understood(request, error)
            except SearchRouterError as error:
                return self._failed(request, error)
            return self._render(request, template, told)

        return Route(path, show, methods=["GET"])

    def _render(self, request: Request, template: str, told: Mapping[str, Any], status: int = 200) -> Response:
        shown = {
            "here": request.url.path,
            "form_token": self._sessions.form_token(request.headers),
            "login_needed": self._sessions.login_needed,
            **told,
        }
        return HTMLResponse(encodable(self._templates.get_template(f"{template}.html").render(shown)), status_code=status)

    async def _home(self, _: Request) -> Response:
        return RedirectResponse(HOME, status_code=303)

    async def _css(self, _: Request) -> Response:
        return Response(self._style, media_type="text/css", headers={"Cache-Control": "max-age=300"})

    async def _picture(self, _: Request) -> Response:
        return Response(self._icon, media_type="image/svg+xml", headers={"Cache-Control": "max-age=300"})

    async def _overview(self, _: Mapping[str, str]) -> dict[str, Any]:
        overview = await self._readings.overview()
        hours = [clock(int(c.name) * 1_000_000)[11:16] for c in overview.per_hour]
        chart = charts.bars([c.count for c in overview.per_hour], hours, "Requests of each of the last 24 hours (UTC)")
        return {"overview": overview, "hours": Markup(chart)}  # noqa: S704 - charts escape

    async def _receipts(self, values: Mapping[str, str]) -> dict[str, Any]:
        page = await self._readings.receipts(receipt_filter(values), before=values.get("before"))
        return {"page": page, "values": values, "statuses": [s.value for s in Status], "intents": [i.value for i in Intent]}

    async def _receipt(self, values: Mapping[str, str]) -> dict[str, Any]:
        view = await self._readings.receipt(values["receipt_id"])
        shown = show_predicate(view.statement.get("predicate"))
        statement = json.dumps(view.statement, indent=1, ensure_ascii=False)
        cut = len(statement) > STATEMENT_CHARACTERS
        told = {"view": view, "shown": shown, "timeline": receipt_timeline(shown), "statement": statement[:STATEMENT_CHARACTERS]}
        return {**told, "cut": cut}

    async def _envelope(self, request: Request) -> Response:
        try:
            values = read_parameters(_RECEIPT, request)
            envelope = await self._readings.envelope(values["receipt_id"])
        except BadParameter as error:
            return self._not_understood(request, error)
        except SearchRouterError as error:
            return self._failed(request, error)
        name = f"receipt-{values['receipt_id'].replace(':', '-')}.dsse.json"
        return Response(envelope, media_type="application/json", headers={"Content-Disposition": f'attachment; filename="{name}"'})

    async def _experts(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"told": await self._readings.experts()}

    async def _repositories(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"told": await self._readings.repositories()}

    async def _experiments(self, values: Mapping[str, str]) -> dict[str, Any]:
        slug, a, b = values.get("paper_slug"), values.get("a"), values.get("b")
        told, compared = await self._readings.experiment(slug, (a, b) if a and b else None)
        p95 = charts.bars([x.p95_ms for x in told.arms], [x.arm for x in told.arms], "95th percentile of each arm in milliseconds")
        return {
            "told": told,
            "slugs": (await self._readings.slugs()).slugs,
            "pairs": _pairs(compared),
            "a": a or "",
            "b": b or "",
            "chart": Markup(p95),  # noqa: S704 - charts escape
        }

    async def _configuration(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"told": self._readings.configuration()}

    async def _blank_search(self, _: Mapping[str, str]) -> dict[str, Any]:
        return self._asked({})

    def _asked(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The search form as it was sent, without an answer."""
        chosen = {name: form.get(name, "") for name in ("question", "intent", "project", "limit")}
        return {**chosen, "intents": [i.value for i in Intent], "projects": self._readings.project_ids, "answer": None, "text": ""}

    async def _search(self, request: Request) -> Response:
        form = await self._form(request)
        if form is None:
            return self._forged(request)
        raw: dict[str, Any] = {"question": form.get("question", "")}
        if form.get("intent"):
            raw["intent"] = form["intent"]
        if form.get("project"):
            raw["scope"] = {"project": form["project"]}
        if limit := form.get("limit"):
            raw["limit"] = int(limit) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else limit
        try:
            answer, text = await self._readings.search(raw)
        except SearchRouterError as error:
            return self._failed(request, error)
        return self._render(request, "search", {**self._asked(form), "answer": answer, "text": text})

    async def _login(self, request: Request) -> Response:
        if not self._sessions.login_needed:
            return RedirectResponse(HOME, status_code=303)
        if request.method == "GET":
            return self._render(request, "login", {"wrong": ""})
        if not self._logins.admits(caller_of(request.scope)):
            refusal = self._render(request, "login", {"wrong": f"More than {LOGINS_A_MINUTE} tries a minute. Wait and try again."}, 429)
            refusal.headers["Retry-After"] = str(self._logins.retry_after(caller_of(request.scope)))
            return refusal
        form = await self._form(request)
        if form is None:
            return self._forged(request)
        if not self._sessions.is_token(form.get("token", "")):
            return self._render(request, "login", {"wrong": "That is not the token of this server."}, 401)
        answer = RedirectResponse(HOME, status_code=303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, self._sessions.open(), max_age=SECONDS, httponly=True, samesite="strict", secure=secure)
        return answer

    async def _logout(self, request: Request) -> Response:
        if await self._form(request) is None:
            return self._forged(request)
        self._sessions.end(request.headers)
        answer = RedirectResponse(LOGIN, status_code=303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    async def _form(self, request: Request) -> dict[str, str] | None:
        """The fields of a form that we made for this caller; None for any other."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return None
        try:
            body = (await bounded_body(request)).decode("ascii")
            fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=20, errors="surrogateescape"))
        except (TooLarge, ValueError):
            return None
        return fields if self._sessions.is_form_token(request.headers, fields.get("form_token", "")) else None

    def _failed(self, request: Request, error: SearchRouterError) -> Response:
        """A page about an error of the house."""
        told = {"title": error.code, "message": error.message, "remedy": error.remedy}
        return self._render(request, "problem", told, status_of(error))

    def problem(self, request: Request, status: int, title: str, message: str) -> Response:
        """A page about a request that no page takes."""
        return self._render(request, "problem", {"title": title, "message": message, "remedy": ""}, status)

    def _not_understood(self, request: Request, error: BadParameter) -> Response:
        return self._render(request, "problem", {"title": "Not understood", "message": str(error), "remedy": ""}, 400)

    def _forged(self, request: Request) -> Response:
        told = {
            "title": "Form expired",
            "message": "This form was not made for this session.",
            "remedy": "Open the page again and send it from there.",
        }
        return self._render(request, "problem", told, 403)
