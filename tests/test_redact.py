"""What looks like a secret goes; what does not, stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.redact import MAX_SCRUBBED, REMOVED, scrub


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 for Authorization: Bearer abcDEF123456.xyz", "abcDEF123456"),
        ("sent {'authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
        ("curl said: Bearer eyABCDEF-123", "eyABCDEF-123"),
        ("basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("Cookie: session=9f8e7d", "9f8e7d"),
        ("the key sk-proj-abcdef0123456789 was refused", "abcdef0123456789"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd", "0123456789abcdef"),
        ("github_pat_11ABCDEFG0123456789_xyz", "11ABCDEFG"),
        ("glpat-abcdefghij0123456789", "abcdefghij"),
        ("AKIAIOSFODNN7EXAMPLE is unknown", "IOSFODNN7"),
        ("xoxb-123456789012-abcdef", "123456789012"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc_def", "eyJzdWIi"),
        ("https://alice:s3cr3t@example.org/x failed", "s3cr3t"),
        ("https://alice:p@ss@example.org/x failed", "p@ss"),
        ("postgres://app:hunter2@db/prod", "hunter2"),
        ("password=hunter2 rejected", "hunter2"),
        ('{"password": "two words"}', "two words"),
        ("PGPASSWORD=hunter2", "hunter2"),
        ("OPENAI_API_KEY=abc123 is not valid", "abc123"),
        ("api-key: abc123", "abc123"),
        ("client_secret='abc 123'", "abc 123"),
        ("https://h/x?access_token=abc123&y=1", "abc123"),
        ("https://h/x?sig=0123456789abcdef0123", "0123456789abcdef"),
        ("token=9f86d081884c7d659a2feaa0c55ad015", "9f86d081"),
        ("key: YWJjZGVmZ2hpamtsbW5vcA1=", "YWJjZGVm"),
        ("tool --password hunter2 --verbose", "hunter2"),
        ("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQ\n-----END PRIVATE KEY-----\n", "MC4CAQ"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMC4CAQAwBQ cut off", "MC4CAQ"),
    ],
)
def test_a_secret_is_removed(text: str, secret: str) -> None:
    clean = scrub(text)

    assert secret not in clean
    assert REMOVED in clean


@pytest.mark.parametrize(
    "text",
    [
        "index commit 3f786850e387550fdab836ed7e6dc881de23001b is behind HEAD",
        "unknown key: expected_shape",
        "KeyError: 'handlers'",
        "the tokenizer cut 12 tokens: the line is too long",
        "https://example.org/a@b",
        "mailto alice@example.org",
        "a basic understanding of bearers",
        "timeout after 2000 ms; ask again",
        "/srv/secrets/notes.md is not readable",
    ],
)
def test_an_ordinary_sentence_stays(text: str) -> None:
    assert scrub(text) == text


def test_the_name_of_a_secret_stays_so_that_a_reader_knows_what_was_there() -> None:
    assert scrub("password=hunter2 rejected by https://a:b@h/") == "password=[removed] rejected by https://[removed]@h/"


def test_a_text_is_scrubbed_before_it_is_cut() -> None:
    clean = scrub("x" * 280 + " Authorization: Bearer abcdefghijklmnop", limit=300)

    assert len(clean) == 300
    assert clean.endswith("…")
    assert "abcdef" not in clean


@pytest.mark.parametrize(
    "unit", ["a", "key=", "a://", "token: ", "-----BEGIN PRIVATE KEY-----", "basic ", "--token ", "eyJ", "sk-", " ", "'"]
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = (unit * MAX_SCRUBBED)[:MAX_SCRUBBED]
    started = time.process_time()

    scrub(text)

    assert time.process_time() - started < 2


@given(st.text(), st.integers(1, 50))
def test_the_limit_holds_for_any_text(text: str, limit: int) -> None:
    assert len(scrub(text, limit)) <= limit
