"""The Merkle tree of RFC 9162, section 2.1: roots, inclusion proofs and consistency proofs of an append-only list.

Pure functions over hashes. A tree that grows is held as its peaks, the roots of its complete subtrees; proofs read older subtrees through a
function, so that a log of millions needs neither memory nor re-reading.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

HASH_BYTES = 32

ReadNode = Callable[[int, int], bytes]
"""The hash of the complete subtree (level, number): it covers the 2**level leaves from number * 2**level on."""


def hash_leaf(data: bytes) -> bytes:
    """SHA-256(0x00 || data)."""
    return hashlib.sha256(b"\x00" + data).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree(NamedTuple):
    """A tree of `size` leaves as the hashes of its complete subtrees, the largest and leftmost first: one a bit that is set in `size`."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def append(self, data: bytes) -> tuple[Tree, tuple[bytes, ...]]:
        """The tree with one more leaf, and the subtrees of level 1, 2, … which that leaf completes (as many as 2 divides the new size)."""
        peaks, node, rest = list(self.peaks), hash_leaf(data), self.size
        completed: list[bytes] = []
        while rest & 1:
            node = hash_children(peaks.pop(), node)
            completed.append(node)
            rest >>= 1
        return Tree(self.size + 1, (*peaks, node)), tuple(completed)

    def root(self) -> bytes:
        """MTH of all leaves; SHA-256 of nothing for the empty tree."""
        if not self.peaks:
            return hashlib.sha256().digest()
        node = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            node = hash_children(peak, node)
        return node


def grow(tree: Tree, leaves: Iterable[bytes]) -> Tree:
    """The tree with these leaves appended."""
    for data in leaves:
        tree, _ = tree.append(data)
    return tree


def tree_at(read: ReadNode, size: int) -> Tree:
    """The tree of the first `size` leaves, from stored subtrees: one read a bit that is set in `size`."""
    peaks: list[bytes] = []
    start = 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            peaks.append(read(level, start >> level))
            start += 1 << level
    return Tree(size, tuple(peaks))


def prove_inclusion(read: ReadNode, index: int, size: int) -> tuple[bytes, ...]:
    """PATH(index, D[size]) of section 2.1.3.1: what proves that leaf `index` (from 0) is in the tree of `size` leaves."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} among {size}")
    proof: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            proof.append(_hash_range(read, middle, end))
            end = middle
        else:
            proof.append(_hash_range(read, start, middle))
            start = middle
    return tuple(reversed(proof))


def prove_consistency(read: ReadNode, first: int, second: int) -> tuple[bytes, ...]:
    """PROOF(first, D[second]) of section 2.1.4.1: what proves that the first `first` of `second` leaves are still the same.

    Empty when there is nothing to prove: no leaves at first, or the same number.
    """
    if not 0 <= first <= second:
        raise ValueError(f"{first} leaves cannot have become {second}")
    if first in (0, second):
        return ()
    proof: list[bytes] = []
    start, end, whole = 0, second, True
    while first < end:
        middle = start + _split(end - start)
        if first <= middle:
            proof.append(_hash_range(read, middle, end))
            end = middle
        else:
            proof.append(_hash_range(read, start, middle))
            start, whole = middle, False
    if not whole:
        proof.append(_hash_range(read, start, end))
    return tuple(reversed(proof))


def verify_inclusion(data: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that leaf `index` of the tree with this size and root is `data`. Section 2.1.3.2."""
    if not 0 <= index < size:
        return False
    place, last, node = index, size - 1, hash_leaf(data)
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = hash_children(sibling, node)
            place, last = _climb_to_right_child(place, last)
        else:
            node = hash_children(node, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def verify_consistency(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the second tree is the first with leaves appended. Section 2.1.4.2."""
    if not 0 <= first <= second:
        return False
    if first in (0, second):
        known = first_root == (second_root if first == second else hashlib.sha256().digest())
        return known and not proof
    path = [first_root, *proof] if first & (first - 1) == 0 else list(proof)
    if not path:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = hash_children(sibling, old), hash_children(sibling, new)
            place, last = _climb_to_right_child(place, last)
        else:
            new = hash_children(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root


def _climb_to_right_child(place: int, last: int) -> tuple[int, int]:
    """Past the levels at which a left child has no sibling and so is its own parent."""
    while place and not place & 1:
        place, last = place >> 1, last >> 1
    return place, last


def _split(count: int) -> int:
    """The largest power of two below `count`, for count > 1: where the RFC divides a list."""
    return 1 << ((count - 1).bit_length() - 1)


def _hash_range(read: ReadNode, start: int, end: int) -> bytes:
    """MTH(D[start:end]), where `start` is a place at which the RFC's recursion divides: a multiple of the range's largest subtree."""
    count = end - start
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return read(level, start >> level)
    middle = start + _split(count)
    return hash_children(_hash_range(read, start, middle), _hash_range(read, middle, end))
