"""The session bandit in a simulation that can be replayed: the best expert of a class changes in the middle of a session.

Hits are made up, everything else is the product's own: the fusion, the shares, the draws. A caller tells success of the right item when it
is on the page, and nothing otherwise. Regret is what the best weights within floor and cap would have had more, in 1 / log2(1 + rank) of
the right item; every arm sees the same hits.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from search_router.config.schema import BanditConfig, Config, FusionConfig
from search_router.router.enrich.bandit import MAX_STEPS, Observation, bounded, draw_weights, observe, posterior, seed_of
from search_router.router.fuse import fuse_rankings
from search_router.router.identity import Candidate, Ranked
from search_router.schema import ExpertCard, Hit, Intent, PrecisionClass

PRIORS_PM: Final[Mapping[str, int]] = {"first": 600, "second": 500, "third": 400, "fourth": 300}
HITS: Final = 10
PAGE: Final = 10
RIGHT: Final = 0.8
"""How often the best expert has the right item first; the others have it so in LESS of the questions."""
LESS: Final = 0.3
WINDOW: Final = 50
TARGET: Final = "target"

Steps = list[tuple[Observation, ...]]
Lists = Mapping[str, Sequence[str]]
Weigh = Callable[[Steps, int], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Played:
    """What one arm got in one session: the gain of each request, and the weights it used."""

    gains: list[float]
    weights: list[Mapping[str, int]]


def make_lists(best: str, chance: random.Random) -> dict[str, list[str]]:
    """Each expert's hits for one question. Wrong items may be found by several; who misses has the right one far below or not at all."""
    lists: dict[str, list[str]] = {}
    for expert in PRIORS_PM:
        hits = [f"common-{n}" if chance.random() < 0.3 else f"{expert}-{n}" for n in range(HITS)]
        if chance.random() < (RIGHT if expert == best else LESS):
            hits.insert(0, TARGET)
        elif chance.random() < 0.3:
            hits.insert(chance.randrange(4, HITS), TARGET)
        lists[expert] = hits
    return lists


def fuse_lists(lists: Lists, weights_pm: Mapping[str, int], fusion: FusionConfig) -> list[str]:
    """Names in the order of the product's own fusion."""
    found: dict[str, list[Ranked]] = {}
    for expert in sorted(lists):
        for rank, name in enumerate(lists[expert], start=1):
            found.setdefault(name, []).append(Ranked(1, 1, expert, rank, Hit(project="p", path=name)))
    candidates = [Candidate(("code", "p", name, "1", ""), "p", name, 1, 1, None, tuple(votes)) for name, votes in found.items()]
    weights = {name: weight / 1000 for name, weight in weights_pm.items()}
    return [fused.candidate.key[2] for fused in fuse_rankings(candidates, weights=weights, cards=_CARDS, config=fusion)]


def gain_of(ranking: Sequence[str]) -> float:
    """1 / log2(1 + rank) of the right item on the page; 0 when it is not there."""
    return 1 / math.log2(ranking.index(TARGET) + 2) if TARGET in ranking[:PAGE] else 0.0


def play(questions: Sequence[Lists], weigh: Weigh, fusion: FusionConfig, liar: str | None = None) -> Played:
    """One session. With a `liar`, every outcome is a success of an item that this expert alone found, whatever is right."""
    steps: Steps = []
    played = Played([], [])
    for lists in questions:
        weights = weigh(steps, len(steps))
        ranking = fuse_lists(lists, weights, fusion)
        played.gains.append(gain_of(ranking))
        played.weights.append(weights)
        used = next((name for name in ranking if name.startswith(f"{liar}-")), None) if liar else TARGET
        if used is not None and used in ranking[:PAGE]:
            sources = [(expert, hits.index(used) + 1) for expert, hits in lists.items() if used in hits]
            steps.insert(0, observe({used: sources}, [used], 1000, PRIORS_PM))
            del steps[MAX_STEPS:]
    return played


def run(config: Config, sessions: int = 40, seed: int = 7) -> dict[str, object]:
    """All arms over sessions of 4 x 50 questions, with the change in the middle; then sessions whose priors are right; then liars."""
    rules, fusion = config.bandit, config.fusion
    regrets: dict[str, list[list[float]]] = {"priors": [], "thompson": [], "mean": []}
    steady: dict[str, list[float]] = {"priors": [], "thompson": [], "mean": []}
    chance = random.Random(seed)  # noqa: S311 - a repeatable simulation
    names = list(PRIORS_PM)
    for number in range(sessions):
        before, after = chance.sample(names[1:], 2)
        questions = [make_lists(best, chance) for best in (before, after) for _ in range(2 * WINDOW)]
        ideal = [
            gain_of(fuse_lists(lists, _ideal(before if i < 2 * WINDOW else after, rules), fusion)) for i, lists in enumerate(questions)
        ]
        for arm, weigh in arms(rules, f"session {number}").items():
            gains = play(questions, weigh, fusion).gains
            regrets[arm].append([best - got for best, got in zip(ideal, gains, strict=True)])
        right = [make_lists(names[0], chance) for _ in range(2 * WINDOW)]
        for arm, weigh in arms(rules, f"steady {number}").items():
            steady[arm].append(statistics.fmean(play(right, weigh, fusion).gains))
    spans = {
        "first 50": (0, WINDOW),
        "50 after the change": (2 * WINDOW, 3 * WINDOW),
        "the next 50": (3 * WINDOW, 4 * WINDOW),
    }
    cut = {arm: {span: statistics.fmean(sum(one[a:b]) for one in all_) for span, (a, b) in spans.items()} for arm, all_ in regrets.items()}
    return {
        "sessions": sessions,
        **{f"regret, {arm}": {span: round(value, 2) for span, value in by_span.items()} for arm, by_span in cut.items()},
        **{
            f"regret of {arm} / of the priors": {span: round(cut[arm][span] / cut["priors"][span], 3) for span in spans}
            for arm in ("thompson", "mean")
        },
        "gain where the priors are right": {arm: round(statistics.fmean(values), 4) for arm, values in steady.items()},
        **_liars(rules, fusion, chance),
    }


def arms(rules: BanditConfig, session: str) -> dict[str, Weigh]:
    """The configured priors, the product's draws, and the middle of what the draws are made of."""

    def thompson(steps: Steps, count: int) -> Mapping[str, int]:
        return draw_weights(PRIORS_PM, steps, rules, seed_of(session, Intent.CONCEPTUAL.value, count))

    def mean(steps: Steps, count: int) -> Mapping[str, int]:
        if not steps:
            return PRIORS_PM
        total = sum(PRIORS_PM.values())
        return {name: bounded(total * a / (a + b), PRIORS_PM[name], rules) for name, (a, b) in posterior(PRIORS_PM, steps, rules).items()}

    return {"priors": lambda steps, count: PRIORS_PM, "thompson": thompson, "mean": mean}


def verdict(result: Mapping[str, object]) -> bool:
    """Whether regret falls by half within 50 requests, at the start and after the change, and nobody left the bounds."""
    ratios = cast("Mapping[str, float]", result["regret of thompson / of the priors"])
    liars = cast("Mapping[str, float]", result["liars"])
    return ratios["first 50"] <= 0.5 and ratios["50 after the change"] <= 0.5 and not liars["out of bounds"]


def _ideal(best: str, rules: BanditConfig) -> dict[str, int]:
    """The best expert at its cap and the others at their floors."""
    return {name: bounded(10_000 if name == best else 0, prior, rules) for name, prior in PRIORS_PM.items()}


def _liars(rules: BanditConfig, fusion: FusionConfig, chance: random.Random) -> dict[str, object]:
    """Whole sessions of false successes for each expert in turn: how far its weight and the others' ever went, and what that cost."""
    ratios: list[float] = []
    out, cost = 0, 0.0
    for liar in PRIORS_PM:
        questions = [make_lists("first", chance) for _ in range(4 * WINDOW)]
        weighed = arms(rules, f"liar {liar}")
        played = play(questions, weighed["thompson"], fusion, liar)
        honest = play(questions, weighed["priors"], fusion)
        cost += statistics.fmean(honest.gains) - statistics.fmean(played.gains)
        for weights in played.weights:
            for name, prior in PRIORS_PM.items():
                ratios.append(weights[name] / prior)
                out += not (rules.floor * prior <= weights[name] <= rules.cap * prior and weights[name] > 0)
    return {
        "liars": {
            "lowest": round(min(ratios), 3),
            "highest": round(max(ratios), 3),
            "out of bounds": out,
            "gain lost": round(cost / len(PRIORS_PM), 4),
        }
    }


_CARDS: Final = {
    name: ExpertCard(name, "scripted", PrecisionClass.LEXICAL, name, frozenset(Intent), None, "embedded", 1000, "none")
    for name in PRIORS_PM
}
