"""Orders and their payment."""

from shop.payment import PaymentClient


def pay_order(client: PaymentClient, order: dict[str, object]) -> str:
    """Charge the card of an order; retry is the client's business."""
    return client.charge_card(str(order["token"]), int(str(order["cents"])))
