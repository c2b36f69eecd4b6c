"""Install and uninstall: what would change in one client's file, and the change itself, all or nothing.

A file is changed under a lock, after a copy, in one step; what it says afterwards is proven before it is written. An entry that a person
has edited, or that somebody else wrote, is left alone unless it is said to be replaced.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from search_router.clients.catalog import SERVER_NAME, Client, Format, Scope, Surroundings
from search_router.clients.files import Content, directory_locked, find_target, make_directory, read_content, remove_file, replace_content
from search_router.clients.jsonc import NotEditable, read_text, remove_member, set_member
from search_router.clients.launch import make_entry, make_launch
from search_router.clients.record import Written, change_record, read_record
from search_router.clients.toml import read_toml, remove_table, set_table
from search_router.errors import ClientFileError
from search_router.redact import scrub


class Action(StrEnum):
    """What became of a client's file."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asked for: whose file, what to start and search, which variables to hand on, and how far to go."""

    scope: Scope
    command: Sequence[str]
    roots: Sequence[Path] = ()
    variables: Sequence[str] = ()
    dry_run: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was (or, in a dry run, would be) done to one file. `diff` shows only changed lines, with what looks like a secret taken out."""

    client: str
    scope: Scope
    path: Path
    action: Action
    diff: str = ""
    backup: Path | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Edit:
    """A file before and after. `after` None takes it away."""

    before: Content
    after: str | None
    action: Action
    written: Written | None


def config_path(client: Client, scope: Scope, here: Surroundings) -> Path:
    """The client's file for this scope. Raises ClientFileError when it has no such scope."""
    if scope is Scope.USER:
        return client.user(here)
    if client.project is None:
        raise ClientFileError(f"{client.title} has no configuration of a project's own.", remedy="Use --scope user.")
    return client.project(here)


def install(client: Client, order: Order, here: Surroundings, home: Path) -> Outcome:
    """Have the client start search-router. `home` is the router's own directory, where it is recorded.

    Raises:
        ClientFileError: the file cannot be read or changed safely, or has an entry that install did not write; it is as it was.
    """
    entry = make_entry(client, make_launch(client, order.command, order.roots, order.variables))
    path, target = _places(client, order.scope, here)
    if order.dry_run:
        edit = _installed(client, target, entry, home, order.force)
        return _outcome(client, order, path, edit, None)
    read_record(home)  # refused before a directory is made
    made = make_directory(target.parent)
    with directory_locked(target.parent):
        edit = _installed(client, target, entry, home, order.force)
        backup = None
        if edit.action is not Action.UNCHANGED:
            backup = replace_content(target, edit.before, edit.before.encode(edit.after or ""))
        written = edit.written
        if written is not None and made:
            written = replace(written, directories=tuple(str(directory) for directory in made))
        change_record(home, str(target), written)
    return _outcome(client, order, path, edit, backup)


def uninstall(client: Client, order: Order, here: Surroundings, home: Path) -> Outcome:
    """Take away what install wrote into the client's file.

    Raises:
        ClientFileError: the entry was edited since, or install did not write it (`force` takes it away all the same), or the file cannot
            be read or changed safely; it is as it was.
    """
    path, target = _places(client, order.scope, here)
    if not target.parent.is_dir():
        return Outcome(client.id, order.scope, path, Action.ABSENT)
    if order.dry_run:
        return _outcome(client, order, path, _uninstalled(client, target, home, order.force), None)
    with directory_locked(target.parent):
        known = read_record(home).get(str(target))
        edit = _uninstalled(client, target, home, order.force)
        backup = None
        if edit.action is Action.REMOVED and edit.after is None:
            backup = remove_file(target, edit.before, keep_copy=False)
        elif edit.action is Action.REMOVED:
            backup = replace_content(target, edit.before, edit.before.encode(edit.after or ""))
        if known is not None:
            change_record(home, str(target), None)
    if known is not None and edit.after is None:
        for directory in reversed(known.directories):
            with contextlib.suppress(OSError):  # something else lies in it by now
                Path(directory).rmdir()
    return _outcome(client, order, path, edit, backup)


def _places(client: Client, scope: Scope, here: Surroundings) -> tuple[Path, Path]:
    """The file as it is named and as it is, links followed. A project's link out of the project is refused: a stranger may have made it."""
    path = config_path(client, scope, here)
    target = find_target(path)
    if scope is Scope.PROJECT and not target.is_relative_to(here.project.resolve()):
        raise ClientFileError(f"{path} is a link out of the project, to {target}.", remedy="Remove the link, or use --scope user.")
    return path, target


# ------------------------------------------------------------------ edits


def _installed(client: Client, target: Path, entry: dict[str, Any], home: Path, force: bool) -> _Edit:
    content = read_content(target)
    known = read_record(home).get(str(target))
    try:
        tree = _read(client, content.text)
        path = (*_container(client, tree), SERVER_NAME)
        there = _look_up(tree, path)
        missing = sum(1 for depth in range(1, len(path)) if _look_up(tree, path[:depth]) is None)
        made = known.containers if known is not None and there is not None else missing
        made_file = content.data is None or (known is not None and known.made_file)
        written = Written(client.id, str(target), path, entry, made, made_file, known.directories if known else ())
        if there == entry:
            return _Edit(content, content.text, Action.UNCHANGED, known or replace(written, made_file=False))
        if there is not None and not force:
            _refuse_foreign(client, target, there, known, "replace")
        after = _set(client, content.text, path, entry, losing_comments=force)
    except NotEditable as error:
        raise _not_editable(target, error) from None
    return _Edit(content, after, Action.ADDED if there is None else Action.UPDATED, written)


def _uninstalled(client: Client, target: Path, home: Path, force: bool) -> _Edit:
    content = read_content(target)
    known = read_record(home).get(str(target))
    try:
        tree = _read(client, content.text)
        path = (*_container(client, tree), SERVER_NAME)
        there = _look_up(tree, path)
        if there is None:
            return _Edit(content, content.text, Action.ABSENT, None)
        if not force:
            _refuse_foreign(client, target, there, known, "remove")
        after: str | None = _remove(client, content.text, path, known.containers if known else 0, losing_comments=force)
        if known is not None and known.made_file and "".join((after or "").split()) in ("", "{}"):
            after = None
    except NotEditable as error:
        raise _not_editable(target, error) from None
    return _Edit(content, after, Action.REMOVED, None)


def _refuse_foreign(client: Client, target: Path, there: Any, known: Written | None, verb: str) -> None:
    if known is None:
        raise ClientFileError(
            f"{target} has an entry {SERVER_NAME} that install did not write (or the record of it is gone).",
            remedy=f"Look at it, then use --force to {verb} it.",
        )
    if there != known.entry:
        raise ClientFileError(
            f"The entry {SERVER_NAME} in {target} was edited since install wrote it for {client.title}.",
            remedy=f"Look at it, then use --force to {verb} it.",
        )


def _read(client: Client, text: str) -> Any:
    if not text.strip():
        return {}
    return read_toml(text) if client.format is Format.TOML else read_text(text, strict=client.format is Format.JSON)


def _set(client: Client, text: str, path: tuple[str, ...], entry: Mapping[str, Any], *, losing_comments: bool) -> str:
    if client.format is Format.TOML:
        return set_table(text, (path[0], path[1]), entry)
    return set_member(text, path, entry, strict=client.format is Format.JSON, losing_comments=losing_comments)


def _remove(client: Client, text: str, path: tuple[str, ...], made: int, *, losing_comments: bool) -> str:
    if client.format is Format.TOML:
        return remove_table(text, (path[0], path[1]), made=made)
    return remove_member(text, path, made=made, strict=client.format is Format.JSON, losing_comments=losing_comments)


def _container(client: Client, tree: Any) -> tuple[str, ...]:
    """Where the servers stand. OpenCode 2 has them one table deeper and reads the older form too; a file keeps the form that it has."""
    deeper = (*client.container, "servers")
    found = _look_up(tree, deeper) if client.id == "opencode" else None
    return deeper if isinstance(found, dict) and "type" not in found else client.container


def _look_up(tree: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(tree, dict):
            return None
        tree = cast("dict[str, Any]", tree).get(key)
    return tree


def _not_editable(target: Path, error: NotEditable) -> ClientFileError:
    return ClientFileError(f"{target} {error}.", remedy="It is as it was: mend it, or add the server by hand (docs/install.md).")


# ------------------------------------------------------------------ words


def _outcome(client: Client, order: Order, path: Path, edit: _Edit, backup: Path | None) -> Outcome:
    remark = client.remark if order.scope is Scope.USER else client.project_remark
    note = remark if edit.action in (Action.ADDED, Action.UPDATED) else ""
    after = edit.before.text if edit.action in (Action.UNCHANGED, Action.ABSENT) else edit.after or ""
    return Outcome(client.id, order.scope, path, edit.action, _diff(path, edit.before.text, after), backup, note)


def _diff(path: Path, before: str, after: str) -> str:
    # No context lines: they are other servers' settings, and those have secrets in them.
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=0)
    return "\n".join(scrub(line) for line in lines)
