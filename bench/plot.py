"""Growth as a picture: lines over sizes on logarithmic axes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 230, 40, 50
COLOURS = ("#0b6e4f", "#c8553d", "#8a6fae", "#2f6fb0", "#8b7500")


class Series(NamedTuple):
    name: str
    points: list[tuple[float, float]]


def growth_svg(title: str, series: Sequence[Series]) -> str:
    """Each decade has a line, and each series its name beside its last point."""
    xs = [x for each in series for x, _ in each.points]
    ys = [y for each in series for _, y in each.points if y > 0]
    across = (math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs))))
    up = (math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))))

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - across[0]) / max(across[1] - across[0], 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (math.log10(max(value, 10 ** up[0])) - up[0]) / max(up[1] - up[0], 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 22, title, "start", "#222", 15)]
    for power in range(across[0], across[1] + 1):
        at = x(10**power)
        parts.append(f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(_text(at, HEIGHT - BOTTOM + 18, f"{10**power:,}", "middle"))
    for power in range(up[0], up[1] + 1):
        at = y(10**power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, at + 4, f"{10**power:,g}", "end"))
    ends = _apart([y(each.points[-1][1]) for each in series])
    for each, colour, end in zip(series, COLOURS, ends, strict=False):
        line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in each.points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{colour}"/>' for a, b in each.points]
        last = each.points[-1][1]
        said = f"{each.name}: {last:,.0f}" if last >= 100 else f"{each.name}: {last:.3g}"
        parts.append(_text(WIDTH - RIGHT + 12, end + 4, said, "start", colour))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#555", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'


def _apart(places: list[float], least: float = 16) -> list[float]:
    """Labels that would lie on each other are moved down."""
    found = list(places)
    for before, after in pairwise(sorted(range(len(found)), key=places.__getitem__)):
        found[after] = max(found[after], found[before] + least)
    return found
