"""A path that no index has, with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One path that a reader might miss. `path` is empty for what concerns the whole list.

    Reasons: `symlink` (a target inside the project is listed under its own name), `nested-repository`,
    `submodule-not-checked-out`, `not-a-file` (pipe, socket, device), `unreadable`, `listing-cut`, `installed packages`.
    """

    path: str
    reason: str

    @property
    def lies_in_bytes(self) -> bool:
        """Whether the file's own bytes are the reason, so that it stays one until they change."""
        return self.reason in ("binary", "minified") or self.reason.startswith("larger than ")
