"""Receipts of this machine's store, verified with `receipts.verify`. What it trusts is named by the caller, else the machine's own key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_router.config.state import StatePaths
from search_router.errors import ReceiptNotFound
from search_router.receipts.log import log_ids, log_path
from search_router.receipts.reading import Receipt, ReceiptReader
from search_router.receipts.trust import Trust, load_public_key
from search_router.receipts.verify import EXIT_CODES, VerdictKind, verify_envelope
from search_router.receipts.whole_log import verify_log


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one receipt or one log."""

    what: str
    verdict: VerdictKind
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]


def trust_of(paths: StatePaths, keys: Sequence[Path]) -> Trust:
    """The named public keys, else the one beside this machine's signing key. Raises KeyUnusable."""
    return Trust.pinning(*(load_public_key(path) for path in keys or (Path(f"{paths.key}.pub"),)))


def verify_whole_logs(paths: StatePaths, keys: Sequence[Path], only: Sequence[str] = ()) -> list[Checked]:
    """The named logs, else every log of the store: signatures, canonical bytes, chain. Raises ReceiptNotFound when there is none."""
    trust = trust_of(paths, keys)
    there = log_ids(paths.receipts)
    logs = list(only) or there
    if not logs or not set(logs) <= set(there):
        raise ReceiptNotFound(f"There is no such receipt log in {paths.receipts}.", remedy="`search-router receipts list` shows the logs.")
    verdicts = [verify_log(log_path(paths.receipts, log), trust) for log in logs]
    return [Checked(f"log {v.log}, {v.rows} receipts", v.kind, v.reasons, v.notes) for v in verdicts]


async def verify_some(paths: StatePaths, keys: Sequence[Path], receipt_ids: Sequence[str], last: bool, answer: Any) -> list[Checked]:
    """The named receipts, or the newest; with `answer` (a whole JSON answer) also that the receipt is about this very answer."""
    trust = trust_of(paths, keys)
    reader = ReceiptReader(paths.receipts)
    found: list[Receipt] = [await reader.get(receipt_id) for receipt_id in receipt_ids]
    if last:
        found += await reader.list(1)
    if not found:
        raise ReceiptNotFound(f"There is no receipt in {paths.receipts}.", remedy="Ask a question first.")
    response = None if answer is None else {k: v for k, v in dict[str, Any](answer).items() if k not in ("receipt", "id")}
    checked: list[Checked] = []
    for receipt in found:
        verdict = verify_envelope(receipt.envelope, trust, response=response)
        checked.append(Checked(receipt.id, verdict.kind, verdict.reasons))
    return checked
