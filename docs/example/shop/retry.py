"""Trying again, with a limit."""

import time
from collections.abc import Callable


class RetryPolicy:
    """At most `limit` tries, waiting longer after each."""

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def run(self, action: Callable[[], str]) -> str:
        for attempt in range(self.limit):
            try:
                return action()
            except ConnectionError:
                time.sleep(2**attempt)
        raise TimeoutError(f"gave up after {self.limit} tries")
