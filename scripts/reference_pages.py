"""The pages of docs/reference, made of the code: the command tree, the models at the edges with their docstrings, the errors.

Same code, same bytes. `scripts/reference` writes them, and a test compares what is committed.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import get_args

import click
from pydantic import BaseModel
from reference_errors import errors_page
from reference_text import Node, code, enum_parts, first_paragraph, notes_of, page, table, type_words

import search_router.cli
import search_router.schema
from search_router.answers import ReceiptRequest
from search_router.config.remote import AnsweringConfig, RemoteConfig
from search_router.config.schema import Config
from search_router.config.section import ExpertConfig, Section
from search_router.config.shape import EXPERT_MODELS
from search_router.config.sources import read_packaged
from search_router.config.trust import EXPERT_KEYS_ALLOWED, SECTIONS, WORKSPACE_KEYS
from search_router.mcp_catalog import tools
from search_router.router.schemas import published_schemas


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
        "[configuration](../configuration.md). In the environment the key `budget.latency_ms` is `SEARCH_ROUTER__BUDGET__LATENCY_MS`; on "
        "the command line `--set budget.latency_ms=800`. `required` has no packaged value: whoever writes such a block gives it."
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
    """The keys that a section has and `above` has not, and those of the tables in it below headings of their own, each table once."""
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
        if (name == "kind" and issubclass(model, ExpertConfig)) or name in left_out:
            continue
        words = re.sub(r"\[\w+\]\(#\w+\)", "a table", type_words(node, schema.get("$defs", {})))
        value = values[name] if name in values else ... if field.is_required() else field.get_default(call_default_factory=True)
        tables = isinstance(value, BaseModel) or (isinstance(value, dict) and "a table of" not in words)
        packaged = "required" if value is ... else "" if tables else code(json.dumps(value, ensure_ascii=False))
        rows.append((code(f"{prefix}.{name}" if prefix else name), words, packaged, notes.get(name, "")))
    return table(("key", "value", "packaged", ""), rows)


# ------------------------------------------------------------------ requests and answers
def schema_page() -> str:
    intro = (
        "What the five tools take and give; the command line and the library have the same names. `search-router schema` prints these as "
        "JSON Schema (draft 2020-12). Unknown fields are refused. Lines count from 1 and ranges are closed; paths are POSIX and relative "
        "to the project's root."
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


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands_page,
    "configuration.md": configuration_page,
    "schema.md": schema_page,
    "errors.md": errors_page,
}
"""File name below docs/reference to what makes its text."""
