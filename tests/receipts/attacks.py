"""What an attacker with the database, or with a key, can do to a log. Every attack edits a closed log's file through SQL."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from search_router.canonical import canonical_bytes, sha256_hex
from search_router.receipts.envelope import parse_envelope, sign_envelope
from search_router.receipts.keys import SigningKey
from search_router.receipts.merkle import Tree

Attack = Callable[[sqlite3.Connection, str], None]


def attack(path: Path, *attacks: Attack) -> Path:
    """Carry attacks out on the log at `path`."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        for one in attacks:
            one(database, path.stem)
    return path


def sql(*statements: str) -> Attack:
    def run(database: sqlite3.Connection, _: str) -> None:
        for statement in statements:
            database.execute(statement)

    return run


def edit_envelope(seq: int, edit: Callable[[dict[str, Any]], object]) -> Attack:
    def run(database: sqlite3.Connection, _: str) -> None:
        envelope = json.loads(database.execute("SELECT envelope FROM receipts WHERE seq = ?", (seq,)).fetchone()[0])
        edit(envelope)
        database.execute("UPDATE receipts SET envelope = ? WHERE seq = ?", (json.dumps(envelope, separators=(",", ":")).encode(), seq))

    return run


def edit_payload(old: bytes = b'"s-1"', new: bytes = b'"s-2"') -> Callable[[dict[str, Any]], None]:
    def edit(envelope: dict[str, Any]) -> None:
        payload = base64.b64decode(envelope["payload"])
        assert old in payload
        envelope["payload"] = base64.b64encode(payload.replace(old, new)).decode()

    return edit


def edit_signature(envelope: dict[str, Any]) -> None:
    signature = envelope["signatures"][0]
    blob = bytearray(base64.b64decode(signature["sig"]))
    blob[10] ^= 1
    signature["sig"] = base64.b64encode(blob).decode()


def restore_tree(database: sqlite3.Connection, _: str) -> None:
    """Make the stored subtrees those of the rows that are there now."""
    tree = Tree()
    for seq, payload_hash in database.execute("SELECT seq, hash FROM receipts ORDER BY seq").fetchall():
        tree, completed = tree.append(bytes.fromhex(payload_hash))
        database.execute("UPDATE receipts SET nodes = ? WHERE seq = ?", (b"".join(completed), seq))


def rebuild(key: SigningKey, *, from_seq: int, rechain: bool = True) -> Attack:
    """Sign all from `from_seq` on anew, with changed content; with `rechain` the chain and the tree are made whole again."""

    def run(database: sqlite3.Connection, log: str) -> None:
        prev = None
        for seq, blob in database.execute("SELECT seq, envelope FROM receipts WHERE seq >= ? ORDER BY seq", (from_seq,)).fetchall():
            statement = json.loads(parse_envelope(blob).payload)
            statement["predicate"]["session"] = "forged"
            if rechain and prev is not None:
                statement["predicate"]["prev"] = prev
            envelope = sign_envelope(canonical_bytes(statement), key)
            prev = sha256_hex(envelope.payload)
            row = (statement["predicate"]["prev"], prev, envelope.to_bytes(), key.keyid, seq)
            database.execute("UPDATE receipts SET prev = ?, hash = ?, envelope = ?, keyid = ? WHERE seq = ?", row)
        if from_seq == 1:
            database.execute("UPDATE log SET keyid = ?", (key.keyid,))
        if rechain:
            restore_tree(database, log)

    return run


SWAP = sql(
    *(
        f"UPDATE receipts SET {name} = (SELECT {name} FROM receipts r WHERE r.seq = 9 - receipts.seq) WHERE seq IN (4, 5)"
        for name in ("hash", "envelope", "time_us")
    )
)
"""Receipts 4 and 5 change places."""


def replay(seq: int, prev: str, of: int = 3) -> Attack:
    """Insert a copy of a receipt as number `seq`; `prev` is SQL."""
    columns = "hash, envelope, time_us, status, intent, question_digest, keyid, nodes"
    return sql(f"INSERT INTO receipts SELECT {seq}, {prev}, {columns} FROM receipts WHERE seq = {of}")
