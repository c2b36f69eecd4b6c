"""Structured logs: whole lines, scrubbed, bounded, and never waited for."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from search_router.telemetry.events import CLOSE_SECONDS, QUEUED_LINES, EventHandler, EventLog

SECRET = "ghp_PlantedSecret0123456789"


@contextmanager
def pipe() -> Generator[tuple[int, int]]:
    read, write = os.pipe()
    try:
        yield read, write
    finally:
        for end in (read, write):
            os.close(end)


def events_of(read: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in os.read(read, 2**20).splitlines()]


def logged(*, content: bool) -> list[dict[str, Any]]:
    with pipe() as (read, write):
        events = EventLog(write, content=content)
        handler = EventHandler(events)
        ours, theirs = logging.getLogger("search_router.tested"), logging.getLogger("tested.elsewhere")
        for logger in (ours, theirs):
            logger.propagate = False
            logger.addHandler(handler)
            try:
                raise ValueError(f"/home/zanzibar {SECRET}")
            except ValueError as error:
                logger.warning("Refused %s", f"/home/zanzibar {SECRET}", exc_info=error)
            logger.removeHandler(handler)
        events.close()
        return events_of(read)


def test_other_codes_messages_are_left_out_and_ours_keep_their_template() -> None:
    ours, theirs = logged(content=False)
    assert (ours["template"], ours["error"], ours["logger"], ours["level"]) == (
        "Refused %s",
        "ValueError",
        "search_router.tested",
        "warning",
    )
    assert "template" not in theirs
    assert theirs["where"].startswith("test_events:")
    assert "zanzibar" not in json.dumps([ours, theirs])


def test_with_content_messages_are_scrubbed() -> None:
    for event in logged(content=True):
        assert event["message"].startswith("Refused /home/zanzibar")
        assert SECRET not in json.dumps(event)


def test_texts_are_scrubbed_at_any_depth_and_a_line_is_one_line() -> None:
    with pipe() as (read, write):
        events = EventLog(write, content=False)
        events.say("request", {"status": "answered\n{}", "failed": {"a": f"password={SECRET}"}, "nothing": None, "ms": 1.5})
        events.close()
        (event,) = events_of(read)
    assert event["failed"] == {"a": "password=[removed]"}
    assert (event["event"], event["ms"], "nothing" in event) == ("request", 1.5, False)


def test_a_reader_that_does_not_read_stops_nobody_and_what_is_lost_is_counted() -> None:
    with pipe() as (read, write):
        events = EventLog(write, content=False)
        started = time.monotonic()
        for _ in range(3 * QUEUED_LINES):
            events.say("request", {"text": "x" * 200})
        assert time.monotonic() - started < 5
        seen: list[dict[str, Any]] = []
        rest = b""
        while not any("dropped_before" in event for event in seen):
            *lines, rest = (rest + os.read(read, 2**16)).split(b"\n")
            seen += [json.loads(line) for line in lines]
            events.say("request", {})
        assert max(event.get("dropped_before", 0) for event in seen) > 0
        events.close()


def test_the_end_is_bounded_when_nobody_reads() -> None:
    read, write = os.pipe()
    events = EventLog(write, content=False)
    for _ in range(2 * QUEUED_LINES):
        events.say("request", {"text": "x" * 200})
    started = time.monotonic()
    events.close()
    assert time.monotonic() - started < 4 * CLOSE_SECONDS
    os.close(read)  # the writer's next byte fails, and it goes on to its end
    events.close()
    os.close(write)
