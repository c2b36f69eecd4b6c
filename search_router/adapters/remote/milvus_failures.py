"""What pymilvus and gRPC raise, as failure classes; a token is in none of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator

from search_router.errors import ExpertError, FailureClass
from search_router.redact import scrub

NO_COLLECTION, NOT_LOADED, CONNECT_FAILED = 100, 101, 2
BUSY_CODES = frozenset({8, 9})
DENIED_CODES = frozenset({80, 1800})
"""Codes of pymilvus' ErrorCode and of Milvus itself."""
SAID = 300


def _raised_by_milvus() -> tuple[type[BaseException], ...]:
    """What pymilvus and gRPC raise, where they have been imported at all."""
    milvus, grpc = sys.modules.get("pymilvus.exceptions"), sys.modules.get("grpc")
    found: list[type[BaseException]] = [getattr(milvus, "MilvusException")] if milvus else []  # noqa: B009 - it has no types
    return (ValueError, *found, *([getattr(grpc, "RpcError")] if grpc else []))  # noqa: B009 - it has no types


@contextlib.contextmanager
def milvus_failures(collection: str, token_env: str, seconds: float) -> Generator[None]:
    """What pymilvus and gRPC raise as failure classes, without the token."""
    try:
        yield
    except _raised_by_milvus() as error:
        text = _words(error, token_env)
        raise _failure_of(error, text, collection, seconds) from error


def _failure_of(error: BaseException, text: str, collection: str, seconds: float) -> ExpertError:
    name = type(error).__name__
    code = getattr(error, "code", None)
    code = code() if callable(code) else code
    status = str(getattr(code, "name", ""))
    if status == "UNAUTHENTICATED" or code in DENIED_CODES or "auth check failure" in text:
        return ExpertError(FailureClass.UNCONFIGURED, f"It refuses the token: {text}", remedy="Check the variable in `token_env`.")
    if status == "DEADLINE_EXCEEDED" or "DEADLINE_EXCEEDED" in text or "Deadline Exceeded" in text:
        return ExpertError(FailureClass.TIMEOUT, f"No answer in {seconds:g} s: {text}")
    if status == "UNAVAILABLE" or name in ("MilvusUnavailableException", "ConnectError") or code == CONNECT_FAILED:
        return ExpertError(FailureClass.UNAVAILABLE, f"It cannot be reached: {text}", remedy="Check `uri`.")
    if "Open local milvus failed" in text:
        words = "The database cannot be opened: another process has it open, or it is damaged."
        return ExpertError(FailureClass.BUSY, words, remedy="milvus-lite lets one process in at a time.")
    if code == NO_COLLECTION or name == "CollectionNotExistException":
        words = f"There is no collection {collection}: {text}"
        return ExpertError(FailureClass.INDEX_MISSING, words, remedy="Fill it, or set `collection`.")
    if code == NOT_LOADED or "not loaded" in text:
        return ExpertError(FailureClass.UNAVAILABLE, f"The collection is not loaded: {text}", remedy="Load it in Milvus.")
    if code in BUSY_CODES:
        return ExpertError(FailureClass.BUSY, f"It has no room for the question: {text}")
    if name == "ConnectionConfigException" or isinstance(error, ValueError):
        return ExpertError(FailureClass.UNCONFIGURED, f"It cannot be asked as configured: {text}", remedy="Check `uri`.")
    return ExpertError(FailureClass.REJECTED, f"It says: {text}")


def _words(error: BaseException, token_env: str) -> str:
    text = " ".join(str(getattr(error, "message", None) or error).split())
    token = os.environ.get(token_env, "") if token_env else ""
    return scrub(text.replace(token, "[removed]") if token else text)[:SAID]
