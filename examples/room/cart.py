"""A shopping cart."""


def subtotal(prices: list[float]) -> float:
    return sum(prices)


def total(prices: list[float], discount: float = 0) -> float:
    """The price of all, less a discount in percent."""
    full = subtotal(prices)
    return full - full * discount / 10


def average(prices: list[float]) -> float:
    return total(prices) / len(prices) if prices else 0
