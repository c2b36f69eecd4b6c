from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.knowledge_rank import move_before, time_factor
from search_router.adapters.local.knowledge_time import (
    DocumentStatus,
    Validity,
    date_in,
    find_successors,
    last_successor,
    read_validity,
    recency,
    status_on,
)
from search_router.config.experts import KnowledgeWeights

TODAY = datetime.date(2026, 6, 1)


@pytest.mark.parametrize(
    ("validity", "expected"),
    [
        (Validity(), DocumentStatus.CURRENT),
        (Validity(valid_until="2026-06-01"), DocumentStatus.CURRENT),
        (Validity(valid_until="2026-05-31"), DocumentStatus.EXPIRED),
        (Validity(valid_from="2026-06-01"), DocumentStatus.CURRENT),
        (Validity(valid_from="2026-06-02"), DocumentStatus.PENDING),
        (Validity(said=DocumentStatus.PENDING), DocumentStatus.PENDING),
        (Validity(said=DocumentStatus.HISTORICAL, valid_until="2020-01-01"), DocumentStatus.HISTORICAL),
        (Validity(said=DocumentStatus.CURRENT, superseded_by=("x",)), DocumentStatus.SUPERSEDED),
    ],
)
def test_the_status_follows_from_what_is_said_and_the_day(validity: Validity, expected: DocumentStatus) -> None:
    assert status_on(validity, TODAY, is_replaced=False) is expected


def test_what_another_document_replaces_is_superseded() -> None:
    assert status_on(Validity(said=DocumentStatus.CURRENT), TODAY, is_replaced=True) is DocumentStatus.SUPERSEDED


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("Accepted", DocumentStatus.CURRENT),
        ("Superseded by ADR-0007", DocumentStatus.SUPERSEDED),
        ("Proposed", DocumentStatus.PENDING),
        ("deprecated", DocumentStatus.HISTORICAL),
        ("~~Accepted~~ Superseded", DocumentStatus.CURRENT),
        ("whatever", None),
    ],
)
def test_status_words_are_read_by_their_first(word: str, status: DocumentStatus | None) -> None:
    assert read_validity({"status": (word,)}, "a.md", "A").said is status


@pytest.mark.parametrize(
    "reference",
    ["0007-b.md", "../adr/0007-b.md", "adr/0007-b.md", "ADR-0007", "7", "ADR 7: something", "0007-b", "Use B", "[ADR 7](./0007-b.md)"],
)
def test_successors_are_found_by_whatever_they_are_called(reference: str) -> None:
    documents = {
        "adr/0003-a.md": ("Use A", read_validity({"status": (f"Superseded by {reference}",)}, "adr/0003-a.md", "Use A")),
        "adr/0007-b.md": ("Use B", Validity()),
        "other/0007-c.md": ("Use C", Validity()),
    }
    assert find_successors(documents) == {"adr/0003-a.md": "adr/0007-b.md"}


def test_supersedes_is_the_same_told_from_the_other_side() -> None:
    new = read_validity({"supersedes": ("old.md",)}, "new.md", "New")
    assert find_successors({"old.md": ("Old", Validity()), "new.md": ("New", new)}) == {"old.md": "new.md"}


def test_a_chain_leads_to_its_end_and_a_ring_nowhere() -> None:
    assert last_successor("a", {"a": "b", "b": "c"}) == "c"
    assert last_successor("a", {"a": "b", "b": "a"}) is None
    assert last_successor("c", {"a": "b"}) is None


@pytest.mark.parametrize(
    ("text", "date"), [("notes/2026-03-07-x.md", "2026-03-07"), ("20240229.md", "2024-02-29"), ("2023-02-30", None), ("v1.20260.1", None)]
)
def test_dates_stand_in_names(text: str, date: str | None) -> None:
    assert date_in(text) == date


def test_recency_halves_with_the_half_life() -> None:
    assert recency("2025-06-01", TODAY, 365) == 0.5
    assert recency("2030-01-01", TODAY, 365) == 1.0
    assert recency(None, TODAY, 365) == 0.0


def test_a_living_document_says_so_in_several_ways() -> None:
    assert read_validity({"component": ("Payments",)}, "a.md", "A").component == "payments"
    assert read_validity({"tags": ("living",)}, "a.md", "Payments").component == "payments"
    assert read_validity({"living": ("true",)}, "a.md", "Payments").component == "payments"
    assert read_validity({"tags": ("x",)}, "a.md", "Payments").component is None


@given(
    st.integers(0, 12).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, max(0, n - 1)), st.integers(0, max(0, n - 1))), max_size=8))
    )
)
def test_moving_before_keeps_everything_and_does_what_it_says(case: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = case
    pairs = [(later, earlier) for later, earlier in pairs if later < count and earlier < count and later < earlier]
    order = move_before(count, pairs)
    assert sorted(order) == list(range(count))
    assert all(order.index(earlier) < order.index(later) for later, earlier in pairs)
    assert move_before(count, []) == list(range(count))


@given(
    st.dates(datetime.date(1970, 1, 1), datetime.date(2100, 1, 1)).map(lambda d: d.isoformat()) | st.none(),
    st.dates(datetime.date(2000, 1, 1), datetime.date(2050, 1, 1)),
    st.sampled_from(DocumentStatus),
    st.integers(1, 5000),
    st.floats(0, 1),
)
def test_at_temporal_weight_zero_a_date_counts_for_exactly_nothing(
    date: str | None, today: datetime.date, status: DocumentStatus, half_life: int, damping: float
) -> None:
    weights = KnowledgeWeights(lexical=1, semantic=1, document=1, temporal=0, historical_damping=damping)
    dated, undated = (time_factor(Validity(content_date=each), status, today, weights, half_life) for each in (date, None))
    assert dated == undated
    assert status not in (DocumentStatus.CURRENT, DocumentStatus.PENDING) or dated == 1.0


@given(st.floats(0, 1), st.integers(0, 40_000), st.integers(0, 40_000), st.integers(1, 5000))
def test_a_newer_document_never_loses_by_its_date_and_gains_at_most_the_weight(weight: float, one: int, two: int, half_life: int) -> None:
    weights = KnowledgeWeights(lexical=1, semantic=1, document=1, temporal=weight, historical_damping=0.5)
    today = datetime.date(2026, 6, 1)

    def factor(age: int) -> float:
        written = (today - datetime.timedelta(days=age)).isoformat()
        return time_factor(Validity(content_date=written), DocumentStatus.CURRENT, today, weights, half_life)

    newer, older = factor(min(one, two)), factor(max(one, two))
    assert 1.0 <= older <= newer <= 1.0 + weight
