"""Models in folders on disk, and the optional packages that read them. Nothing is downloaded, and nothing is imported before its use."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

from search_router.errors import ExpertError, FailureClass

_READ = 1 << 20


def import_package(package: str, line: str, otherwise: str) -> Any:
    """The imported package. Raises ExpertError `unconfigured`, with the line that installs it and the setting that does without it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"The configuration needs the package {package}, which cannot be imported ({error.name or type(error).__name__}).",
            remedy=f"Run `{line}`, or set {otherwise}.",
        ) from error


def locate_model(name: str, setting: str, kind: str) -> Path:
    """The folder that a setting names. Raises ExpertError `unconfigured` when it is none."""
    place = Path(name).expanduser()
    if not name or not place.is_dir():
        raise ExpertError(
            FailureClass.UNCONFIGURED,
            f"{setting} is {name!r}, which is no folder with a {kind} model; models are never downloaded.",
            remedy=f"Set {setting} to the folder.",
        )
    return place


def unloadable_model(place: Path, setting: str, kind: str, error: Exception) -> ExpertError:
    """The failure for a folder whose model cannot be loaded."""
    return ExpertError(
        FailureClass.UNCONFIGURED,
        f"The folder {place} holds no {kind} model that can be loaded ({type(error).__name__}).",
        remedy=f"Set {setting} to a folder with a complete model.",
    )


def damaged_weights() -> type[Exception]:
    """What the reader of weights raises for a damaged file; it is neither an OSError nor a ValueError."""
    return importlib.import_module("safetensors").SafetensorError


def digest_folder(folder: Path) -> str:
    """SHA-256 over the names and bytes of a model's files, in hexadecimal."""
    told = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        told.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while part := stream.read(_READ):
                told.update(part)
    return told.hexdigest()
