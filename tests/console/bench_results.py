"""Result folders as `bench run` leaves them, made by hand: six questions, two arms, one of them with a space in its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from search_router.benchmark.ask import environment
from search_router.benchmark.run_receipts import HOME
from search_router.benchmark.run_rows import file_name
from search_router.config.loader import load_config
from search_router.receipts.keys import load_or_create_key

ARMS = ("fused", "grep alone")
KINDS = ("conceptual", "identifier")


def make_run(folder: Path, ndcg: float = 1.0, ms: float = 10.0, **place: object) -> Path:
    """A run whose questions all came to `ndcg` in about `ms`. Its receipts are not there, which the comparison says."""
    (folder / "rows").mkdir(parents=True)
    load_or_create_key(load_config(roots=[folder], environ=environment(folder / HOME)).paths.key)
    for arm in ARMS:
        rows = [_row(n, ndcg, ms) for n in range(6)]
        (folder / "rows" / f"{file_name(arm)}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_summary(folder, make_summary(ndcg, ms, **place))
    return folder


def write_summary(folder: Path, summary: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def make_summary(ndcg: float = 1.0, ms: float = 10.0, **place: object) -> dict[str, Any]:
    suite = {"name": "small", "version": "1.0.0", "manifest": "m" * 12, "corpus": "c" * 64}
    machine = {"system": "Linux", "kernel": "6", "processor": "one", "cpus": 2, "memory_mib": 1024, "load_1m": 0.5}
    told = {
        "run_name": "named",
        "started": "2026-11-30T12:00:00+00:00",
        "code": {"commit": "a" * 40, "branch": "main", "dirty": False, "version": "0.1.0"},
        "flags": ["cache.positive_seconds=0"],
        "config_file": None,
        "suite": suite,
        "machine": machine,
        "python": "3.11.7",
        "packages": {},
        "config": {"version": "search-router@1", "hash": "b" * 64},
        **place,
    }
    emission = {"answers": 6, "found": 6, "share": 1.0, "reasons": []}
    return {"place": told, "arms": {arm: _arm(ndcg, ms) for arm in ARMS}, "emission": emission, "failed": []}


def _row(number: int, ndcg: float, ms: float) -> dict[str, Any]:
    return {"id": f"q{number}", "kind": KINDS[number % 2], "ndcg": ndcg if number else 0.5, "ms": [ms + number, ms + number]}


def _arm(ndcg: float, ms: float) -> dict[str, Any]:
    means = {"ndcg10": ndcg, "mrr10": ndcg, "recall10": ndcg, "questions": 6}
    scores = {
        "questions": 6,
        "precision_micro": 1.0,
        "recall_micro": 0.5,
        "f1_micro": 0.6667,
        "precision_macro": 1.0,
        "recall_macro": 0.5,
        "f1_macro": 0.6667,
        "exact": 0.5,
    }
    times = {"p50": ms, "p95": ms * 2, "p99": ms * 3, "n": 12}
    return {
        "config": {"version": "search-router@1", "hash": "b" * 64},
        "questions": 6,
        "retrieval": {"all": means, "by_class": dict.fromkeys(KINDS, means), "by_half": {"dev": means}, "by_source": {"own": means}},
        "selection": {
            "all": scores,
            "by_half": {"dev": scores},
            "by_class": {},
            "sole": scores,
            "by_expert": {"grep": {"right": 3, "extra": 2, "missed": 1}},
        },
        "latency": {
            "ready_ms": 100.0,
            "cold": {"n": 0},
            "warm": times,
            "cached": {"n": 0},
            "by_class": {"identifier": times},
            "experts": {"grep": {**times, "cap_ms": 900}},
            "budget_ms": 3000,
            "breaches": {"timeout grep": 1},
        },
        "hostile": {"handled": 1, "questions": 2, "by_kind": {"empty": "1/2"}, "mishandled": ["empty-1"]},
        "errors": {},
        "unstable": [],
    }
