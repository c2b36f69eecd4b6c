"""A suite of two made-up projects whose archives the test packs itself: nothing is fetched."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from search_router.benchmark.fixture_build import build_suite, head_of
from search_router.benchmark.fixture_gold import gold_experts
from search_router.benchmark.fixture_suite import HEADER, digest_of

FILES = {
    "till": {
        "src/till/receipt_printer.py": '"""Prints receipts on a thermal printer."""\n\n\ndef print_receipt(lines):\n'
        '    """Print every line, then cut the paper."""\n    raise ValueError("paper is out of reach")\n',
        "src/till/drawer.py": '"""Opens the cash drawer."""\n\n\nclass CashDrawer:\n    """Opens with a pulse of fifty milliseconds."""\n\n'
        '    def open_drawer(self):\n        raise OSError("drawer pulse was refused")\n',
        "docs/guide.md": "# Guide\n\n## Closing the day\n\nCount the drawer, then print the summary.\n",
        "CHANGES.rst": "1.1\n=====\n\n- Added the cash drawer.\n\n1.0\n=====\n\n- First.\n",
    },
    "ferry": {
        "lib/timetable.py": '"""Departure times of ferries by harbour."""\n\n\ndef next_departure(harbour, now):\n'
        '    """The next ferry from a harbour."""\n    raise LookupError("no ferry leaves today")\n',
        "lib/weather.py": '"""Whether waves are too high to sail."""\n\n\ndef waves_too_high(metres):\n    return metres > 4\n',
    },
}
OLD = {"src/till/receipt_printer.py": "def print_receipt(lines):\n    pass\n"}
QUESTIONS = (
    ("conceptual", "how are receipts printed and the paper cut", "till", "src/till/receipt_printer.py"),
    ("conceptual", "opening the cash drawer with a pulse", "till", "src/till/drawer.py"),
    ("conceptual", "departure times of ferries by harbour", "ferry", "lib/timetable.py"),
    ("conceptual", "decide that waves are too high to sail", "ferry", "lib/weather.py"),
    ("identifier", '"paper is out of reach"', "till", "src/till/receipt_printer.py"),
    ("identifier", 'find the string "drawer pulse was refused"', "till", "src/till/drawer.py"),
    ("identifier", 'where does the text "no ferry leaves today" appear', "ferry", "lib/timetable.py"),
    ("identifier", 'grep for "Opens the cash drawer"', "till", "src/till/drawer.py"),
    ("identifier", 'which file contains "too high to sail"', "ferry", "lib/weather.py"),
    ("identifier", '"then cut the paper"', "till", "src/till/receipt_printer.py"),
    ("typed-symbol", "where is waves_too_high defined", "ferry", "lib/weather.py"),
    ("typed-symbol", "CashDrawer", "till", "src/till/drawer.py"),
)


def make_suite(folder: Path) -> tuple[Path, Path]:
    """(the suite's folder, the place where its code is built)."""
    suite, archives, place = folder / "suite", folder / "archives", folder / "built"
    suite.mkdir()
    rows = [_pack(archives, name, "1.1", files) for name, files in FILES.items()]
    old = _pack(archives, "till", "1.0", OLD) | {"date": "2020-02-03"}
    manifest = {
        "schema_version": 1,
        "suite": "small",
        "version": "1.0.0",
        "archives": rows,
        "releases": [old],
        "changelog_of": {"till": "CHANGES.rst"},
        "changes": [{"version": "1.0.0", "date": "2026-01-01", "what": "First."}],
    }
    (suite / "manifest.json").write_text(json.dumps(manifest))
    projects = build_suite(suite, place, archives)
    queries, qrels = [], ["\t".join(HEADER)]
    for number, (kind, text, project, path) in enumerate(QUESTIONS):
        name = f"{kind}-{number}"
        half = ("dev", "test")[number % 2]
        queries.append({"id": name, "text": text, "kind": kind, "half": half, "source": "own", "experts": gold_experts(kind)})
        qrels.append("\t".join([name, project, path, "", "", "", "3", digest_of(projects / project / path)]))
    queries.append({"id": "history-0", "text": "when was the cash drawer added", "kind": "history", "half": "dev", "source": "own"})
    queries[-1]["experts"] = gold_experts("history")
    qrels.append("\t".join(["history-0", "till", "@1.1", "", "", "", "3", head_of(projects / "till", "1.1")[:12]]))
    hostile = {"kind": "empty", "half": "dev", "source": "own", "statuses": ["declined"]}
    queries.append({"id": "empty-0", "text": "  ", **hostile})
    (suite / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (suite / "qrels.tsv").write_text("\n".join(qrels) + "\n")
    return suite, place


def _pack(archives: Path, name: str, version: str, files: dict[str, str]) -> dict[str, Any]:
    archives.mkdir(exist_ok=True)
    path = archives / f"{name}-{version}.tar.gz"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for inner, text in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{inner}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    path.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    facts = {"registry": "pypi", "name": name, "version": version, "file": path.name, "sha256": digest, "licence": "MIT"}
    return {"project": name, **facts}
