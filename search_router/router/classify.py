"""Classify a question with local rules: scores, winner, runner-up, and an open abstention where they are too close."""

from __future__ import annotations

import re

from search_router.config.schema import ClassifyConfig
from search_router.router.rules.rule import Rule
from search_router.router.rules.table import RULES
from search_router.router.tokens import QuestionTokens
from search_router.router.wording import Surfaces, read_surfaces
from search_router.schema import Classification, Intent, RuleFired

FULL = 1000
ASKED = 500
NAMED_SHARE = 3
"""From the weight ASKED on, wording that asks makes what is merely named count a third."""
PROSE = RuleFired(rule="conceptual.prose", intent=Intent.CONCEPTUAL, weight=320)
"""The last resort: words that no conceptual rule knows are still a question about how something works."""
_PLACEHOLDER = re.compile(r"_[a-z]+_|[.,]")


def classify(
    tokens: QuestionTokens, *, libraries: frozenset[str] = frozenset(), config: ClassifyConfig, hint: Intent = Intent.UNKNOWN
) -> Classification:
    """The intent of an analysed question.

    An intent's score is the sum of the weights of its rules that fired, at most 1000 per mille. The highest wins unless it is below
    `config.min_score`, or leads by less than `config.min_margin`: then the verdict is `unknown`, abstained, and the best guess is the
    runner-up. Equal scores are ordered by the intents' order in the schema, so the verdict never depends on chance.
    A `hint` other than `unknown` is taken as it is. `libraries` are lower-case names from the workspace's manifests.
    """
    if hint is not Intent.UNKNOWN:
        return Classification(intent=hint, confidence=1.0, abstained=False, runner_up=None, rules=(), by="hint")
    fired = _fire_rules(read_surfaces(tokens, libraries), tokens)
    scores = _sum_scores(fired)
    if not scores:
        return Classification(intent=Intent.UNKNOWN, confidence=0.0, abstained=True, runner_up=None, rules=())
    ranked = sorted(scores, key=lambda intent: (-scores[intent], _ORDER[intent]))
    best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    lead = scores[best] - (scores[second] if second else 0)
    abstained = scores[best] < round(config.min_score * FULL) or lead < round(config.min_margin * FULL)
    return Classification(
        intent=Intent.UNKNOWN if abstained else best,
        confidence=round(scores[best] / sum(scores.values()), 3),
        abstained=abstained,
        runner_up=best if abstained else second,
        rules=fired,
    )


_ORDER = {intent: place for place, intent in enumerate(Intent)}


def _fire_rules(surfaces: Surfaces, tokens: QuestionTokens) -> tuple[RuleFired, ...]:
    texts = {"wording": surfaces.wording, "naming": surfaces.naming, "text": surfaces.text}
    matched = [rule for rule in RULES if _matches(rule, texts[rule.surface])]
    asked = any(rule.asks and rule.weight >= ASKED for rule in matched)
    fired = [
        RuleFired(rule=rule.id, intent=rule.intent, weight=rule.weight // NAMED_SHARE if asked and not rule.asks else rule.weight)
        for rule in matched
    ]
    if not any(rule.intent is Intent.CONCEPTUAL for rule in matched) and len(tokens.content_words) >= 2:
        fired.append(PROSE)
    return tuple(fired)


def _matches(rule: Rule, text: str) -> bool:
    if rule.pattern.search(text) is None:
        return False
    return (rule.also is None or rule.also.search(text) is not None) and (rule.unless is None or rule.unless.search(text) is None)


def _sum_scores(fired: tuple[RuleFired, ...]) -> dict[Intent, int]:
    scores: dict[Intent, int] = {}
    for rule in fired:
        scores[rule.intent] = min(FULL, scores.get(rule.intent, 0) + rule.weight)
    return scores
