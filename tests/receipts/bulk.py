"""A long log, made quickly: real receipts in one transaction. `python -m tests.receipts.bulk HOME COUNT`."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import sys
from pathlib import Path

from search_router.receipts.claim import claim_log
from search_router.receipts.envelope import sign_envelope
from search_router.receipts.keys import SigningKey, load_or_create_key
from search_router.receipts.log import COLUMNS, Row
from search_router.receipts.statement import Position
from tests.receipts.samples import make_answer, make_payload, now_us


def write_log(directory: Path, key: SigningKey, count: int, items: int = 10) -> Path:
    """A log of `count` receipts of answers with so many items."""
    claimed = claim_log(directory, key.keyid, created_us=now_us(), new_id=lambda: secrets.token_hex(6))
    try:
        place, head, tree = make_payload(key, make_answer(items)), claimed.tip.head, claimed.tip.tree
        seq, last = head.seq, head.hash
        with contextlib.closing(sqlite3.connect(claimed.path, isolation_level=None)) as database:
            database.execute("BEGIN")
            for _ in range(count):
                seq += 1
                position = Position(claimed.id, seq, last, now_us(), secrets.token_hex(16))
                row = Row.of(place.facts(position), sign_envelope(place(position), key))
                tree, completed = tree.append(bytes.fromhex(row.hash))
                database.execute(f"INSERT INTO receipts VALUES ({', '.join('?' * len(COLUMNS))})", row.values(completed))
                last = row.hash
            database.execute("COMMIT")
    finally:
        claimed.release()
    return claimed.path


if __name__ == "__main__":
    home = Path(sys.argv[1])
    write_log(home / "receipts", load_or_create_key(home / "keys" / "receipt-ed25519.pem"), int(sys.argv[2]))
