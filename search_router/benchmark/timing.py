"""Quantiles and the printing of measurements. Times are milliseconds."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence


def quantile(samples: Sequence[float], share: float) -> float:
    """Nearest-rank quantile: the smallest sample that at least `share` of all samples do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summarise(samples: Sequence[float]) -> dict[str, float | int]:
    """p50, p95, p99 and the count."""
    return {
        "p50_ms": round(quantile(samples, 0.5), 3),
        "p95_ms": round(quantile(samples, 0.95), 3),
        "p99_ms": round(quantile(samples, 0.99), 3),
        "n": len(samples),
    }


def print_result(result: Mapping[str, object], as_json: bool) -> None:
    """One JSON object, or a line a value."""
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
        return
    for name, value in result.items():
        shown = "  ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType] - whatever a row holds
        sys.stdout.write(f"{name:<28} {shown}\n")
