"""The gate: which experts are asked, with what sub-query, and why. In federated search: resource selection. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from search_router.adapters.local.languages import language_of
from search_router.config.schema import Config
from search_router.errors import RequestDeclined
from search_router.router.tiers import PRECISION
from search_router.router.tokens import QuestionTokens
from search_router.schema import (
    Classification,
    DocumentFilters,
    ExpertCall,
    ExpertCard,
    ExpertReport,
    ExpertStatus,
    Health,
    Intent,
    PrecisionClass,
    Project,
    QueryForm,
    SearchRequest,
    SubQuery,
)

MAX_TERMS = 12
QUIET_SHARE = 0.05
"""An expert with less than this share of the largest prior can only agree with the others."""
ONE_SUFFICES = "one expert suffices"
FILE_LIKE = re.compile(r"\.[A-Za-z0-9_]{1,8}$")


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls to make and the reports of the experts left out; together they name every configured expert.

    `reserve` are calls to make only when `calls` find nothing; until then their experts are among the skipped.
    """

    intent: Intent
    calls: tuple[ExpertCall, ...]
    skipped: tuple[ExpertReport, ...]
    weights: Mapping[str, float]
    latency_ms: int
    max_experts: int
    reserve: tuple[ExpertCall, ...] = ()


def plan_experts(
    request: SearchRequest,
    classification: Classification,
    tokens: QuestionTokens,
    projects: tuple[Project, ...],
    cards: Mapping[str, ExpertCard],
    health: Mapping[str, Health],
    config: Config,
    complete: Collection[str] = (),
) -> Plan:
    """Pick experts by prior, availability, scope and budget. `complete` names those whose index has every file.

    Raises:
        RequestDeclined: `no-expert`, when the gate leaves nobody; the remedy says which limit to lift. Never "then all of them".
    """
    intent = classification.intent
    latency_ms = request.budget.latency_ms or config.budget.latency_ms
    max_experts = request.budget.max_experts or config.budget.max_experts
    priors = config.priors.get(intent, {})
    reasons: dict[str, tuple[ExpertStatus, str]] = {}
    passed: list[str] = []
    for name in sorted(config.experts, key=lambda n: (-priors.get(n, 0.0), n)):
        verdict = _gate(name, classification, request, cards.get(name), config) or _refuse_unwell(health.get(name))
        if verdict is None:
            passed.append(name)
        else:
            reasons[name] = verdict
    if len(passed) > 1 and config.gate.one_expert_suffices and one_expert_suffices(request, intent, tokens, cards[passed[0]]):
        reasons |= dict.fromkeys(passed[1:], (ExpertStatus.SKIPPED, f"{ONE_SUFFICES}: {passed[0]}, for an exact symbol in a known file"))
        passed = passed[:1]
    reasons |= dict.fromkeys(passed[max_experts:], (ExpertStatus.SKIPPED, f"beyond max_experts ({max_experts})"))
    passed = passed[:max_experts]
    reserved = _reserve(passed, classification, tokens, config, complete)
    reasons |= {
        n: (ExpertStatus.SKIPPED, f"in reserve: the complete index of {config.gate.reserve[n]} holds these words") for n in reserved
    }
    passed = [name for name in passed if name not in reserved]
    skipped = tuple(ExpertReport(id=n, status=reasons[n][0], reason=reasons[n][1]) for n in sorted(reasons))
    if not passed:
        why = "; ".join(f"{r.id}: {r.reason}" for r in skipped) or "no expert is configured"
        raise RequestDeclined(
            f"No expert can be asked for this request ({why}).",
            remedy="Widen the budget or the scope, or see `expert_registry` for what is available.",
            code="no-expert",
        )

    loudest = max(priors.get(name, 0.0) for name in passed)

    def call(name: str, reason: str) -> ExpertCall:
        return ExpertCall(
            expert=name,
            sub_query=make_sub_query(cards[name], intent, tokens),
            projects=projects,
            path=request.scope.path,
            language=request.scope.language,
            limit=config.fusion.candidates,
            budget_ms=min(cards[name].cap_ms, latency_ms),
            prior=round(priors.get(name, 0.0) * 1000),
            reason=reason,
            intent=intent,
            filters=DocumentFilters(**request.filters.model_dump()),
            is_quiet=priors.get(name, 0.0) < QUIET_SHARE * loudest,
        )

    return Plan(
        intent,
        tuple(call(name, _pick_reason(classification, priors.get(name, 0.0))) for name in passed),
        skipped,
        {name: priors.get(name, 0.0) for name in (*passed, *reserved)},
        latency_ms,
        max_experts,
        tuple(call(name, "from the reserve: nobody else found anything") for name in reserved),
    )


def could_be_asked(
    request: SearchRequest, classification: Classification, cards: Mapping[str, ExpertCard], config: Config
) -> tuple[str, ...]:
    """The experts whose health decides whether they are asked: all that nothing else leaves out."""
    return tuple(name for name in config.experts if _gate(name, classification, request, cards.get(name), config) is None)


def _reserve(
    passed: Sequence[str], classification: Classification, tokens: QuestionTokens, config: Config, complete: Collection[str]
) -> list[str]:
    """Experts that could only repeat what another one's complete index knows, for a question in words with nothing quoted in it."""
    in_words = classification.abstained or classification.intent is Intent.CONCEPTUAL
    if not in_words or tokens.quoted or tokens.regexes:
        return []
    rely_on = config.gate.reserve
    return [name for name in passed if rely_on.get(name) in complete and rely_on[name] in passed]


def _gate(
    name: str, classification: Classification, request: SearchRequest, card: ExpertCard | None, config: Config
) -> tuple[ExpertStatus, str] | None:
    """None lets a healthy expert through; otherwise the status and the reason of its being left out."""
    settings = config.experts[name]
    prior = config.priors.get(classification.intent, {}).get(name, 0.0)
    latency_ms = request.budget.latency_ms or config.budget.latency_ms
    if not settings.enabled or card is None:
        return ExpertStatus.SKIPPED, "switched off in the configuration"
    if classification.abstained and name not in config.gate.default_set:
        return ExpertStatus.SKIPPED, "not in the default set that is asked on abstention"
    if not classification.abstained and classification.intent not in card.intents:
        return ExpertStatus.SKIPPED, f"does not serve {classification.intent.value} questions"
    if prior < config.gate.min_prior:
        return ExpertStatus.SKIPPED, f"prior {prior:g} for {classification.intent.value} is below {config.gate.min_prior:g}"
    least = request.budget.min_precision_class
    if (
        least is not None
        and least in PRECISION
        and card.precision_class in PRECISION
        and PRECISION[card.precision_class] < PRECISION[least]
    ):
        return ExpertStatus.SKIPPED, f"precision class {card.precision_class.value} is weaker than {least.value}"
    language = request.scope.language
    if language and card.languages is not None and language not in card.languages:
        return ExpertStatus.SKIPPED, f"does not know {language}"
    if settings.expected_ms > latency_ms:
        return ExpertStatus.SKIPPED, f"usually takes {settings.expected_ms} ms, the budget is {latency_ms} ms"
    return None


def _refuse_unwell(health: Health | None) -> tuple[ExpertStatus, str] | None:
    """The status and the reason of an expert that cannot be asked now."""
    if health is not None and not health.available:
        # What nobody asked for and nobody needs is no failure that every answer must report.
        return ExpertStatus.SKIPPED if "optional" in health.details else health.failure or ExpertStatus.UNAVAILABLE, health.reason
    return None


def one_expert_suffices(request: SearchRequest, intent: Intent, tokens: QuestionTokens, best: ExpertCard) -> bool:
    """A known file that the best expert can read, and one exact name: nobody else could add anything."""
    path = request.scope.path
    known_file = path is not None and FILE_LIKE.search(path) is not None and (best.languages is None or language_of(path) in best.languages)
    exact = len(tokens.identifiers) == 1 and len(tokens.content_words) <= 1
    return known_file and exact and intent in (Intent.TYPED_SYMBOL, Intent.IDENTIFIER)


def make_sub_query(card: ExpertCard, intent: Intent, tokens: QuestionTokens) -> SubQuery:
    """What one expert is asked: literal or regex where the question quotes one, names where it has some, else its content words."""
    text = tokens.text
    if card.serves_history:
        terms = _distinct((*tokens.quoted, *tokens.identifiers, *tokens.paths))
        return SubQuery(QueryForm.LITERAL, terms, text) if terms else SubQuery(QueryForm.TEXT, tokens.content_words[:MAX_TERMS], text)
    if tokens.regexes and card.precision_class is PrecisionClass.LEXICAL:
        return SubQuery(QueryForm.REGEX, tokens.regexes[:1], text)
    if tokens.quoted and intent in (Intent.IDENTIFIER, Intent.UNKNOWN):
        return SubQuery(QueryForm.LITERAL, tokens.quoted[:MAX_TERMS], text)
    if tokens.identifiers and intent is not Intent.CONCEPTUAL:
        return SubQuery(QueryForm.SYMBOL, tokens.identifiers[:MAX_TERMS], text)
    words = _distinct((*tokens.identifiers, *tokens.quoted, *tokens.paths, *tokens.content_words))
    return SubQuery(QueryForm.KEYWORDS, words, text)


def _distinct(terms: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for t in terms if t.strip()))[:MAX_TERMS]


def _pick_reason(classification: Classification, prior: float) -> str:
    if classification.abstained:
        return f"default set on abstention, weight {prior:g}"
    return f"prior {prior:g} for {classification.intent.value}"
