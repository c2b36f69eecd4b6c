"""The pages of benchmark runs: the list, one run family by family, and two runs against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from search_router.console import bench_charts as charts
from search_router.console.api import ARM, COMPARED_RUNS, RUN
from search_router.console.bench_reading import BenchReadings
from search_router.console.bench_shapes import FUSED
from search_router.console.openapi import Parameter

RUNS: Final = "/console/experiments/runs"
RUN_PARAMETERS: Final[tuple[Parameter, ...]] = (RUN, ARM)
COMPARISON_PARAMETERS: Final[tuple[Parameter, ...]] = (*COMPARED_RUNS, ARM)


class BenchPages:
    """What the templates `runs`, `run` and `run_comparison` need. Charts escape what they are given."""

    def __init__(self, readings: BenchReadings) -> None:
        self._readings = readings

    async def runs(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"told": await self._readings.runs()}

    async def run(self, values: Mapping[str, str]) -> dict[str, Any]:
        view = await self._readings.run(values["run_id"], values.get("arm"))
        plots = (charts.retrieval_plot, charts.selection_plot, charts.latency_plot, charts.arms_plot)
        retrieval, selection, latency, arms = (Markup(draw(view)) for draw in plots)  # noqa: S704 - charts escape
        return {"view": view, "retrieval": retrieval, "selection": selection, "latency": latency, "arms": arms}

    async def comparison(self, values: Mapping[str, str]) -> dict[str, Any]:
        told = await self._readings.compare(values["a"], values["b"], values.get("arm", FUSED))
        return {"told": told, "changes": Markup(charts.changes_plot(told))}  # noqa: S704 - charts escape
