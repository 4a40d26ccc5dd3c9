"""What the shop shows."""

from cart import total


def receipt(prices: list[float], discount: float) -> str:
    return f"to pay: {total(prices, discount):.2f}"
