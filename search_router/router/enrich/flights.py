"""Identical questions that are under way at the same time are asked once; each caller has an answer and a receipt of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flight(Generic[T]):
    """One question under way. Who opened it lands it, once, with what came of it or with None; landing twice does nothing."""

    def __init__(self, flights: Flights[T], key: Hashable) -> None:
        self._flights = flights
        self._key = key
        self._landed: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def land(self, result: T | None) -> None:
        """Tell all who wait; None when there is nothing that they could use."""
        if not self._landed.done():
            self._landed.set_result(result)
        self._flights.forget(self._key, self)

    async def wait(self, seconds: float) -> T | None:
        """What came of it; None when nothing did, or not in time. Leaving does not disturb it."""
        done, _ = await asyncio.wait({self._landed}, timeout=max(0.0, seconds))
        return self._landed.result() if done else None


class Flights(Generic[T]):
    """All questions under way, by what they ask. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Flight[T]] = {}

    def board(self, key: Hashable) -> tuple[Flight[T], bool]:
        """(the flight for this question, whether it was opened just now and is the caller's to land)."""
        flight = self._open.get(key)
        if flight is not None:
            return flight, False
        flight = self._open[key] = Flight(self, key)
        return flight, True

    def forget(self, key: Hashable, flight: Flight[T]) -> None:
        """Nobody joins it any more."""
        if self._open.get(key) is flight:
            del self._open[key]
