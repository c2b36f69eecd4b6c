"""What weights that were fitted to the questions would get on questions they were not fitted to, against the shipped ones.

Leave one repository (or one language) out, fit on the rest by coordinate search, score what was left out; all folds together are the
out-of-fold figure. Everything is judged on pools of candidates, see `pools`; dampings stay as they are.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from search_router.benchmark.arms import read_weights
from search_router.benchmark.asking import Arm, ask_everything
from search_router.benchmark.pools import Floats, Pools
from search_router.benchmark.quality import Data
from search_router.benchmark.report import circumstances, write_line, write_table

POOL: Final = 200
FACTORS: Final = (0.0, 0.5, 0.75, 1.35, 2.0)
FROM_NOTHING: Final = (0.1, 0.3)
"""Values tried for a weight that is zero."""
ROUNDS: Final = 2

Mask = npt.NDArray[np.bool_]


class Judge:
    """NDCG@10 of each question by weights; asked again for the same weights, it remembers."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._known: dict[tuple[float, ...], Floats] = {}

    def __call__(self, weights: Mapping[str, float]) -> Floats:
        key = tuple(weights[name] for name in self._pools.names)
        if key not in self._known:
            self._known[key] = self._pools.ndcg(weights)
        return self._known[key]


def fit(judge: Judge, start: Mapping[str, float], train: Mask) -> dict[str, float]:
    """Coordinate search: each weight in turn takes the value with the best mean on the training questions, `ROUNDS` times over.

    A change has to gain something, so that of equal weights the shipped ones stay. Values are rounded to two digits.
    """
    weights = dict(start)
    best = float(judge(weights)[train].mean())
    for _ in range(ROUNDS):
        before = best
        for name, value in list(weights.items()):
            for tried in _values(value):
                changed = {**weights, name: tried}
                mean = float(judge(changed)[train].mean())
                if mean > best + 1e-9:
                    best, weights = mean, changed
        if best == before:
            break
    return weights


def _values(value: float) -> tuple[float, ...]:
    return tuple(round(value * factor, 2) for factor in FACTORS) if value > 0 else FROM_NOTHING


def leave_out(judge: Judge, start: Mapping[str, float], groups: Sequence[str]) -> tuple[Floats, dict[str, dict[str, float]]]:
    """(out-of-fold NDCG@10 of each question, weights by the group that was left out)."""
    out: Floats = np.zeros(len(groups))
    fitted: dict[str, dict[str, float]] = {}
    for group in sorted(set(groups)):
        held: Mask = np.array([g == group for g in groups])
        fitted[group] = fit(judge, start, ~held)
        out[held] = judge(fitted[group])[held]
    return out, fitted


def run(data: Data, flags: Sequence[str] = ()) -> dict[str, object]:
    """Shipped, fitted in-sample, and fitted out of fold, with the weights of the folds.

    Raises:
        UnusableData, ConfigError
    """
    with tempfile.TemporaryDirectory() as name:
        weights = read_weights(Path(name), flags)
        pool_flags = (*flags, *weights.others_off(), f"fusion.candidates={POOL}")
        plan = data.plan(Path(name), candidates=True)
        (answers,) = ask_everything(plan, [Arm("pool", pool_flags)])
    asked = [answers.asked[q.id] for q in plan.questions]
    pools = Pools(asked, tuple(weights.signals))
    judge, everything = Judge(pools), np.ones(len(pools), np.bool_)
    shipped = judge(weights.signals)
    in_sample = fit(judge, weights.signals, everything)
    folds = {
        key: _folds(judge, weights.signals, groups, shipped)
        for key, groups in (("repository", pools.repositories), ("language", pools.languages))
    }
    return {
        "questions": len(pools),
        "pool": POOL,
        "targets_in_pools": round(pools.reachable(), 4),
        "circumstances": circumstances(),
        "shipped": {"ndcg10": round(float(shipped.mean()), 4), "weights": weights.signals},
        "signals": {name: _signal(judge, weights.signals, name, shipped) for name, value in weights.signals.items() if value > 0},
        "fitted_in_sample": {"ndcg10": round(float(judge(in_sample).mean()), 4), "weights": in_sample},
        "left_out": folds,
    }


def _signal(judge: Judge, weights: Mapping[str, float], name: str, shipped: Floats) -> dict[str, float]:
    """NDCG@10 on the pools without one signal, the standard error of its difference from the shipped weights, and with it alone."""
    without = judge({**weights, name: 0.0})
    only = judge({**dict.fromkeys(weights, 0.0), name: 1.0})
    error = float((without - shipped).std(ddof=1)) / len(shipped) ** 0.5 if len(shipped) > 1 else 0.0
    return {"without": round(float(without.mean()), 4), "standard_error": round(error, 4), "only": round(float(only.mean()), 4)}


def _folds(judge: Judge, start: Mapping[str, float], groups: Sequence[str], shipped: Floats) -> dict[str, object]:
    out, fitted = leave_out(judge, start, groups)
    differences = out - shipped
    return {
        "folds": len(fitted),
        "ndcg10": round(float(out.mean()), 4),
        "difference": round(float(differences.mean()), 4),
        "standard_error": round(float(differences.std(ddof=1)) / len(out) ** 0.5, 4),
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "weights": {name: _range([weights[name] for weights in fitted.values()]) for name in start},
    }


def _range(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def print_folds(result: dict[str, Any]) -> None:
    write_line(f"{result['questions']} questions; the code index alone; {result['pool']} candidates a question, which hold")
    write_line(f"{result['targets_in_pools']:.1%} of all targets; {result['circumstances']}")
    shipped, fitted, left = result["shipped"], result["fitted_in_sample"], result["left_out"]
    rows = [["shipped weights", shipped["ndcg10"], None, None], ["fitted, in sample", fitted["ndcg10"], None, None]]
    rows += [[f"fitted, one {key} left out", f["ndcg10"], f["difference"], f["standard_error"]] for key, f in left.items()]
    write_table(("weights", "NDCG@10", "Δ", "±"), rows)
    spread = {key: fold["weights"] for key, fold in left.items()}
    signals: dict[str, dict[str, float]] = result["signals"]
    write_table(
        ("signal", "without it", "±", "it alone"),
        [[name, s["without"], s["standard_error"], s["only"]] for name, s in signals.items()],
        "NDCG@10 on the pools",
    )
    table = [
        [name, value, fitted["weights"][name], *(f"{s[name]['min']:g}–{s[name]['max']:g}" for s in spread.values())]
        for name, value in shipped["weights"].items()
    ]
    write_table(("signal", "shipped", "in sample", *(f"by {key}" for key in spread)), table, "weights over the folds")
