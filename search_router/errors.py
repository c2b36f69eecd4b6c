"""The error tree. One place, so that every door can translate it.

    SearchRouterError
    ├── RequestError                 the caller's request cannot be run as it is
    │   ├── RequestRejected          wrong fields, types, ranges, encodings
    │   └── RequestDeclined          understood, and classified as nothing to search (empty, huge, zero experts)
    ├── ConfigError                  one or more mistakes in the configuration, all of them at once
    ├── ClientFileError              a client's configuration file that cannot be changed safely: untouched
    ├── WorkspaceError               a root that does not exist or cannot be read
    ├── ReceiptError
    │   ├── StoreUnavailable         the receipt store cannot be written: no answer leaves
    │   ├── KeyUnusable              missing, loose mode, wrong format
    │   └── ReceiptNotFound
    ├── EvidenceError                an evidence id that cannot be read, is outside the workspace, or is gone
    └── ExpertError                  one expert's failure, with its FailureClass; a value inside the fan-out

Every error says what happened, to what, and what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SearchRouterError(Exception):
    """Base of every error that this package raises on purpose.

    `code` is stable and machine-readable (kebab-case); `remedy` is one sentence that tells the caller what to do.
    """

    code: str = "internal"

    def __init__(self, message: str, *, remedy: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class RequestError(SearchRouterError):
    """The request cannot be run as it is. It still leaves a receipt."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong with one field of a request. `field` is a dotted path, `` for the whole request."""

    field: str
    code: str
    message: str


class RequestRejected(RequestError):
    """Wrong fields, types, ranges or encodings: `problems` names each of them, at least one."""

    code = "invalid-request"

    def __init__(self, problems: tuple[FieldProblem, ...], *, remedy: str = "") -> None:
        text = "; ".join(f"{p.field or 'request'}: {p.message}" for p in problems)
        super().__init__(f"Invalid request: {text}.", remedy=remedy, code=problems[0].code)
        self.problems = problems


class RequestDeclined(RequestError):
    """The request is well formed, and there is nothing that could be searched for it."""

    code = "declined"


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One mistake in the configuration: where (`source` is a file, `environment` or `flags`; 1-based line or 0), what."""

    source: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class ConfigError(SearchRouterError):
    """All mistakes found in all layers, in reading order; `remedy` is added to the usual one."""

    code = "invalid-config"

    def __init__(self, problems: tuple[ConfigProblem, ...], *, remedy: str = "") -> None:
        lines = "\n".join(f"  {p}" for p in problems)
        super().__init__(
            f"The configuration has {len(problems)} mistake(s):\n{lines}",
            remedy=f"\nMend them, or run `search-router config check` to see them again. {remedy}".rstrip(),
        )
        self.problems = problems


class ClientFileError(SearchRouterError):
    """The configuration file of an MCP client cannot be read, or cannot be changed safely; it is as it was."""

    code = "client-file-refused"


class WorkspaceError(SearchRouterError):
    """A root does not exist, is not a directory, or cannot be read."""

    code = "invalid-workspace"


class ReceiptError(SearchRouterError):
    """Base of what can go wrong with receipts."""

    code = "receipt-error"


class StoreUnavailable(ReceiptError):
    """The receipt could not be made durable, so the answer must not leave."""

    code = "receipt-store-unavailable"


class KeyUnusable(ReceiptError):
    """The signing key is missing, has a mode other than 0600, or is not an Ed25519 private key."""

    code = "receipt-key-unusable"


class ReceiptNotFound(ReceiptError):
    """No receipt has this id in any log of the store."""

    code = "receipt-not-found"


class EvidenceError(SearchRouterError):
    """An evidence id is malformed, outside the visible workspace, or its file is gone."""

    code = "evidence-unavailable"


class FailureClass(StrEnum):
    """Why an expert gave no usable answer. Never mixed up with an answer of zero results."""

    TIMEOUT = "timeout"
    """No answer in its time; also while it is still starting or indexing."""
    UNAVAILABLE = "unavailable"
    """It is not there now: nobody listens, a server error, a file that cannot be read."""
    UNCONFIGURED = "unconfigured"
    """A variable, key, package or address that it needs is missing or refused."""
    INDEX_MISSING = "index-missing"
    """It has no index of what was asked about."""
    CRASHED = "crashed"
    """It exited, or closed the connection, in the middle of a call."""
    PROTOCOL_ERROR = "protocol-error"
    """It sent something, and not an answer."""
    SPAWN_FAILED = "spawn-failed"
    """Its program could not be started."""
    BUSY = "busy"
    """It has too much to do, and no place was free in time."""
    REJECTED = "rejected"
    """It understood, and says no to this question."""
    SUSPECT_EMPTY = "suspect-empty"
    """It found nothing, and that is not to be believed: absence is not proven."""
    INTERNAL = "internal"
    """A mistake of ours; the receipt has the details."""


MAKE_READABLE = "Make them readable for this user, or ignore them in .gitignore if they are not to be searched."
"""What to do where a search left files out."""


class ExpertError(SearchRouterError):
    """Raised by an expert, caught at the fan-out boundary, reported in the answer and the receipt.

    `detail` is for the receipt: bounded, with no secrets and no file text.
    """

    code = "expert-error"

    def __init__(self, failure: FailureClass, message: str, *, remedy: str = "", detail: str = "") -> None:
        super().__init__(message, remedy=remedy, code=failure.value)
        self.failure = failure
        self.detail = detail[:2000]
