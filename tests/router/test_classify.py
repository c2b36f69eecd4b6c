"""Which intent a question has, measured on our own labelled questions; the product never reads that file."""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.config.schema import ClassifyConfig
from search_router.router.classify import classify
from search_router.router.rules.table import RULES
from search_router.router.tokens import analyse_question
from search_router.schema import Classification, Intent

QUESTIONS = Path(__file__).parent / "questions.jsonl"
CONFIG = ClassifyConfig(min_score=0.3, min_margin=0.1)
Labelled = tuple[str, Intent, frozenset[str]]


def verdict(question: str, *libraries: str, config: ClassifyConfig = CONFIG) -> Classification:
    return classify(analyse_question(question), libraries=frozenset(libraries), config=config)


def _labelled() -> list[Labelled]:
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return [(row["question"], Intent(row["intent"]), frozenset(row.get("libraries", ()))) for row in rows]


def _fresh() -> frozenset[str]:
    """Questions that were written after the last change to a rule."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return frozenset(row["question"] for row in rows if row.get("fresh"))


def _held_out(question: str) -> bool:
    """What no rule was tuned on: a third, chosen by a checksum, and the fresh ones."""
    return zlib.crc32(question.encode()) % 3 == 0 or question in _FRESH


_FRESH = _fresh()


def _accuracy(rows: list[Labelled]) -> tuple[float, dict[str, int]]:
    confusion = Counter((f"{intent}", f"{verdict(question, *libraries).intent}") for question, intent, libraries in rows)
    right = sum(count for (wanted, got), count in confusion.items() if wanted == got)
    return right / len(rows), {f"{wanted} taken for {got}": count for (wanted, got), count in confusion.items() if wanted != got}


def test_the_questions_are_many_distinct_and_balanced() -> None:
    rows = _labelled()
    assert len({question for question, _, _ in rows}) == len(rows)
    assert min(Counter(intent for _, intent, _ in rows).values()) >= 25


def test_questions_that_rules_were_tuned_on_are_classified() -> None:
    accuracy, confusion = _accuracy([row for row in _labelled() if not _held_out(row[0])])
    assert accuracy >= 0.97, confusion


def test_questions_that_no_rule_was_tuned_on_are_classified() -> None:
    accuracy, confusion = _accuracy([row for row in _labelled() if _held_out(row[0])])
    assert accuracy >= 0.9, confusion


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("how has error handling changed since v2", Intent.HISTORY),
        ("how does the code handle changes to config", Intent.CONCEPTUAL),
        ("why does the worker retry", Intent.CONCEPTUAL),
        ("why was the retry added", Intent.HISTORY),
        ("who owns the socket in ConnectionPool", Intent.CONCEPTUAL),
        ("who calls ConnectionPool.acquire", Intent.CROSS_REPO_IMPACT),
        ("what happens when a request times out", Intent.CONCEPTUAL),
        ("what breaks if requests time out", Intent.CROSS_REPO_IMPACT),
        ("ConnectionPool", Intent.TYPED_SYMBOL),
        ("MAX_RETRIES", Intent.IDENTIFIER),
        ('find the string "who calls this"', Intent.IDENTIFIER),
        ("foo.*bar", Intent.IDENTIFIER),
        ("installation guide", Intent.DOCS),
        ("folding table lines that are too wide onto the next line with an indent", Intent.CONCEPTUAL),
        ("show all lines that begin with a tab", Intent.IDENTIFIER),
        ("making a slug out of a title such as a file name", Intent.CONCEPTUAL),
        ("guess the language from a file name", Intent.CONCEPTUAL),
        ("the file name ending in .lock", Intent.IDENTIFIER),
        ("what do the docs say about access control", Intent.DOCS),
        ("what does the scheduler control", Intent.CONCEPTUAL),
        ("find Ledger", Intent.TYPED_SYMBOL),
    ],
)
def test_near_misses_fall_on_the_right_side(question: str, intent: Intent) -> None:
    assert verdict(question).intent is intent


def test_a_library_leads_to_the_docs_unless_the_question_is_about_our_own_code() -> None:
    assert verdict("how do I use pydantic validators", "pydantic").intent is Intent.DOCS
    assert verdict("pydantic model_validator options", "pydantic").intent is Intent.DOCS
    assert verdict("where do we configure pydantic", "pydantic").intent is Intent.CONCEPTUAL
    assert verdict("spring boot actuator settings", "spring-boot").intent is Intent.DOCS


def test_a_library_named_like_an_everyday_word_needs_more_than_the_word() -> None:
    assert verdict("how are requests throttled", "requests").intent is Intent.CONCEPTUAL
    assert verdict("what arguments does requests.get accept", "requests").intent is Intent.DOCS


def test_a_hint_is_taken_as_it_is() -> None:
    got = classify(analyse_question("who calls foo_bar"), config=CONFIG, hint=Intent.DOCS)
    assert got == Classification(intent=Intent.DOCS, confidence=1.0, abstained=False, runner_up=None, rules=(), by="hint")


def test_nothing_recognised_is_an_abstention_without_a_guess() -> None:
    assert verdict("cache") == Classification(intent=Intent.UNKNOWN, confidence=0.0, abstained=True, runner_up=None, rules=())


def test_too_close_a_race_is_an_abstention_that_names_its_best_guess() -> None:
    strict = ClassifyConfig(min_score=0.3, min_margin=0.9)
    got = verdict("who calls parse_request", config=strict)
    assert (got.intent, got.abstained, got.runner_up) == (Intent.UNKNOWN, True, Intent.CROSS_REPO_IMPACT)
    assert got.rules


def test_a_winner_below_the_minimum_score_is_an_abstention() -> None:
    assert verdict("graceful shutdown", config=ClassifyConfig(min_score=0.9, min_margin=0)).abstained


def test_the_verdict_publishes_rules_runner_up_and_share() -> None:
    got = verdict("who calls parse_request")
    assert (got.intent, got.runner_up, got.by) == (Intent.CROSS_REPO_IMPACT, Intent.TYPED_SYMBOL, "rules")
    assert {rule.rule for rule in got.rules} == {"cross-repo-impact.subject", "typed-symbol.name"}
    assert 0.8 < got.confidence < 1


def test_rule_ids_are_unique_and_say_their_intent() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(rule.id.startswith(f"{rule.intent}.") and 0 < rule.weight <= 1000 for rule in RULES)


def test_no_pattern_has_a_brace_that_was_meant_for_an_f_string() -> None:
    patterns = [p.source for rule in RULES for p in (rule.pattern, rule.also, rule.unless) if p]
    assert [pattern for pattern in patterns if "{{" in pattern] == []


def test_every_rule_fires_for_some_question() -> None:
    fired = {rule.rule for question, _, libraries in _labelled() for rule in verdict(question, *libraries).rules}
    assert {rule.id for rule in RULES} - fired == set()


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=200))
def test_any_text_gets_the_same_verdict_twice(question: str) -> None:
    got = verdict(question)
    assert got == verdict(question)
    assert got.abstained == (got.intent is Intent.UNKNOWN)


def test_a_hundred_characters_take_less_than_three_tenths_of_a_millisecond() -> None:
    question = "who introduced the retry policy of HttpClient and why was the default timeout changed since v2.3 of it"
    assert 95 <= len(question) <= 105
    times: list[float] = []
    for _ in range(200):
        started = time.process_time()
        verdict(question)
        times.append(time.process_time() - started)
    assert sorted(times)[20] < 0.0003


@pytest.mark.parametrize("unit", ["who calls ", "what changed in ", "if ", "where a ", "_id_ ", "find all ", "how to ", "use "])
def test_four_kibibytes_of_cue_words_are_classified_in_bounded_time(unit: str) -> None:
    question = (unit * 2000)[:4096]
    started = time.process_time()
    verdict(question)
    assert time.process_time() - started < 0.5
