"""How fast wires read a model's messages, whole and in pieces, and whether the time grows with the length only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from bench.measure import Line
from bench.run import Run
from toolgate.agents import wires

BAR = 5.0
"""Megabytes a second."""
PIECE = 40
"""Characters in a piece of a stream."""
TOOLS = ["code.read", "fs.write"]
PROSE = """\
I looked at `cart.py` and the *tests* beside it. The total is computed in **two** places (see the list), and it's the second
one that is wrong: where x < y it divides by 10 instead of 100, "as the report says". The other files don't matter here.

1. `total` sums the prices and takes off the discount;
2. `average` divides by the number of items & returns {nothing} for none.

"""
CODE = "```python\nfor item in items:\n    if item.price < limit:\n        total += item.price  # <- here\n```\n\n"
HOSTILE = ("x ```\n", 'x "\n', "> x\ny\n", "<tool_call>", "{", '{"a": {"', "`", "<think>", '<tool_call>{"')


async def wires_speed(run: Run) -> list[Line]:
    run.tell("wires: prose, calls, streams, hostile text")
    size = run.count(4_000_000, 1_000_000)
    lines = []
    for name in ("xml", "manifest", "leaked"):
        whole = _message(name, size)
        lines.append(_rate(f"{name}, messages with prose, code and calls", name, whole, _whole))
        lines.append(_rate(f"{name}, the same in pieces of {PIECE}", name, whole, _pieces))
        lines.append(_rate(f"{name}, one call of a megabyte", name, _call(name, 1_000_000), _whole))
        lines.append(_growth(name, size))
        lines.append(_hostile(name))
    return lines


def _call(name: str, size: int) -> str:
    content = 'a line of "text", with <tags> & {braces}\n' * (size // 45)
    call = {"name": "fs.write", "args": {"path": "notes.md", "content": content}}
    if name == "manifest":
        request = {
            "phase": "EXECUTE",
            "intent": "tool_call",
            "summary": "notes",
            "tools": [call],
            "requires_permission": True,
        }
        return json.dumps(request)
    return f"<tool_call>{json.dumps(call)}</tool_call>" if name == "xml" else json.dumps(call)


def _message(name: str, size: int) -> str:
    """A long answer: a hundred calls, with prose and code between them."""
    part = _call(name, size // 500)
    prose = (PROSE + CODE) * max(1, (size // 100 - len(part)) // len(PROSE + CODE))
    return (prose + part + "\n\n") * 100


def _whole(name: str, text: str) -> None:
    if len(wires.parse(text, name, TOOLS).calls) not in (1, 100):
        raise RuntimeError("a call was not read")


def _pieces(name: str, text: str) -> None:
    stream = wires.stream(name, TOOLS)
    for at in range(0, len(text), PIECE):
        stream.feed(text[at : at + PIECE])
    stream.close()


def _seconds(name: str, text: str, how: Callable[[str, str], None], times: int = 3) -> float:
    """The fastest of some runs, in processor time: what else the machine does is not counted."""
    best = float("inf")
    for _ in range(times):
        begun = time.process_time()
        how(name, text)
        best = min(best, time.process_time() - begun)
    return best


def _rate(what: str, name: str, text: str, how: Callable[[str, str], None]) -> Line:
    rate = len(text) / _seconds(name, text, how) / 1e6
    told = f"{len(text):,} characters; fastest of 3, processor time"
    return Line(
        what=f"wire {what}",
        ours=f"{rate:.1f} MB/s",
        bar=f"≥ {BAR:g} MB/s",
        holds=rate >= BAR,
        how=told,
    )


def _growth(name: str, size: int) -> Line:
    small, large = (_seconds(name, _message(name, one), _whole) for one in (size // 4, size))
    ratio = large / small / 4
    how = "time per character, four times as many characters against one; fastest of 3"
    return Line(
        what=f"wire {name}, growth", ours=f"{ratio:.2f} ×", bar="≤ 1.3 ×", holds=ratio <= 1.3, how=how
    )


def _hostile(name: str) -> Line:
    """The text that takes longest for its length; it must be linear too."""
    worst, told = 0.0, "nothing slow"
    for bit in HOSTILE:
        small, large = (_seconds(name, bit * (one // len(bit)), _pieces, 2) for one in (50_000, 200_000))
        ratio = large / max(small, 1e-4) / 4
        if large > 0.02 and ratio > worst:
            worst, told = ratio, bit
    how = f"time per character of {told!r}, 200 kB against 50 kB, in pieces"
    return Line(
        what=f"wire {name}, hostile text, growth",
        ours=f"{worst:.2f} ×",
        bar="≤ 2 ×",
        holds=worst <= 2,
        how=how,
    )
