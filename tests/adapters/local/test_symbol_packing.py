"""What is packed comes back; what is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.symbol_packing import DamagedPayload, compact_syntax, pack_syntax, unpack_syntax
from search_router.adapters.local.syntax import REFERENCE_KINDS, Extracted, Reference, extract
from search_router.schema import Definition

names = st.text(min_size=1, max_size=12).filter(lambda name: name.encode("utf-8", "ignore").decode() == name)
lines = st.integers(1, 2**29)
definitions = st.builds(Definition, names, st.sampled_from(("class", "method")), lines, lines, names)
references = st.builds(Reference, names, lines, st.sampled_from(REFERENCE_KINDS))


@given(st.lists(definitions, max_size=8), st.lists(references, max_size=30, unique_by=lambda r: (r.name, r.line)))
def test_every_fact_survives_packing(defined: list[Definition], used: list[Reference]) -> None:
    syntax = compact_syntax(Extracted(tuple(defined), tuple(sorted(used, key=lambda r: (r.line, r.name)))))
    back = unpack_syntax(pack_syntax(syntax))
    assert back == syntax
    found = [Reference(name, line, kind) for i, name in enumerate(back.names) for line, kind in back.uses_at(i)]
    assert sorted(found) == sorted(used)


def test_a_changed_byte_is_noticed() -> None:
    packed = pack_syntax(compact_syntax(extract(b"def f(): return g(1)\n" * 30, "python")))
    for at in range(2, len(packed), 7):
        with pytest.raises(DamagedPayload):
            unpack_syntax(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])


@pytest.mark.parametrize("data", [b"", b"nonsense", pack_syntax(compact_syntax(Extracted((), ())))[:-1]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedPayload):
        unpack_syntax(data)
