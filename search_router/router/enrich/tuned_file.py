"""The file of tuned priors: a new version of the user's configuration that says which receipts it came from.

It is the user's whole file with other priors and the next version, written beside it under the version's name, never over anything.
Put in its place, the former file is kept under its own version's name.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_router.config.keys import as_table
from search_router.config.loader import LoadedConfig
from search_router.config.rendering import to_toml
from search_router.errors import SearchRouterError
from search_router.plain_files import read_plain
from search_router.router.enrich.logged import LogRange
from search_router.router.enrich.tuning import ClassTuning


class TunedFileError(SearchRouterError):
    """The file of tuned priors cannot be written, or may not be used."""

    code = "tuned-file"


@dataclass(frozen=True, slots=True)
class TunedFile:
    """What would be written: `place` and `text`, and the user's file as it is ("" when there is none)."""

    version: str
    place: Path
    text: str
    user_file: Path
    user_text: str
    former_version: str

    def difference(self) -> str:
        """A unified diff from the user's file to this one."""
        lines = difflib.unified_diff(
            self.user_text.splitlines(keepends=True), self.text.splitlines(keepends=True), str(self.user_file), str(self.place)
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def make_tuned_file(
    loaded: LoadedConfig, classes: Sequence[ClassTuning], ranges: Sequence[LogRange], sources: Sequence[str], date: str
) -> TunedFile:
    """The file for these results. `sources` are further lines of its header. Raises TunedFileError when the user's file cannot be read."""
    user_file = loaded.paths.user_config
    try:
        user_text = read_plain(user_file).decode("utf-8-sig") if user_file.exists() else ""
        tree: dict[str, Any] = tomllib.loads(user_text)
    except (OSError, ValueError) as error:
        raise TunedFileError(f"{user_file} cannot be read: {error}.", remedy="Mend it first.") from error
    version = next_version(loaded.version)
    tree = {"version": version} | {name: value for name, value in tree.items() if name != "version"}
    priors: dict[str, Any] = dict(as_table(tree.get("priors")) or {})
    for each in classes:
        if each.changed:
            now = {name: prior / 1000 for name, prior in each.after.items() if prior != each.before.get(name)}
            priors[each.task_class] = {**(as_table(priors.get(each.task_class)) or {}), **now}
    header = [
        f"# {version}, after {loaded.version}: priors by `search-router tune` on {date}, from verified receipts:",
        *(f"# {each}" for each in ranges),
        *(f"# {line}" for line in sources),
        *(f"# {describe(each)}" for each in classes if each.changed),
        *(["# The comments of the former file stay in that file."] if "#" in user_text else []),
    ]
    text = "\n".join(header) + "\n" + to_toml(tree | {"priors": priors})
    return TunedFile(version, user_file.parent / f"{version}.toml", text, user_file, user_text, loaded.version)


def describe(tuning: ClassTuning) -> str:
    """One class in one line."""
    about = f"{tuning.task_class}: {tuning.reason} ({tuning.questions} questions of {tuning.sessions} sessions"
    if tuning.gain is None or tuning.low is None or tuning.high is None or tuning.p is None:
        return f"{about})"
    return f"{about}; gain {tuning.gain:+.4f}, 95 % interval {tuning.low:+.4f} to {tuning.high:+.4f}, p {tuning.p:.4f})"


def next_version(version: str) -> str:
    """`search-router@1.0.0` → `search-router@1.0.1`."""
    name, _, numbers = version.rpartition("@")
    major, minor, patch = numbers.split(".")
    return f"{name}@{major}.{minor}.{int(patch) + 1}"


def stronger_layers(loaded: LoadedConfig, classes: Sequence[ClassTuning]) -> tuple[str, ...]:
    """Which tuned priors would not take effect, because a project's file, a variable or a flag sets them as well."""
    strong = {"project", "environment", "flags"}
    keys = [(f"priors.{each.task_class}.{name}") for each in classes if each.changed for name in each.after]
    origins: Mapping[str, Any] = loaded.origin
    return tuple(
        f"{key} is also set by {origins[key].source}, which is stronger than the user's file."
        for key in keys
        if key in origins and origins[key].layer.value in strong
    )


def write_tuned_file(tuned: TunedFile, *, extra: Sequence[str] = ()) -> None:
    """Write it, for its owner alone; `extra` are further header lines. Raises TunedFileError, also when a file of that name is there."""
    text = "".join(f"# {line}\n" for line in extra) + tuned.text
    try:
        tuned.place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(tuned.place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise TunedFileError(f"{tuned.place} is there already.", remedy="Use it, move it away, or remove it.") from error
    except OSError as error:
        raise TunedFileError(f"{tuned.place} cannot be written: {error.strerror}.", remedy="Mend the directory.") from error


def put_in_place(tuned: TunedFile) -> Path | None:
    """Make the written file the user's file; where the former one is now, None when there was none. Raises TunedFileError."""
    kept: Path | None = None
    try:
        if tuned.user_file.exists():
            kept = tuned.user_file.with_name(f"{tuned.former_version}.before-{tuned.version.rpartition('@')[2]}.toml")
            os.link(tuned.user_file, kept)
        tuned.place.replace(tuned.user_file)
    except OSError as error:
        raise TunedFileError(
            f"{tuned.place} could not be put in place of {tuned.user_file}: {error.strerror}.", remedy="Move it by hand."
        ) from error
    return kept
