"""The page of errors: exit codes from the command line's docstring, classes and codes from the code that raises them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from reference_text import code, enum_parts, first_paragraph, page, table

import search_router
import search_router.cli
import search_router.errors
from search_router import cli_frame
from search_router.errors import FailureClass

PACKAGE = Path(search_router.__file__).parent


def errors_page() -> str:
    intro = (
        "An error says what happened, to what, and what to do; its code is stable. On the command line it is one line on standard error, "
        "`search-router: CODE: message`; in an answer it is the field `error`. A failed expert is no error of the request: it stands in "
        "`experts` with its class."
    )
    return page("Errors and exit codes", intro, error_parts())


def error_parts() -> Iterator[str]:
    yield "## Exit codes of the command line"
    said = dict(
        re.findall(r"(\d+) ([^·.`]+)", " ".join((search_router.cli.__doc__ or "").split("Exit codes: ")[1].split("`receipts")[0].split()))
    )
    named = {v for k, v in vars(cli_frame).items() if k.endswith("_EXIT")} | set(cli_frame.EXITS.values())
    if named != set(map(int, said)):
        raise SystemExit(f"the docstring of cli.py names the exit codes {sorted(map(int, said))}, cli_frame has {sorted(named)}")
    statuses: dict[int, list[str]] = defaultdict(list)
    for status, number in cli_frame.EXITS.items():
        statuses[number].append(code(status.value))
    rows = [(code(str(n)), said[str(n)].strip(), ", ".join(statuses[n])) for n in sorted(named)]
    yield table(("exit code", "means", "status of the answer"), rows)
    yield (
        "Commands with exit codes of their own say so in their help: [receipts verify and audit](../receipts.md#verify), "
        "[index](../index-life.md#commands), [the rest](cli.md)."
    )
    yield "## Failure classes of experts"
    yield from enum_parts(FailureClass)
    yield "## Codes"
    yield "`…` stands for what the message names. Several lines: the code has several causes."
    yield table(("code", "says", "what to do"), list(code_rows()))
    yield "## Classes of the library"
    yield "What the library raises, from `search_router.errors`."
    yield f"```\n{textwrap.dedent((search_router.errors.__doc__ or '').split(chr(10) * 2)[1])}\n```"


def code_rows() -> Iterator[tuple[str, str, str]]:
    """A row for each code and message, from the calls that make them; where there is none, from the class whose code it is."""
    found: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    classes: dict[str, str] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        if "benchmark" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and (row := raised(node)):
                found[row[0]][row[1], row[2]] = None
            elif isinstance(node, ast.ClassDef) and (name := code_of(node)):
                classes[name] = first_paragraph(ast.get_docstring(node))
    for name in sorted({*found, *classes}):
        yield from ((code(name), says, remedy) for says, remedy in found.get(name, {(classes.get(name, ""), ""): None}))


def code_of(node: ast.ClassDef) -> str | None:
    """The code that a class of errors has for all its errors."""
    for each in node.body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id == "code":
            return each.value.value if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str) else None
    return None


def raised(call: ast.Call) -> tuple[str, str, str] | None:
    """Code, message and remedy of a call that makes an error with a code of its own."""
    keywords = {each.arg: each.value for each in call.keywords}
    if isinstance(call.func, ast.Name) and call.func.id == "FieldProblem" and len(call.args) == 3:
        code_node, message = call.args[1], call.args[2]
    elif "code" in keywords and ("message" in keywords or call.args):
        code_node, message = keywords["code"], keywords.get("message") or call.args[0]
    else:
        return None
    if not (isinstance(code_node, ast.Constant) and isinstance(code_node.value, str)):
        return None
    says, remedy = words_of(message), words_of(keywords.get("remedy"))
    return code_node.value, "The message says what is wrong." if says == "…" else says, "" if remedy == "…" else remedy


def words_of(node: ast.expr | None) -> str:
    """A message as it stands in the code, with … for what is put in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, right=right):
            return re.sub("…+", "…", (words_of(left) or "…") + (words_of(right) or "…"))
        case ast.IfExp(body=one, orelse=other):
            return f"{words_of(one)} / {words_of(other)}"
        case None:
            return ""
        case _:
            return "…"
