"""Mistakes in the blocks of remote experts that no single value shows: patterns that do not compile, placeholders that mean nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from search_router.config.keys import KeyPath, Table, as_array, as_table
from search_router.config.layers import Finding

KINDS = frozenset({"mcp", "command", "http-json", "milvus"})
_BRACES = re.compile(r"\{([a-z_]+(?:[.:][A-Za-z_][A-Za-z0-9_]*)?)\}")
_SECRET_HEADER = re.compile(r"authorization|cookie|token|secret|key", re.IGNORECASE)
_CALL = frozenset("question sub_query terms symbol name_path regex path language limit root project projects".split())
_PLACE = frozenset({"root", "project"})
_FORM_NEEDS = {"json": "fields", "pattern": "pattern"}


def check_remote(name: str, block: Table) -> Iterator[Finding]:
    """Everything wrong with one expert's block whose kind is remote."""
    at: KeyPath = ("experts", name)
    kind, transport = block.get("kind"), block.get("transport", "stdio")
    if kind == "mcp":
        if transport == "stdio" and not block.get("command"):
            yield at, "needs command, the program and its arguments, for transport stdio"
        if transport != "stdio" and not block.get("url"):
            yield at, f"needs url for transport {transport}"
    place = _PLACE if kind == "mcp" else _CALL
    yield from _placeholders((*at, "command"), block.get("command"), place, env=True)
    yield from _placeholders((*at, "cwd"), block.get("cwd"), _PLACE)
    for key in ("env", "headers", "url"):
        yield from _placeholders((*at, key), block.get(key), place, env=True)
    for header, value in (as_table(block.get("headers")) or {}).items():
        if _SECRET_HEADER.search(header) and isinstance(value, str) and "{env:" not in value:
            yield (*at, "headers", header), "must name the variable that holds the secret, such as {env:NAME}: a configuration holds none"
    yield from _probe(at, kind, block)
    if kind == "milvus":
        yield from _milvus(at, block)
        return
    yield from _placeholders((*at, "query"), block.get("query"), _CALL, env=True)
    yield from _placeholders((*at, "body"), block.get("body"), _CALL, env=True)
    before = as_table(block.get("before"))
    yield from _placeholders((*at, "arguments"), block.get("arguments"), _CALL, before=before is not None)
    yield from _answer((*at, "answer"), as_table(block.get("answer")) or {})
    if before is not None:
        yield from _placeholders((*at, "before", "arguments"), before.get("arguments"), _CALL)
        yield from _answer((*at, "before", "answer"), as_table(before.get("answer")) or {})
    for index, variable in enumerate(as_array(block.get("pass_env")) or ()):
        if isinstance(variable, str) and variable.startswith("SEARCH_ROUTER_"):
            yield (*at, "pass_env", index), "names a variable of this router; those are never passed on"


def _probe(at: KeyPath, kind: object, block: Table) -> Iterator[Finding]:
    probe = as_table(block.get("freshness_probe"))
    if (block.get("freshness") == "probe") != (probe is not None):
        yield (*at, "freshness"), 'is "probe" exactly where there is a freshness_probe'
    if probe is None:
        return
    at = (*at, "freshness_probe")
    if bool(probe.get("tool")) == bool(probe.get("command")):
        yield at, "needs one of tool and command"
    if probe.get("tool") and kind != "mcp":
        yield (*at, "tool"), "is for kind mcp; any kind may have a command"
    if not probe.get("commit") and not probe.get("time"):
        yield at, "needs commit or time: where the answer says what the index was made of"
    yield from _placeholders((*at, "arguments"), probe.get("arguments"), _PLACE)
    yield from _placeholders((*at, "command"), probe.get("command"), _PLACE, env=True)
    for key in ("commit", "time"):
        text = probe.get(key)
        _, tilde, pattern = text.partition("~") if isinstance(text, str) else ("", "", "")
        if tilde:
            yield from _pattern((*at, key), pattern.strip(), groups=True)


def _milvus(at: KeyPath, block: Table) -> Iterator[Finding]:
    for key in ("uri", "collection"):
        yield from _placeholders((*at, key), block.get(key), _PLACE, env=key == "uri")
    uri, token = block.get("uri"), block.get("token_env")
    if isinstance(uri, str) and "@" in uri.partition("://")[2]:
        yield (*at, "uri"), "must not hold credentials: name a variable that holds them in token_env"
    if isinstance(token, str) and token.startswith("SEARCH_ROUTER_"):
        yield (*at, "token_env"), "names a variable of this router; those are never passed on"
    if "embedder" in (vectors := as_table(block.get("vectors")) or {}) and vectors["embedder"] in ("lsa", "none"):
        yield (*at, "vectors", "embedder"), "must be one that gives everybody the same vectors; lsa is made of each project anew"


def _placeholders(at: KeyPath, value: Any, known: frozenset[str], *, env: bool = False, before: bool = False) -> Iterator[Finding]:
    table, array = as_table(value), as_array(value)
    if table is not None:
        for key, below in table.items():
            yield from _placeholders((*at, key), below, known, env=env, before=before)
    elif array is not None:
        for index, below in enumerate(array):
            yield from _placeholders((*at, index), below, known, env=env, before=before)
    elif isinstance(value, str):
        for name in _BRACES.findall(value):
            allowed = name in known or (env and name.startswith("env:")) or (before and name.startswith("before."))
            if not allowed:
                more = ", env:NAME" if env else ""
                yield at, f"has a placeholder {{{name}}} that means nothing here; there are {', '.join(sorted(known))}{more}"


def _answer(at: KeyPath, answer: Table) -> Iterator[Finding]:
    form = answer.get("form")
    needed = _FORM_NEEDS.get(form) if isinstance(form, str) else None
    if needed and not answer.get(needed):
        yield at, f"needs {needed} for form {form}"
    for key in ("pattern", "header", "split"):
        yield from _pattern((*at, key), answer.get(key))
    for index, text in enumerate(as_array(answer.get("empty")) or ()):
        yield from _pattern((*at, "empty", index), text)
    for index, rule in enumerate(as_array(answer.get("errors")) or ()):
        yield from _pattern((*at, "errors", index, "pattern"), (as_table(rule) or {}).get("pattern"))
    for field, spec in (as_table(answer.get("fields")) or {}).items():
        _, tilde, pattern = spec.partition("~") if isinstance(spec, str) else ("", "", "")
        if tilde:
            yield from _pattern((*at, "fields", field), pattern.strip(), groups=True)


def _pattern(at: KeyPath, text: Any, *, groups: bool = False) -> Iterator[Finding]:
    if not isinstance(text, str):
        return
    try:
        compiled = re.compile(text, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        yield at, f"is not a regular expression: {error}"
    else:
        if groups and compiled.groups < 1:
            yield at, "needs a group: what it matches is the field's value"
