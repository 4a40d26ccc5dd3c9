"""Calls that are as large as somebody can send, in every shape we could think of, and how long others wait meanwhile.

`shapes` are arguments; each is made when it is needed, as together they are larger than the machine. Up to 16 MB each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.facade import Gate

MB = 1 << 20
_MARKS = "e" + "\u0301\u0327\u0489" * 40
_SCRIPTS = "при́вет κόσμε שָׁלוֹם مرحبا สวัสดี नमस्ते 你好 \u202e\u200b\u2066"


def _deep(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def _wide(count: int, value: Any = 1) -> dict[str, Any]:
    return {f"k{at}": value for at in range(count)}


def _text(of: str, size: int = 8 * MB - 100) -> str:
    return of * (size // len(of))


def _diff(files: int, hunks: int) -> str:
    parts = []
    for at in range(files):
        parts.append(f"--- a/f{at}.txt\n+++ b/f{at}.txt\n")
        parts += [f"@@ -{10 * one + 1},1 +{10 * one + 1},1 @@\n-a\n+b\n" for one in range(hunks)]
    return "".join(parts)


Shape = tuple[str, Callable[[], dict[str, Any]]]
"""A tool, and what is sent to it."""


def shapes(many: int) -> dict[str, Shape]:
    return {
        "a long list of hosts": ("exec.python", lambda: {"code": "1", "network": ["h.example"] * many}),
        "hosts that are all different": (
            "exec.python",
            lambda: {"code": "1", "network": [f"h{n}.example" for n in range(many)]},
        ),
        "hosts in other scripts": (
            "exec.python",
            lambda: {"code": "1", "network": {"hosts": ["bücher.example"] * many}},
        ),
        "long hosts": ("exec.python", lambda: {"code": "1", "network": ["a." * 50_000] * 100}),
        "64 hosts that are hard to read": ("exec.python", lambda: {"code": "1", "network": ["é" * 250] * 64}),
        "unknown keys in a model": ("exec.python", lambda: {"code": "1", "network": _wide(many)}),
        "wrong methods": (
            "exec.python",
            lambda: {"code": "1", "network": {"hosts": [], "methods": ["?"] * many}},
        ),
        "many files": ("exec.python", lambda: {"code": "1", "files": _wide(many, "x")}),
        "files of the wrong kind": ("exec.python", lambda: {"code": "1", "files": _wide(many, 1)}),
        "long names of files": ("exec.python", lambda: {"code": "1", "files": {"a/" * MB: "x"}}),
        "a long program": ("exec.python", lambda: {"code": _text("x = 1\n")}),
        "a program in other scripts": ("exec.python", lambda: {"code": _text(_SCRIPTS, MB - 1)}),
        "many secrets' names": ("exec.python", lambda: {"code": "1", "secrets": ["S"] * many}),
        "a long argv": ("exec.shell", lambda: {"argv": ["x"] * many}),
        "unknown arguments": ("fs.read", lambda: {"path": "a", **_wide(many)}),
        "unknown arguments with long names": ("fs.read", lambda: {f"{n}" + "k" * 10_000: 1 for n in range(800)}),
        "ranges": ("fs.read", lambda: {"path": "a", "ranges": [[1, 2]] * many}),
        "ranges that are objects": ("fs.read", lambda: {"path": "a", "ranges": [{"start": 1, "end": 2}] * many}),
        "wrong ranges": ("fs.read", lambda: {"path": "a", "ranges": ["x"] * many}),
        "a long path": ("fs.read", lambda: {"path": "a/" * 4 * MB}),
        "a path of marks": ("fs.read", lambda: {"path": _text(_MARKS)}),
        "many paths": ("code.search", lambda: {"pattern": "x", "paths": ["a"] * many}),
        "a long pattern": ("code.search", lambda: {"pattern": "(a|b)*" * MB}),
        "many globs": ("code.search", lambda: {"pattern": "x", "exclude_patterns": ["**/*" * 100] * 1000}),
        "deep nesting": ("events.log", lambda: {"type": "x", "data": {"a": _deep(900)}}),
        "deep nesting below a long key": (
            "events.log",
            lambda: {"type": "x", "data": {"k" * 4000: _deep(50, [1.5] * 49_000)}},
        ),
        "a wide object": ("events.log", lambda: {"type": "x", "data": _wide(many)}),
        "numbers": ("events.log", lambda: {"type": "x", "data": {"n": [1.5] * (many * 10)}}),
        "as many numbers as may be": ("events.log", lambda: {"type": "x", "data": {"n": [1.5e300] * 49_000}}),
        "a huge integer": ("events.log", lambda: {"type": "x", "data": {"n": 10**1_000_000}}),
        "a long text of digits for a number": ("fs.list", lambda: {"path": ".", "limit": "9" * MB}),
        "combining marks": ("fs.write", lambda: {"path": "a.txt", "content": _text(_MARKS, 4 * MB)}),
        "other scripts": ("fs.write", lambda: {"path": "a.txt", "content": _text(_SCRIPTS, 4 * MB)}),
        "lone surrogates": ("fs.write", lambda: {"path": "a.txt", "content": "\ud800" * 4 * MB}),
        "NUL characters": ("fs.write", lambda: {"path": "a.txt", "content": "\0" * 4 * MB}),
        "escapes of escapes": ("fs.write", lambda: {"path": "a.txt", "content": _text("%2525\\\\u0025", 4 * MB)}),
        "one long line": ("fs.write", lambda: {"path": "a.txt", "content": _text("x" * 100)}),
        "lines and nothing else": ("fs.write", lambda: {"path": "a.txt", "content": "\n" * (4 * MB)}),
        "what looks like secrets": (
            "fs.write",
            lambda: {"path": "a.txt", "content": _text("api_key = 'AKIAIOSFODNN7EXAMPLX'\n", 2 * MB)},
        ),
        "markers of secrets": ("fs.write", lambda: {"path": "a.txt", "content": _text("[secret:A] ", 4 * MB)}),
        "a diff of many hunks": ("fs.patch", lambda: {"diff": _diff(1, 200_000)}),
        "a diff of many files": ("fs.patch", lambda: {"diff": _diff(50_000, 1)}),
        "a diff of one long line": ("fs.patch", lambda: {"diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + "a" * 6 * MB}),
        "a text that is nowhere": ("fs.edit", lambda: {"path": "a.txt", "find": _text("ab"), "replace": ""}),
        "a name of a megabyte": ("x" * MB, dict),
        "a name of words": ("fs_" * MB, dict),
        "kinds": ("events.query", lambda: {"kind": "denied," * MB}),
        "a moment": ("events.query", lambda: {"since": "2026" * MB}),
        "events to undo": ("ledger.undo", lambda: {"events": list(range(1, many))}),
        "what is no object": ("fs.read", lambda: [1] * many),  # type: ignore[dict-item,return-value]
    }  # fmt: skip


async def longest_wait(
    gate: Gate, work: Callable[[], Awaitable[Any]], *, others: str = "bob"
) -> tuple[float, float, Any]:
    """The longest that another persona waited for a ping meanwhile, the longest before it, and what came of the work."""
    task: asyncio.Task[Any] | None = None
    waits: list[float] = []
    before: list[float] = []
    for _ in range(20):
        before.append(await _ping(gate, others))
    task = asyncio.ensure_future(work())
    while not task.done():
        waits.append(await _ping(gate, others))
    waits.append(await _ping(gate, others))
    return max(waits), max(before), task.result()


async def _ping(gate: Gate, persona: str) -> float:
    """With what it waited for its turn before."""
    begun = time.perf_counter()
    await asyncio.sleep(0.001)
    answer = await gate.call("system.ping", {}, persona=persona)
    assert answer.ok, answer.error
    return time.perf_counter() - begun
