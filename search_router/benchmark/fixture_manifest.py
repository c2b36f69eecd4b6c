"""The manifest of a fixture suite: which public source archives it is about. Read by pydantic, never trusted.

A suite is a folder: manifest.json, queries.jsonl, qrels.tsv, audit.jsonl. The code itself is in none of them: `fixture_build` makes it from
the archives.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from search_router.benchmark.questions import UnusableData

SCHEMA_VERSION: Final = 1
PACKAGED: Final = Path(__file__).with_name("fixtures") / "code"
"""What `--suite fixtures` means."""
MANIFEST: Final = "manifest.json"
_FILE_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,200}$"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Archive(_Part):
    """One published file of a package. `project` is the folder that it becomes; `licence` an SPDX expression."""

    project: str = Field(pattern=_FILE_NAME)
    registry: Literal["pypi", "npm"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")
    version: str = Field(pattern=r"^[0-9][A-Za-z0-9._+-]{0,40}$")
    file: str = Field(pattern=_FILE_NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    licence: str = Field(min_length=1)


class Release(Archive):
    """An earlier version of a project: one commit of its rebuilt history, made on `date`."""

    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")


class Change(_Part):
    """What became different in a version of the suite, for people who compare figures."""

    version: str
    date: str
    what: str


class Manifest(_Part):
    """`left_out` are globs of paths inside a project that never reach the tree. `changelog_of` maps a project with releases to the file in
    its archive whose sections become the messages of their commits; that file is left out of every commit."""

    schema_version: Literal[1]
    suite: str
    version: str
    archives: tuple[Archive, ...] = Field(min_length=1)
    releases: tuple[Release, ...] = ()
    changelog_of: dict[str, str] = Field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    changes: tuple[Change, ...] = Field(min_length=1)

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(archive.project for archive in self.archives)


def suite_folder(name: str) -> Path:
    """`fixtures` is the packaged suite; anything else is a folder. Raises UnusableData."""
    folder = PACKAGED if name == "fixtures" else Path(name)
    if not (folder / MANIFEST).is_file():
        raise UnusableData(f"{folder} is no suite: it has no {MANIFEST}.", remedy="Say `fixtures`, or name a suite's folder.")
    return folder


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """(the manifest, the first 16 hex digits of its SHA-256). Raises UnusableData with the first fault."""
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
        manifest = Manifest.model_validate_json(raw)
    except OSError as error:
        raise UnusableData(f"{path} cannot be read: {error}.", remedy="Name a suite's folder.") from error
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise UnusableData(f"{path}: {where}: {fault['msg']}.", remedy="See docs/benchmarks.md for the shape.") from error
    doubled = {name for name in manifest.projects if manifest.projects.count(name) > 1}
    if doubled or not set(manifest.changelog_of) <= set(manifest.projects):
        raise UnusableData(f"{path}: projects are named twice, or not at all: {sorted(doubled)}.", remedy="A project is one archive.")
    return manifest, hashlib.sha256(raw).hexdigest()[:16]
