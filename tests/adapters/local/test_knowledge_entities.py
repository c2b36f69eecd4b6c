from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.knowledge_entities import MAX_ENTITIES, entity_key, find_entities, names_entity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call `Invoice.send()` and ``send_all``", ("invoice.send", "send_all")),
        ("`Ledger::book` or `Ledger#close`", ("ledger.book", "ledger.close")),
        ("org has =tidy_up= and ~Sweeper.run~", ("tidy_up", "sweeper.run")),
        ("`rm -rf /` and `a = b` and `1.5` are no names", ()),
        ("x = 1 and y = 2, a==b", ()),
        ("`@decorate` twice `decorate`", ("decorate",)),
    ],
)
def test_names_in_code_marks_are_what_a_document_names(text: str, expected: tuple[str, ...]) -> None:
    assert find_entities({}, [text]) == expected


def test_front_matter_comes_first_and_components_are_entities() -> None:
    front = {"entities": ("Billing", "Ledger"), "component": ("payments, refunds",)}
    assert find_entities(front, ["`billing`"]) == ("billing", "ledger", "payments", "refunds")


def test_a_document_of_nothing_but_names_keeps_a_bounded_number() -> None:
    assert len(find_entities({}, [" ".join(f"`name_{n}`" for n in range(5000))])) == MAX_ENTITIES


def test_the_end_of_a_qualified_name_names_it_and_the_middle_of_a_word_does_not() -> None:
    assert names_entity(("paymentservice.retry",), entity_key("Retry()"))
    assert not names_entity(("paymentservice.noretry",), entity_key("retry"))


@given(st.text())
def test_any_text_gives_keys_that_are_their_own_keys(text: str) -> None:
    assert all(entity_key(key) == key for key in find_entities({}, [f"`{text}`", text]))
