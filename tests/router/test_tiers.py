from __future__ import annotations

from search_router.router.tiers import STALE, judge_trust, sub_scores
from search_router.schema import CommitRecord, Confidence, Hit, Tier
from tests.router.ranking import CARDS, fuse

PLACE = {"path": "src/a.py", "start_line": 70, "end_line": 80}


def trust(*flags: str, **answers: Hit):
    (item,) = fuse({name: [hit] for name, hit in answers.items()})
    return judge_trust(item.candidate, CARDS, sub_scores(item.candidate, CARDS, item.score, 1.0), flags)


def hit(**more: object) -> Hit:
    return Hit("demo", **{**PLACE, **more})


def test_two_typed_engines_confirm_a_graph_and_two_names_of_one_engine_do_not() -> None:
    assert trust(pyright=hit(), ty=hit()).tier is Tier.TYPED_GRAPH_CONFIRMED
    assert trust(pyright=hit(is_exact=True), scip=hit(is_exact=True)).tier is Tier.LEXICAL_EXACT


def test_a_definition_with_another_source_is_symbol_confirmed() -> None:
    found = trust(symbols=hit(is_definition=True), grep=hit(is_exact=True))
    assert (found.tier, found.confidence) == (Tier.SYMBOL_CONFIRMED, Confidence.HIGH)
    assert trust(symbols=hit(), grep=hit()).tier is Tier.HYBRID_CONFIRMED


def test_a_single_source_is_exact_only_when_it_matched_exactly() -> None:
    assert trust(grep=hit(is_exact=True)).tier is Tier.LEXICAL_EXACT
    lonely = trust(semantic=hit())
    assert (lonely.tier, lonely.confidence) == (Tier.SEMANTIC_ONLY, Confidence.LOW)
    assert "verify" in lonely.nuance


def test_a_stale_item_says_so_and_is_never_trusted() -> None:
    found = trust(STALE, symbols=hit(is_definition=True, content_hash="0" * 64), grep=hit(is_exact=True))
    assert found.tier is Tier.SYMBOL_CONFIRMED
    assert found.confidence is Confidence.LOW
    assert "changed" in found.nuance


def test_freshness_stays_missing_when_nobody_can_tell() -> None:
    (item,) = fuse({"semantic": [hit()]})
    assert sub_scores(item.candidate, CARDS, item.score, 1.0).freshness is None
    (item,) = fuse({"grep": [hit()]})
    assert sub_scores(item.candidate, CARDS, item.score, 1.0).freshness == 1.0


def test_confidence_does_not_follow_the_fused_score() -> None:
    first = fuse({"semantic": [hit()]})[0]
    late = fuse({"semantic": [Hit("demo", "src/b.py", n, n) for n in range(1, 40)] + [hit()]})[-1]
    assert first.score > late.score
    of = lambda f: judge_trust(f.candidate, CARDS, sub_scores(f.candidate, CARDS, f.score, 1.0), ())  # noqa: E731 - short, and used on the next lines only
    assert of(first).confidence == of(late).confidence


def test_a_commit_is_history() -> None:
    commit = Hit("demo", commit=CommitRecord("a" * 40, "2020-01-01", "a", "fix"), is_exact=True)
    assert trust(history=commit).tier is Tier.HISTORY
