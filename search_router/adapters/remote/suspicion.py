"""When an empty answer is no longer believed: an expert that keeps finding nothing while the others find. Pure."""

from __future__ import annotations

from dataclasses import dataclass

EMPTY_IN_A_ROW = 8
"""So many requests in a row, in each of which somebody else found something."""


@dataclass(slots=True)
class Suspicion:
    """Counts what the fan-out reports. `doubt` is a sentence while the expert is under suspicion."""

    empty: int = 0
    doubt: str = ""
    _canary_alive: bool = False

    @property
    def wants_canary(self) -> bool:
        """Whether it is time to ask a question that surely finds something."""
        return self.empty >= EMPTY_IN_A_ROW and not self._canary_alive

    def note(self, found: int, others: int) -> None:
        """One request: this expert's hits and everybody else's."""
        if found:
            self.empty, self.doubt, self._canary_alive = 0, "", False
        elif others:
            self.empty += 1
            if self.empty >= EMPTY_IN_A_ROW and not self._canary_alive:
                self.doubt = self.doubt or f"It found nothing in {self.empty} requests in a row in which others did."

    def hear_canary(self, canary: str, found: int) -> None:
        """What the canary question found: an expert that finds it is believed again, until it finds something and goes silent anew."""
        if found:
            self.doubt, self._canary_alive = "", True
        else:
            self.doubt = f"It found nothing in {self.empty} requests in a row in which others did, and nothing for {canary[:80]!r} either."
