"""What install has written, so that uninstall takes away just that: one small JSON file in the router's own directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from search_router.clients.files import directory_locked, make_directory, read_content, replace_content
from search_router.errors import ClientFileError

FILE_NAME = "installed-clients.json"
VERSION = 1
"""Raised when an older program would misread the file."""


@dataclass(frozen=True, slots=True)
class Written:
    """One entry that install wrote: in which file (symbolic links followed), at which path of keys, with what, and what it made around it.

    `containers` counts the tables that it made for it, `file` says whether it made the file, `directories` which directories.
    """

    client: str
    file: str
    path: tuple[str, ...]
    entry: Mapping[str, Any]
    containers: int = 0
    made_file: bool = False
    directories: tuple[str, ...] = ()


def read_record(home: Path) -> dict[str, Written]:
    """What is recorded, by file. Raises ClientFileError when the record is damaged or from a newer version; it is left as it is."""
    path = home / FILE_NAME
    content = read_content(path)
    if content.data is None:
        return {}
    try:
        tree: dict[str, Any] = json.loads(content.text)
        if (found := int(tree["version"])) > VERSION:
            raise ClientFileError(
                f"{path} has version {found}; this program knows up to {VERSION}.",
                remedy="Use the search-router that wrote it, or a newer one.",
            )
        return {row.file: row for row in map(_written, tree["written"])}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ClientFileError(
            f"{path}, the record of what install wrote, is damaged.", remedy="Move it away; uninstall then needs --force."
        ) from None


def change_record(home: Path, file: str, written: Written | None) -> None:
    """Set or (None) forget what is recorded of a file. Raises ClientFileError."""
    make_directory(home)
    with directory_locked(home):
        rows = read_record(home)
        before = dict(rows)
        if written is None:
            rows.pop(file, None)
        else:
            rows[file] = written
        if rows == before:
            return
        text = json.dumps({"version": VERSION, "written": [asdict(row) for row in rows.values()]}, indent=1) + "\n"
        path = home / FILE_NAME
        replace_content(path, read_content(path), text.encode("utf-8", "surrogateescape"), keep_copy=False)


def _written(row: Mapping[str, Any]) -> Written:
    if not isinstance(row["entry"], dict):
        raise TypeError("an entry is an object")
    return Written(
        client=str(row["client"]),
        file=str(row["file"]),
        path=tuple(str(key) for key in row["path"]),
        entry=cast("dict[str, Any]", row["entry"]),
        containers=int(row["containers"]),
        made_file=bool(row["made_file"]),
        directories=tuple(str(name) for name in row["directories"]),
    )
