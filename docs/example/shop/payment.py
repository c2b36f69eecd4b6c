"""Charging cards."""

from shop.retry import RetryPolicy


class PaymentClient:
    """Talks to the card processor."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy

    def charge_card(self, token: str, cents: int) -> str:
        """Charge once; a declined card is not tried again, a dropped connection is."""
        return self.policy.run(lambda: self._send(token, cents))

    def _send(self, token: str, cents: int) -> str:
        raise NotImplementedError
