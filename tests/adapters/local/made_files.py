"""A small made-up project and questions about it: the same for ever, so that a ranking can be compared with an earlier one."""

from __future__ import annotations

import itertools

NOUNS = ("cookie", "session", "token", "socket", "cache", "router", "parser", "ledger", "worker", "buffer", "schema", "retry")
VERBS = ("open", "close", "parse", "flush", "retry", "merge", "verify", "load", "drop", "match")
FOLDERS = ("", "net/", "core/", "api/v1/", "api/v2/", "tests/", "vendor/kit/", "internal/", "docs/")
QUESTIONS = (
    "how is a session token verified",
    "where are cookies parsed",
    "retry of a socket after an error",
    "parse_cookie",
    "LedgerMerge",
    "flush the buffer of a worker",
    "tests of the router cache",
    "documentation of the schema",
    "what does core/cache.py do",
    "legacy api for merging ledgers",
    "drop",
    "load balancing between workers of a pool",
)


def made_files() -> dict[str, str]:
    """Path to text. Which words a file has follows from its number alone."""
    files: dict[str, str] = {}
    for number, (folder, noun) in enumerate(itertools.product(FOLDERS, NOUNS)):
        if number % 3 == 1:
            continue
        path = f"{folder}{'test_' if folder == 'tests/' else ''}{noun}.{'md' if folder == 'docs/' else 'py'}"
        lines = [f'"""Everything about a {noun} and its {NOUNS[number % 7]}."""', f"import {NOUNS[number * 5 % 12]}", ""]
        for at in range(number % 5 + 1):
            verb, other = VERBS[(number + at) % 10], NOUNS[(number * 7 + at) % 12]
            name = f"class {other.title()}{verb.title()}:" if at % 3 == 2 else f"def {verb}_{other}({noun}):"
            lines += [f"# {verb}s the {other} of a {noun}", name, *[f"    {noun}.{verb}({other}, {n})" for n in range(at * 9 + 2)], ""]
        files[path] = "\n".join(lines) + "\n"
    return files
