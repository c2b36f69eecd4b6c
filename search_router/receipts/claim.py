"""Who writes which log: one process a log, by a lock on a file beside it.

Synchronous; the store calls it off the event loop. A damaged log is never replaced by a new one under the same id: it stays, and starts
fail, until someone sets it aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from search_router.errors import StoreUnavailable
from search_router.plain_files import check_plain_descriptor
from search_router.receipts.checkpoint import checkpoint_path
from search_router.receipts.keys import retired, sync_directory
from search_router.receipts.log import LOG_ID, SCHEMA, SCHEMA_VERSION, SIDE_FILES, log_ids, log_path, store_failure, unusable_path
from search_router.receipts.tip import Ownership, Tip, check_log, log_ownership
from search_router.receipts.upgrade import upgrade_log

GATE = "rotation.lock"
"""Starts share it for a moment, a key rotation has it alone: so nobody opens a log with a key that is being retired."""


@dataclass(frozen=True, slots=True)
class ClaimedLog:
    """A log that this process alone writes, for as long as `lock` is open."""

    id: str
    path: Path
    tip: Tip
    lock: int

    def release(self) -> None:
        os.close(self.lock)


def claim_log(directory: Path, keyid: str, *, created_us: int, new_id: Callable[[], str]) -> ClaimedLog:
    """The first log of this key that no other process writes, checked and locked; a new one when there is none.

    Raises:
        StoreUnavailable: the directory cannot be written, a log is damaged or from a newer version, or the key is being rotated.
        KeyUnusable: the key was retired.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _pass_gate(directory):
            for log in log_ids(directory):
                claimed = _try_claim(directory, log, keyid)
                if claimed is not None:
                    return claimed
            return _create_log(directory, new_id(), keyid, created_us)
    except OSError as error:
        raise unusable_path(directory, error) from error


@contextlib.contextmanager
def claim_all(directory: Path, keyid: str, *, created_us: int, new_id: Callable[[], str]) -> Generator[tuple[ClaimedLog, ...]]:
    """Every log that this key signs next, while nobody can start. Where the key never signed any log, a new one.

    Raises:
        StoreUnavailable: as `claim_log`; or another process writes one of them, which the error names.
    """
    with contextlib.ExitStack() as undo:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            undo.enter_context(_close_gate(directory))
            claimed: list[ClaimedLog] = []
            owners = {log: log_ownership(log_path(directory, log)) for log in log_ids(directory)}
            for log in (log for log, owner in owners.items() if owner.current == keyid):
                lock = _try_lock(directory, log)
                if lock is None:
                    raise StoreUnavailable(
                        f"The receipt log {log} is being written, so it cannot go over to another key.",
                        remedy="Stop every search-router process of this store, then run the command again. Nothing was changed.",
                    )
                undo.callback(os.close, lock)
                path = log_path(directory, log)
                claimed.append(ClaimedLog(log, path, _checked(path), lock))
            if not claimed and not any(keyid in owner.retired for owner in owners.values()):
                claimed.append(_create_log(directory, new_id(), keyid, created_us))
                undo.callback(claimed[0].release)
        except OSError as error:
            raise unusable_path(directory, error) from error
        yield tuple(claimed)


@contextlib.contextmanager
def claim_idle(directory: Path, log: str) -> Generator[ClaimedLog | None]:
    """A log of any key while no process writes it, checked; None when one does. Raises StoreUnavailable as `claim_log`."""
    path = log_path(directory, log)
    try:
        lock = _try_lock(directory, log)
        if lock is None:
            yield None
            return
        try:
            yield ClaimedLog(log, path, _checked(path), lock)
        finally:
            os.close(lock)
    except OSError as error:
        raise unusable_path(directory, error) from error


def _try_claim(directory: Path, log: str, keyid: str) -> ClaimedLog | None:
    """The log, locked, or None when another process has it or it belongs to another key."""
    path = log_path(directory, log)
    if not _is_owned(log_ownership(path), keyid):
        return None
    lock = _try_lock(directory, log)
    if lock is None:
        return None
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, lock)
        claimed = ClaimedLog(log, path, _checked(path), lock)
        undo.pop_all()
        return claimed


def _is_owned(owner: Ownership, keyid: str) -> bool:
    if keyid in owner.retired:
        raise retired(keyid)
    return owner.current == keyid


def _checked(path: Path) -> Tip:
    """Where the log goes on; its lock is held, so an old one can be upgraded first."""
    if log_ownership(path).version < SCHEMA_VERSION:
        upgrade_log(path)
    return check_log(path)


@contextlib.contextmanager
def _pass_gate(directory: Path) -> Generator[None]:
    yield from _hold_gate(directory, fcntl.LOCK_SH, "The signing key of this store is being rotated.", "Start again in a moment.")


@contextlib.contextmanager
def _close_gate(directory: Path) -> Generator[None]:
    yield from _hold_gate(directory, fcntl.LOCK_EX, "Another process is just starting or rotating the key.", "Run the command again.")


def _hold_gate(directory: Path, kind: int, why: str, remedy: str) -> Generator[None]:
    descriptor = os.open(directory / GATE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        check_plain_descriptor(descriptor, directory / GATE)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreUnavailable(why, remedy=remedy) from error
        yield
    finally:
        os.close(descriptor)


def _create_log(directory: Path, log: str, keyid: str, created_us: int) -> ClaimedLog:
    """Make the file whole under another name first, so that a crash cannot leave a half-made log that looks like a damaged one."""
    if not LOG_ID.fullmatch(log):
        raise ValueError(f"a log id has 12 hexadecimal digits, not {log!r}")
    lock = _try_lock(directory, log)
    if lock is None:
        raise StoreUnavailable(f"The new log id {log} is in use.", remedy="Start again.")
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, lock)
        path = log_path(directory, log)
        draft = directory / f".{log}.draft"
        for suffix in SIDE_FILES:
            Path(f"{draft}{suffix}").unlink(missing_ok=True)
        try:
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
                database.executescript(SCHEMA)
                database.execute("INSERT INTO log VALUES (1, ?, ?, ?)", (log, keyid, created_us))
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_failure(path, error) from error
        os.link(draft, path)  # unlike rename, never over another log
        draft.unlink()
        sync_directory(directory)
        claimed = ClaimedLog(log, path, check_log(path), lock)
        undo.pop_all()
        return claimed


def _try_lock(directory: Path, log: str) -> int | None:
    """The descriptor of the locked lock file, or None when it is taken. The kernel frees it when the process ends, however it ends."""
    descriptor = os.open(directory / f"{log}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        check_plain_descriptor(descriptor, directory / f"{log}.lock")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def set_log_aside(directory: Path, log: str, checkpoints: Path | None = None) -> Path:
    """Move a log's files, unchanged, to `damaged/<log>/` and return that directory; the next start makes a new log with another id.

    Its checkpoint file, in the directory `checkpoints`, goes to `set-aside/` there. This is what `search-router receipts repair LOG` does.
    Nothing is deleted and nothing is mended: a mended log proves nothing.

    Raises:
        StoreUnavailable: a process is writing the log, or the files cannot be moved.
    """
    target = directory / "damaged" / log
    if not LOG_ID.fullmatch(log) or not log_path(directory, log).exists():
        raise StoreUnavailable(f"There is no receipt log {log!r} in {directory}.", remedy="`search-router receipts list` shows the logs.")
    try:
        lock = _try_lock(directory, log)
        if lock is None:
            raise StoreUnavailable(f"The receipt log {log} is being written.", remedy="Stop the process that writes it first.")
        try:
            target.mkdir(mode=0o700, parents=True)
            for suffix in reversed(SIDE_FILES):
                source = Path(f"{log_path(directory, log)}{suffix}")
                if source.exists():
                    source.rename(target / source.name)
            sync_directory(directory)
            if checkpoints is not None and (kept := checkpoint_path(checkpoints, log)).exists():
                (checkpoints / "set-aside").mkdir(mode=0o700, exist_ok=True)
                kept.rename(checkpoints / "set-aside" / kept.name)
                sync_directory(checkpoints)
        finally:
            os.close(lock)
    except OSError as error:
        raise unusable_path(directory, error) from error
    return target
