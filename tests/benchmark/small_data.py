"""Two small repositories, and questions about them with known targets."""

from __future__ import annotations

import json
from pathlib import Path

from search_router.benchmark.quality import Data

FILES = {
    "shop/src/payment_retry.py": "class PaymentRetry:\n"
    "    '''Retries a failed payment with backoff.'''\n    def attempt(self, payment):\n        return payment\n",
    "shop/src/invoice.py": "def render_invoice(order):\n    '''Lay an invoice out for printing.'''\n    return str(order)\n",
    "shop/src/order_list.py": "def sort_orders(orders):\n    return sorted(orders)\n",
    "tools/log_reader.go": "package tools\n\n// ReadLog reads lines of a log file.\n"
    "func ReadLog(path string) []string {\n\treturn nil\n}\n",
    "tools/clock.go": "package tools\n\n// Now is the time of day.\nfunc Now() int {\n\treturn 0\n}\n",
}
QUESTIONS = (
    ("shop:0", "shop", "python", "semantic", "how is a failed payment retried with backoff", "src/payment_retry.py"),
    ("shop:1", "shop", "python", "symbol", "render_invoice", "src/invoice.py"),
    ("tools:0", "tools", "go", "semantic", "reading lines of a log file", "log_reader.go"),
)


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_data(folder: Path) -> Data:
    """Checkouts, questions and repositories below a folder; `shop` is searched in its sub-folder src."""
    write_files(folder / "checkouts")
    questions = folder / "questions.jsonl"
    rows = [{"id": i, "repo": r, "language": la, "category": c, "question": q, "targets": [{"path": t}]} for i, r, la, c, q, t in QUESTIONS]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    repositories = folder / "repositories.json"
    repositories.write_text(
        json.dumps([{"name": "shop", "language": "python", "root": "src", "commit": "0"}, {"name": "tools", "language": "go"}])
    )
    return Data(questions, repositories, folder / "checkouts")
