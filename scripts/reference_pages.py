"""The pages of docs/reference, made of the code: the command tree, the models at the edges and their docstrings, and the errors that are raised.

Same code, same bytes. `scripts/reference` writes them, and a test compares what is committed.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel

import search_router
import search_router.cli
import search_router.errors
import search_router.schema
from search_router import cli_frame
from search_router.answers import ReceiptRequest
from search_router.config.remote import AnsweringConfig, RemoteConfig
from search_router.config.schema import Config
from search_router.config.section import ExpertConfig, Section
from search_router.config.shape import EXPERT_MODELS, words_for_type
from search_router.config.sources import read_packaged
from search_router.config.trust import EXPERT_KEYS_ALLOWED, SECTIONS, WORKSPACE_KEYS
from search_router.errors import FailureClass
from search_router.mcp_catalog import tools
from search_router.router.schemas import published_schemas

MADE = "<!-- Made from the code by scripts/reference; edits here are overwritten. -->"
PACKAGE = Path(search_router.__file__).parent
Node = Mapping[str, Any]


# ------------------------------------------------------------------ Markdown
def page(title: str, intro: str, parts: Iterator[str]) -> str:
    text = "\n\n".join([f"# {title}", MADE, intro, *parts])
    return text.rstrip() + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, or nothing where there is no row."""
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *([cell(c) for c in row] for row in rows))]
    return "\n".join(lines) if rows else ""


def cell(text: str) -> str:
    """One line without what ends a cell or begins a tag; text between backticks keeps its `<`."""
    pieces = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(piece if odd % 2 else piece.replace("<", "\\<") for odd, piece in enumerate(pieces))


def code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


def first_paragraph(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n\n")[0]


@cache
def notes_of(model: type) -> dict[str, str]:
    """Member to the docstring that follows it in the class, those of its base classes included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not each.__module__.startswith("search_router"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for member, after in zip(body.body, body.body[1:], strict=False):
            target = member.target if isinstance(member, ast.AnnAssign) else member.targets[0] if isinstance(member, ast.Assign) else None
            if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[target.id] = str(after.value.value)
    return found


def type_words(node: Node, definitions: Node) -> str:
    """What kind of value belongs there, in the words of the configuration's own messages."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        below = definitions[name]
        return " · ".join(code(choice) for choice in below["enum"]) if "enum" in below else f"[{name}](#{name.lower()})"
    if branches := [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]:
        null = ", or null" if {"type": "null"} in node["anyOf"] else ""
        return " or ".join(type_words(branch, definitions) for branch in branches) + null
    if "enum" in node or "const" in node:
        return " · ".join(code(choice) for choice in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return f"an array of: {type_words(node.get('items', {}), definitions)}"
    if isinstance(below := node.get("additionalProperties"), dict) and below:
        return f"a table of: {type_words(below, definitions)}"
    words = "anything" if not node.get("type") else words_for_type(node)
    length = node.get("maxLength")
    return f"{words}, at most {length} characters" if length else words


# ------------------------------------------------------------------ commands
def commands_page() -> str:
    intro = (
        "Every command of `search-router`, as `--help` says it. Exit codes: [errors](errors.md#exit-codes-of-the-command-line). "
        "`--root`, `--set` and `--json` mean the same everywhere."
    )
    return page("Commands", intro, command_parts(search_router.cli.main, None, 1))


def command_parts(command: click.Command, parent: click.Context | None, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=command.name if parent else "search-router", parent=parent)
    if parent:
        yield f"{'#' * level} {context.command_path}"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "")
    if not isinstance(command, click.Group):
        yield f"```\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    rows = [option_row(option) for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if rows:
        yield table(("option", "value", "what it does"), rows)
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from command_parts(command.commands[name], context, level + 1)


def option_row(option: click.Option) -> tuple[str, str, str]:
    value = "" if option.is_flag else option_value(option)
    again = " Repeatable." if option.multiple and "repeatable" not in (option.help or "") else ""
    shown = option.default if isinstance(option.default, (str, int, float)) and not isinstance(option.default, bool) else None
    default = f" Default: {code(shown)}." if option.show_default and shown is not None else ""
    return ", ".join(code(name) for name in (*option.opts, *option.secondary_opts)), value, f"{option.help or ''}{again}{default}"


def option_value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " · ".join(code(str(choice)) for choice in option.type.choices)
    if isinstance(option.type, (click.IntRange, click.FloatRange)):
        low, high = option.type.min, option.type.max
        return f"{option.type.name.split()[0]} from {low}" + (f" to {high}" if high is not None else "")
    return option.metavar or option.type.name


# ------------------------------------------------------------------ configuration
def configuration_page() -> str:
    intro = (
        "Every key of the configuration with its packaged value. What the parts are for, the layers, and the file's place: "
        "[configuration](../configuration.md). In the environment the key `budget.latency_ms` is `SEARCH_ROUTER__BUDGET__LATENCY_MS`; on the command line "
        "`--set budget.latency_ms=800`. `required` has no packaged value: whoever writes such a block gives it."
    )
    return page("Configuration keys", intro, configuration_parts())


def configuration_parts() -> Iterator[str]:
    packaged, shown = read_packaged().values, set[type]()
    for name, field in Config.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, Section):
            shown.add(model)
            yield f"## {name}"
            yield first_paragraph(model.__doc__)
            if "may set it" not in (model.__doc__ or "") and "ettable" not in (model.__doc__ or ""):
                yield who_may_set(name)
            yield from section_parts(name, model, packaged.get(name, {}), "###", shown)
    yield "## experts.NAME"
    yield "Every block of an expert has these. " + who_may_set("experts")
    yield keys_table("", ExpertConfig, {}, ())
    yield "Those that come with the package:"
    columns = ("kind", "precision_class", "engine", "cap_ms", "expected_ms")
    rows = [(code(n), *(code(block[c]) for c in columns), ", ".join(block["intents"])) for n, block in packaged["experts"].items()]
    yield table(("expert", *columns, "intents"), rows)
    blocks = {block["kind"]: block for block in packaged["experts"].values()}
    for kind, model in EXPERT_MODELS.items():
        for common in (RemoteConfig, AnsweringConfig):
            if issubclass(model, common) and common not in shown:
                shown.add(common)
                yield f"### {first_paragraph(common.__doc__).rstrip('.')}"
                yield from section_parts("", common, {}, "####", shown, common.__mro__[1])
        yield f'### kind = "{kind}"'
        if vars(model).get("__doc__"):
            yield first_paragraph(model.__doc__)
        parts = [part for part in section_parts("", model, blocks.get(kind, {}), "####", shown, model.__mro__[1]) if part]
        yield from parts or ["No keys of its own."]
    yield "## priors.INTENT"
    yield "Prior of each expert for each intent, 0 to 1: the gate's pick, and the expert's weight in the fusion. " + who_may_set("priors")
    intents = list(packaged["priors"])
    names = list(dict.fromkeys(name for intent in intents for name in packaged["priors"][intent]))
    yield table(("expert", *intents), [(code(n), *(str(packaged["priors"][i].get(n, "")) for i in intents)) for n in names])


def who_may_set(section: str) -> str:
    if section in SECTIONS:
        return "A project's own file may set it."
    allowed = {"workspace": WORKSPACE_KEYS, "experts": EXPERT_KEYS_ALLOWED}.get(section)
    return (
        f"A project's own file may set {', '.join(map(code, sorted(allowed)))} alone."
        if allowed
        else "A project's own file may not set it."
    )


def section_parts(
    prefix: str, model: type[BaseModel], values: Node, mark: str, shown: set[type], above: type[BaseModel] = Section
) -> Iterator[str]:
    """The keys that a section has and `above` has not, and those of the tables in it below headings of their own, each kind of table once."""
    yield keys_table(prefix, model, values, above.model_fields)
    for name, field in model.model_fields.items():
        below = next((each for each in (field.annotation, *get_args(field.annotation)) if isinstance(each, type)), object)
        if not issubclass(below, Section) or name in above.model_fields or below in shown:
            continue
        shown.add(below)
        path = f"{prefix}.{name}" if prefix else name
        yield f"{mark} {path}"
        yield first_paragraph(below.__doc__)
        yield from section_parts(path, below, values.get(name, {}), mark, shown)


def keys_table(prefix: str, model: type[BaseModel], values: Node, left_out: Collection[str]) -> str:
    schema, notes = model.model_json_schema(), notes_of(model)
    rows: list[Sequence[str]] = []
    for name, node in schema["properties"].items():
        field = model.model_fields[name]
        if name == "kind" and issubclass(model, ExpertConfig) or name in left_out:
            continue
        words = re.sub(r"\[\w+\]\(#\w+\)", "a table", type_words(node, schema.get("$defs", {})))
        value = values[name] if name in values else ... if field.is_required() else field.get_default(call_default_factory=True)
        tables = isinstance(value, BaseModel) or isinstance(value, dict) and "a table of" not in words
        packaged = "required" if value is ... else "" if tables else code(json.dumps(value, ensure_ascii=False))
        rows.append((code(f"{prefix}.{name}" if prefix else name), words, packaged, notes.get(name, "")))
    return table(("key", "value", "packaged", ""), rows)


# ------------------------------------------------------------------ requests and answers
def schema_page() -> str:
    intro = (
        "What the five tools take and give; the command line and the library have the same names. `search-router schema` prints these as JSON Schema "
        "(draft 2020-12). Unknown fields are refused. Lines count from 1 and ranges are closed; paths are POSIX and relative to the project's root."
    )
    return page("Requests and answers", intro, schema_parts())


def schema_parts() -> Iterator[str]:
    schemas = {**published_schemas(), "receipt_request": ReceiptRequest.model_json_schema()}
    yield "## Tools"
    faces = {
        "search_knowledge": ("request", "answer"),
        "fetch_evidence": ("fetch_request", "fetch_answer"),
        "expert_registry": ("", "registry"),
        "get_receipt": ("receipt_request", "receipt"),
        "report_outcome": ("outcome_request", "outcome_answer"),
    }
    links = {name: f"[{schema['title']}](#{schema['title'].lower()})" for name, schema in schemas.items()}
    yield table(("tool", "takes", "gives"), [(code(t.name), *(links.get(each, "nothing") for each in faces[t.name])) for t in tools()])
    models: dict[str, tuple[Node, Node]] = {}
    for schema in schemas.values():
        definitions = schema.get("$defs", {})
        for name, node in ((schema["title"], schema), *definitions.items()):
            models.setdefault(name, (node, definitions))
    yield "## Fields"
    for name, (node, definitions) in models.items():
        if "properties" in node:
            yield f"### {name}"
            yield node.get("description", "")
            yield table(("field", "value", "default", ""), [field_row(f, node, definitions) for f in node["properties"]])
    yield "## Words"
    for name in sorted(name for name, (node, _) in models.items() if "enum" in node):
        yield f"### {name}"
        yield from enum_parts(getattr(search_router.schema, name))


def field_row(name: str, node: Node, definitions: Node) -> tuple[str, str, str, str]:
    field = node["properties"][name]
    needed = "required" if name in node.get("required", ()) else ""
    default = code(json.dumps(field["default"], ensure_ascii=False)) if "default" in field else needed
    return code(name), type_words(field, definitions), default, field.get("description", "")


def enum_parts(words: type[StrEnum]) -> Iterator[str]:
    notes = notes_of(words)
    yield inspect.cleandoc(words.__doc__ or "")
    if notes:
        yield table(("word", ""), [(code(word.value), notes.get(word.name, "")) for word in words])
    else:
        yield " · ".join(code(word.value) for word in words)


# ------------------------------------------------------------------ errors
def errors_page() -> str:
    intro = (
        "An error says what happened, to what, and what to do; its code is stable. On the command line it is one line on standard error, "
        "`search-router: CODE: message`; in an answer it is the field `error`. A failed expert is no error of the request: it stands in `experts` with its class."
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
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, right=right):
            return re.sub("…+", "…", (words_of(left) or "…") + (words_of(right) or "…"))
        case ast.IfExp(body=one, orelse=other):
            return f"{words_of(one)} / {words_of(other)}"
        case None:
            return ""
        case _:
            return "…"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands_page,
    "configuration.md": configuration_page,
    "schema.md": schema_page,
    "errors.md": errors_page,
}
"""File name below docs/reference to what makes its text."""
