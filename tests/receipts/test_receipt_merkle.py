"""The tree is RFC 9162's: compared with the RFC's own recursive definition and with an independent implementation."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from search_router.receipts.merkle import (
    Tree,
    grow,
    hash_children,
    hash_leaf,
    prove_consistency,
    prove_inclusion,
    tree_at,
    verify_consistency,
    verify_inclusion,
)

SIZES = st.integers(1, 70)


def leaf(number: int) -> bytes:
    return hashlib.sha256(number.to_bytes(4, "big")).digest()


def mth(leaves: list[bytes]) -> bytes:
    """MTH(D[n]) of section 2.1.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH(m, D[n]) of section 2.1.3.1."""
    if len(leaves) == 1:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return [*path(m, leaves[:k]), mth(leaves[k:])] if m < k else [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: list[bytes], whole: bool) -> list[bytes]:
    """SUBPROOF(m, D[n], b) of section 2.1.4.1."""
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


class Stored:
    """What a log stores: the leaves, and with each leaf the subtrees that it completes."""

    def __init__(self, size: int) -> None:
        self.leaves = [leaf(n) for n in range(size)]
        self.completed: list[tuple[bytes, ...]] = []
        self.tree = Tree()
        for data in self.leaves:
            self.tree, nodes = self.tree.append(data)
            self.completed.append(nodes)

    def read(self, level: int, number: int) -> bytes:
        return hash_leaf(self.leaves[number]) if level == 0 else self.completed[((number + 1) << level) - 1][level - 1]


STORED = Stored(70)
INDEPENDENT = InmemoryTree(algorithm="sha256")
for _data in STORED.leaves:
    INDEPENDENT.append_entry(_data)


@pytest.mark.parametrize("size", range(71))
def test_the_root_of_any_size_is_that_of_the_rfc_and_of_an_independent_implementation(size: int) -> None:
    expected = mth(STORED.leaves[:size])

    assert grow(Tree(), STORED.leaves[:size]).root() == expected
    assert tree_at(STORED.read, size) == grow(Tree(), STORED.leaves[:size])
    assert INDEPENDENT.get_root(size) == expected


def test_a_leaf_completes_as_many_subtrees_as_two_divides_the_size() -> None:
    assert [len(nodes) for nodes in STORED.completed[:8]] == [0, 1, 0, 2, 0, 1, 0, 3]


@given(SIZES, st.data())
def test_inclusion_proofs_are_the_rfc_s_and_verify(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = prove_inclusion(STORED.read, index, size)

    assert list(proof) == path(index, STORED.leaves[:size])
    assert verify_inclusion(leaf(index), index, size, mth(STORED.leaves[:size]), proof)


@given(SIZES, st.data())
def test_consistency_proofs_are_the_rfc_s_and_verify(size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, size))
    proof = prove_consistency(STORED.read, first, size)

    assert list(proof) == subproof(first, STORED.leaves[:size], True)
    assert verify_consistency(first, size, mth(STORED.leaves[:first]), mth(STORED.leaves[:size]), proof)


@given(SIZES, st.data())
def test_nothing_else_verifies_as_included(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    other = data.draw(st.integers(0, size - 1).filter(lambda n: n != index) if size > 1 else st.just(size))
    root, proof = mth(STORED.leaves[:size]), prove_inclusion(STORED.read, index, size)

    assert not verify_inclusion(leaf(other), index, size, root, proof)
    assert not verify_inclusion(leaf(index), other, size, root, proof)
    assert not verify_inclusion(leaf(index), index, size, bytes(32), proof)
    assert not verify_inclusion(leaf(index), index, size, root, (*proof, bytes(32)))
    assert not proof or not verify_inclusion(leaf(index), index, size, root, proof[:-1])


@given(st.integers(2, 70), st.data())
def test_a_changed_past_has_no_consistency_proof(size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, size - 1))
    place = data.draw(st.integers(0, first - 1))
    forged = [b"forged" if n == place else one for n, one in enumerate(STORED.leaves[:size])]
    old, proof = mth(STORED.leaves[:first]), prove_consistency(STORED.read, first, size)

    assert not verify_consistency(first, size, old, mth(forged), proof)
    assert not verify_consistency(first, size, old, mth(forged), subproof(first, forged, True))
    assert not verify_consistency(first, size, old, mth(STORED.leaves[:size]), (*proof, bytes(32)))
    assert not verify_consistency(first, size, old, mth(STORED.leaves[:size]), proof[:-1])


@given(st.integers(0, 70), st.integers(0, 70))
def test_sizes_that_do_not_fit_are_refused(first: int, second: int) -> None:
    if first > second:
        with pytest.raises(ValueError, match="cannot have become"):
            prove_consistency(STORED.read, first, second)
        assert not verify_consistency(first, second, mth(STORED.leaves[:first]), mth(STORED.leaves[:second]), ())
    if first >= second:
        with pytest.raises(ValueError, match="no leaf"):
            prove_inclusion(STORED.read, first, second)


def test_a_tree_of_nothing_or_of_the_same_size_needs_no_proof() -> None:
    empty, root = hashlib.sha256().digest(), mth(STORED.leaves[:9])

    assert prove_consistency(STORED.read, 0, 9) == prove_consistency(STORED.read, 9, 9) == ()
    assert verify_consistency(0, 9, empty, root, ())
    assert verify_consistency(9, 9, root, root, ())
    assert not verify_consistency(9, 9, empty, root, ())
    assert not verify_consistency(0, 9, root, root, ())


def test_leaves_and_nodes_are_told_apart() -> None:
    left, right = leaf(1), leaf(2)

    assert hash_leaf(left + right) != hash_children(left, right)
