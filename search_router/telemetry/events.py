"""Structured logs: one JSON object a line on standard error, written by a thread so that a full pipe stops nobody.

What other code logs comes in over `logging`. Its messages may hold anything (paths, questions, the text of an exception), so without
`telemetry.content` only the template of our own modules' messages is kept, never what was put into it, and of others' the place alone.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from search_router.redact import scrub

QUEUED_LINES = 1000
TEXT_CHARACTERS = 1000
CLOSE_SECONDS = 0.5
OURS = "search_router"


class EventLog:
    """Writes events to a file descriptor. A line that finds no room is dropped and counted; the count is written with the next one."""

    def __init__(self, descriptor: int, *, content: bool) -> None:
        self.content = content
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes | None] = queue.Queue(QUEUED_LINES)
        self._dropped = 0
        self._writer = threading.Thread(target=self._write, name="search-router events", daemon=True)
        self._writer.start()

    def say(self, event: str, fields: Mapping[str, Any], level: str = "info") -> None:
        """Hand one event over; never waits. Every text is scrubbed of what looks like a secret."""
        body: dict[str, Any] = {"time": datetime.now(UTC).isoformat(timespec="microseconds"), "level": level, "event": event}
        body.update((name, _clean(value)) for name, value in fields.items() if value is not None)
        dropped, self._dropped = self._dropped, 0
        if dropped:
            body["dropped_before"] = dropped
        try:
            self._lines.put_nowait(json.dumps(body, ensure_ascii=True, default=str).encode() + b"\n")
        except queue.Full:
            self._dropped += dropped + 1

    def close(self) -> None:
        """Write what is queued, within CLOSE_SECONDS."""
        try:
            self._lines.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._writer.join(CLOSE_SECONDS)

    def _write(self) -> None:
        # Not through sys.stderr: a thread that is stopped in the midst of its buffer's lock aborts the interpreter at its end.
        while (line := self._lines.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                continue  # nobody reads it any more; the next line may find somebody again


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value, TEXT_CHARACTERS)
    if isinstance(value, Mapping):
        return {name: _clean(below) for name, below in cast("Mapping[str, Any]", value).items()}
    return value


class EventHandler(logging.Handler):
    """What is logged, as events."""

    def __init__(self, events: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "where": f"{record.module}:{record.lineno}"}
        if self._events.content:
            fields["message"] = record.getMessage()
        elif record.name.partition(".")[0] == OURS and isinstance(record.msg, str) and record.args:
            fields["template"] = record.msg
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        self._events.say("log", fields, record.levelname.lower())
