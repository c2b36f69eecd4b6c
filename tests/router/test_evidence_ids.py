"""An evidence id means the same bytes of a file name whatever the locale of the process that reads it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.textfile import decode_path
from search_router.errors import EvidenceError
from search_router.router.evidence import CodeAddress, code_id, parse_evidence_id, readable_path
from tests.server_child import ROOT

HASH = "0123456789ab" + "0" * 52
NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)
IN_A_CHILD = """
import sys
from search_router.router.evidence import code_id, parse_evidence_id, readable_path
from search_router.adapters.local.textfile import decode_path, encode_path
assert sys.getfilesystemencoding() != "utf-8", sys.getfilesystemencoding()
name = bytes.fromhex(sys.argv[1])
made = code_id("p", decode_path(name), 1, 2, "0" * 64)
assert encode_path(parse_evidence_id(made).path) == name
print(made, ascii(readable_path(decode_path(name))))
"""


@given(NAMES)
def test_every_file_name_survives_its_id(name: bytes) -> None:
    found = parse_evidence_id(code_id("p", decode_path(name), 3, 9, HASH))
    assert found == CodeAddress("p", decode_path(name), 3, 9, HASH[:12])
    readable_path(decode_path(name)).encode("utf-8")


@pytest.mark.parametrize("name", ["naïve 搜索.py".encode(), b"caf\xe9.py", b"plain.py"])
def test_a_process_in_another_locale_makes_and_reads_the_same_ids(name: bytes) -> None:
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", IN_A_CHILD, name.hex()]
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.strip() == f"{code_id('p', decode_path(name), 1, 2, '0' * 64)} {readable_path(decode_path(name))!a}"


@pytest.mark.parametrize("text", ["p/a.py#L9-L1@000000000000", "p/a.py#L0-L1@000000000000", "a.py", ""])
def test_what_search_never_made_is_no_id(text: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        parse_evidence_id(text)
    assert caught.value.code == "bad-evidence-id"
