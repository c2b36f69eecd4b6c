"""A statement that is settled but for its place in a log: written out once, by the request, so that the writer only puts the place in."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from search_router.canonical import Json, canonical_plain
from search_router.receipts.envelope import has_huge_integer
from search_router.receipts.statement import Position, StatementFacts, parse_own_statement, statement_facts

PLACE = ("log", "nonce", "prev", "seq", "time_us")
"""The members of the predicate that only the writer knows, in canonical order."""

_SUSPICIOUS = (b".", b"e-", b"e+", b"N", b"I")
"""One of them is in every float that Python writes, in NaN and in infinities; JSON without them has none outside of its strings."""


class PreparedStatement:
    """The canonical bytes of a statement for whatever place it gets, and what the log's columns say of it.

    Both come from the same value, so that the columns cannot say anything else than what is signed.
    """

    __slots__ = ("_facts", "_pieces")

    def __init__(self, head: dict[str, Json], predicate: dict[str, Json]) -> None:
        """`head` is the statement without its predicate, `predicate` without its place; all names are ASCII.

        Raises:
            ReceiptError: there is a float in it, or an integer beyond 2**53 - 1.
            ValueError: it has no canonical form, or is not a search receipt.
        """
        before, after = _split(head, ("predicate",))
        first, *rest, last = _split(predicate, PLACE)
        self._pieces = (before + first, *rest, last + after)
        numbers = _outside_strings(b" ".join(self._pieces))
        if any(sign in numbers for sign in _SUSPICIOUS) or has_huge_integer(numbers):
            parse_own_statement(self(_SOMEWHERE))  # says what is wrong, if anything is
        place: dict[str, Json] = {name: getattr(_SOMEWHERE, name) for name in PLACE}
        self._facts = statement_facts(head | {"predicate": predicate | place})

    def __call__(self, position: Position) -> bytes:
        """The statement's RFC 8785 bytes at this place."""
        start, after_log, after_nonce, after_prev, after_seq, end = self._pieces
        log, nonce, prev = canonical_plain(position.log), canonical_plain(position.nonce), canonical_plain(position.prev)
        seq, time_us = b"%d" % position.seq, b"%d" % position.time_us
        return b"".join((start, log, after_log, nonce, after_nonce, prev, after_prev, seq, after_seq, time_us, end))

    def facts(self, position: Position) -> StatementFacts:
        """What `statement_facts` reads from the statement at this place."""
        fixed = self._facts
        return StatementFacts(position, fixed.status, fixed.intent, fixed.question_digest, fixed.request, fixed.response)


def _split(members: dict[str, Json], holes: Sequence[str]) -> list[bytes]:
    """The canonical bytes of an object with these members and `holes`, as what stands before, between and after the holes' values."""
    groups: list[dict[str, Json]] = [{} for _ in range(len(holes) + 1)]
    for name, value in members.items():
        groups[bisect(holes, name)][name] = value
    written = [canonical_plain(group)[1:-1] for group in groups]
    pieces = [b",".join(filter(None, (text, b'"%b":' % hole.encode("ascii")))) for text, hole in zip(written, holes, strict=False)]
    ended = [*pieces, written[-1]]
    return [b"{" + ended[0], *(b"," + piece for piece in ended[1:-1]), (b"," if ended[-1] else b"") + ended[-1] + b"}"]


def _outside_strings(data: bytes) -> bytes:
    """Pieces of JSON without what stands in their strings."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # then every quotation mark begins or ends a string
    return b"".join(data.split(b'"')[::2])


_SOMEWHERE = Position(log="0" * 12, seq=1, prev="0" * 64, time_us=0, nonce="0" * 32)
