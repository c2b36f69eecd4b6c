"""One row a question and arm: what came back, how it was judged, who was asked, how long it took and what went wrong.

`ms` and `cpu_ms` have one value a round; results and experts are the first round's, and a round that answered otherwise is a fault. A
breach is a limit of the budget table that a call or a request went over: `timeout` (an expert was cut off), `over-cap` (it answered, later
than its cap), `over-budget` (the whole request).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from search_router.benchmark.fixture_suite import FixtureQuestion, Label
from search_router.benchmark.graded import judge, read_items, score_judged

NOT_ASKED: Final = frozenset({"skipped", "unavailable", "unconfigured", "index-missing"})
FAILED: Final = frozenset({"crashed", "protocol-error", "spawn-failed", "rejected", "internal", "suspect-empty"})
SLACK_US: Final = 50_000
"""A deadline is noticed by a scheduler: so much later than the cap is still the cap."""
Row = dict[str, Any]


def file_name(name: str) -> str:
    """What the files of an arm, or of a run, are called: nothing in it leads out of their folder."""
    return "".join(c if c.isalnum() or c in "._=" else "-" for c in name)


def make_row(question: FixtureQuestion, labels: Sequence[Label], rounds: Sequence[Mapping[str, Any]], ready: Mapping[str, Any]) -> Row:
    """The row of one question from all its rounds, the first of which is judged."""
    answer: Mapping[str, Any] = rounds[0]["answer"]
    experts: list[dict[str, Any]] = answer["experts"]
    fired = sorted(e["id"] for e in experts if e["status"] not in NOT_ASKED)
    row: Row = {
        "id": question.id,
        "kind": question.kind,
        "half": question.half,
        "source": question.source,
        "status": answer["status"],
        "intent": answer["classification"]["intent"] if answer["classification"] else None,
        "ms": [round(each["ms"], 3) for each in rounds],
        "cpu_ms": [round(each["cpu_ms"], 3) for each in rounds],
        "cached": [each["answer"]["status"] == "cached" for each in rounds],
        "experts": {e["id"]: {"status": e["status"], "us": e["latency_us"], "results": e["results"]} for e in experts if e["id"] in fired},
        "expert_us": {name: [_latency(each, name) for each in rounds] for name in fired},
        "breaches": breaches(rounds, ready),
        "errors": errors(question, rounds),
        "unstable": len({_order(each["answer"]) for each in rounds}) > 1,
    }
    if question.adversarial:
        flagged = not question.flag or question.flag in answer["question_classes"]
        row["handled"] = answer["status"] in question.statuses and flagged and answer["receipt"] is not None
        row["flags"] = answer["question_classes"]
        return row
    items = read_items(answer["evidence"])
    judged = judge(items, labels)
    metrics = score_judged(judged)
    return row | {
        "gold": [name for name in question.experts if name in ready["available"]],
        "fired": fired,
        "sole": len(question.experts) == 1,
        "ndcg": metrics.ndcg,
        "mrr": metrics.mrr,
        "recall": metrics.recall,
        "gains": list(judged.gains),
        "grades": list(judged.grades),
        "met": list(judged.met),
        "unmapped": sum(not item.mapped for item in items),
        "commits": sum(item.commit is not None for item in items),
        "results": [f"{i.project}/{i.path or i.commit or '?'}" + (f"#L{i.start}-L{i.end}" if i.start else "") for i in items],
    }


def breaches(rounds: Sequence[Mapping[str, Any]], ready: Mapping[str, Any]) -> list[str]:
    """`class expert` of every breach in any round."""
    found: list[str] = []
    for each in rounds:
        answer = each["answer"]
        for expert in answer["experts"]:
            cap = ready["caps_ms"].get(expert["id"])
            if expert["status"] == "timeout":
                found.append(f"timeout {expert['id']}")
            elif cap is not None and expert["status"] not in NOT_ASKED and expert["latency_us"] > cap * 1000 + SLACK_US:
                found.append(f"over-cap {expert['id']}")
        if answer["budget"]["used_ms"] > answer["budget"]["latency_ms"]:
            found.append("over-budget request")
    return found


def errors(question: FixtureQuestion, rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the router itself got wrong: a request that failed or was refused without being hostile, and experts that broke."""
    found: list[str] = []
    for each in rounds:
        answer = each["answer"]
        refused = answer["error"]["code"] if answer["error"] else ""
        if answer["status"] in ("failed", "rejected", "cancelled") or (answer["status"] == "declined" and not question.adversarial):
            found.append(f"{answer['status']} {refused}".strip())
        found += [f"{expert['status']} {expert['id']}" for expert in answer["experts"] if expert["status"] in FAILED]
    return found


def _latency(each: Mapping[str, Any], name: str) -> int:
    return next((e["latency_us"] for e in each["answer"]["experts"] if e["id"] == name), 0)


def _order(answer: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(item["id"] for item in answer["evidence"])
