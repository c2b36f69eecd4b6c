"""What can be read over plain HTTP beside MCP: the experiments. It stands behind the same guards as everything else."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from search_router.router_api import RouterApi
from search_router.wire_text import encodable_json

EXPERIMENTS_PATH: Final = "/api/experiments"
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def api_routes(router: RouterApi) -> list[Route]:
    """GET /api/experiments?paper_slug=…: one experiment as JSON; without a slug the configured one. 400 for what is no slug."""

    async def tell_experiments(request: Request) -> JSONResponse:
        unknown = set(request.query_params) - {"paper_slug"}
        slug = request.query_params.get("paper_slug")
        if unknown or (slug is not None and not _SLUG.fullmatch(slug)):
            remedy = "Give paper_slug alone: 1 to 100 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit."
            return JSONResponse({"error": "invalid-request", "remedy": remedy}, status_code=400)
        answer = await router.experiments(slug)
        return JSONResponse(encodable_json(answer.model_dump(mode="json")), headers={"Cache-Control": "no-store"})

    return [Route(EXPERIMENTS_PATH, tell_experiments, methods=["GET"])]
