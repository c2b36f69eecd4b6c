"""The stage `llm`: a language model's word on the intent of a question on which the rules abstain, where the request allows it."""

from __future__ import annotations

from typing import Final, Literal

from search_router.adapters.language_model import LanguageModel, Reply
from search_router.config.schema import LanguageModelConfig
from search_router.errors import ExpertError
from search_router.redact import scrub
from search_router.router.stages import StageLog
from search_router.schema import Classification, Intent

SHARE: Final = 1 / 3
"""Of the request's time: the rest is for the search."""
TASK: Final = (
    "You sort questions about a code base by the kind of search that answers them. "
    "identifier: an exact string, regular expression or constant. typed-symbol: a named class, function or type. "
    "cross-repo-impact: who calls, uses or imports something, what breaks when it changes. docs: how a library or an API is used. "
    "history: when, why or by whom something was changed. conceptual: how or where something works. unknown: none of these."
)


class IntentReply(Reply):
    """What the model says of `question`."""

    intent: Literal["conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history", "unknown"]


async def settle_abstention(
    model: LanguageModel | None,
    settings: LanguageModelConfig,
    question: str,
    classification: Classification,
    latency_ms: int,
    stages: StageLog,
    *,
    allowed: bool,
) -> tuple[Classification, str | None]:
    """(the classification, with the model's intent where it knows one; a note when it failed and the abstention stands).

    The confidence of an intent by `llm` is its share of the rules' scores, like that of any other: the model's own is worth nothing.
    """
    if not allowed or model is None or not settings.classify:
        reason = "not asked for" if not allowed else "no language model is configured" if model is None else "llm.classify is off"
        stages.skip("llm", reason)
        return classification, None
    seconds = min(settings.cap_ms / 1000, latency_ms / 1000 * SHARE)
    with stages.run("llm", 1) as stage:
        try:
            reply = await model.ask(TASK, {"question": question}, IntentReply, seconds)
        except ExpertError as error:
            said = scrub(str(error))
            stage.active, stage.reason = False, f"the abstention stands, {model.name} failed ({error.failure.value}): {said}"
            return classification, f"the language model was not heard, the rules' abstention stands: {said}"
        stage.out = 1
        stage.reason = f"{model.name} (the question was sent there): {reply.intent}"
    intent = Intent(reply.intent)
    if intent is Intent.UNKNOWN:
        return classification, None
    scores = [rule.weight for rule in classification.rules]
    share = sum(rule.weight for rule in classification.rules if rule.intent is intent) / sum(scores) if sum(scores) else 0.0
    second = None if classification.runner_up is intent else classification.runner_up
    told = {"intent": intent, "abstained": False, "confidence": round(share, 3), "runner_up": second, "by": "llm"}
    return classification.model_copy(update=told), None
