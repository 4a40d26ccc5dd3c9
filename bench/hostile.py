"""Calls that are as large as somebody can send, in every shape we could think of, and how long others wait meanwhile.

`shapes` are arguments; each is made when it is needed, as together they are larger than the machine. Up to 16 MB each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import toolgate
from bench.measure import Line
from bench.run import Run
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


def _text(of: str, size: int) -> str:
    return of * (size // len(of))


def _diff(files: int, hunks: int) -> str:
    parts = []
    for at in range(files):
        parts.append(f"--- a/f{at}.txt\n+++ b/f{at}.txt\n")
        parts += [f"@@ -{10 * one + 1},1 +{10 * one + 1},1 @@\n-a\n+b\n" for one in range(hunks)]
    return "".join(parts)


Shape = tuple[str, Callable[[], dict[str, Any]]]
"""A tool, and what is sent to it."""


def shapes(many: int, size: int = 8 * MB) -> dict[str, Shape]:
    """With lists of so many values, and texts of so many characters."""
    half = size // 2
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
        "a long program": ("exec.python", lambda: {"code": _text("x = 1\n", size - 100)}),
        "a program in other scripts": ("exec.python", lambda: {"code": _text(_SCRIPTS, min(size, MB) - 1)}),
        "many secrets' names": ("exec.python", lambda: {"code": "1", "secrets": ["S"] * many}),
        "a long argv": ("exec.shell", lambda: {"argv": ["x"] * many}),
        "unknown arguments": ("fs.read", lambda: {"path": "a", **_wide(many)}),
        "unknown arguments with long names": ("fs.read", lambda: {f"{n}" + "k" * 10_000: 1 for n in range(800)}),
        "ranges": ("fs.read", lambda: {"path": "a", "ranges": [[1, 2]] * many}),
        "ranges that are objects": ("fs.read", lambda: {"path": "a", "ranges": [{"start": 1, "end": 2}] * many}),
        "wrong ranges": ("fs.read", lambda: {"path": "a", "ranges": ["x"] * many}),
        "a long path": ("fs.read", lambda: {"path": "a/" * half}),
        "a path of marks": ("fs.read", lambda: {"path": _text(_MARKS, size - 100)}),
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
        "combining marks": ("fs.write", lambda: {"path": "a.txt", "content": _text(_MARKS, half)}),
        "other scripts": ("fs.write", lambda: {"path": "a.txt", "content": _text(_SCRIPTS, half)}),
        "lone surrogates": ("fs.write", lambda: {"path": "a.txt", "content": "\ud800" * half}),
        "NUL characters": ("fs.write", lambda: {"path": "a.txt", "content": "\0" * half}),
        "escapes of escapes": ("fs.write", lambda: {"path": "a.txt", "content": _text("%2525\\\\u0025", half)}),
        "one long line": ("fs.write", lambda: {"path": "a.txt", "content": _text("x" * 100, size - 100)}),
        "lines and nothing else": ("fs.write", lambda: {"path": "a.txt", "content": "\n" * half}),
        "what looks like secrets": (
            "fs.write",
            lambda: {"path": "a.txt", "content": _text("api_key = 'AK" "IAIOSFODNN7EXAMPLX'\n", size // 4)},
        ),
        "markers of secrets": ("fs.write", lambda: {"path": "a.txt", "content": _text("[secret:A] ", half)}),
        "a diff of many hunks": ("fs.patch", lambda: {"diff": _diff(1, min(200_000, size // 40))}),
        "a diff of many files": ("fs.patch", lambda: {"diff": _diff(size // 160, 1)}),
        "a diff of one long line": ("fs.patch", lambda: {"diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + "a" * (half + size // 4)}),
        "a text that is nowhere": ("fs.edit", lambda: {"path": "a.txt", "find": _text("ab", size - 100), "replace": ""}),
        "a name of a megabyte": ("x" * MB, dict),
        "a name of words": ("fs_" * MB, dict),
        "kinds": ("events.query", lambda: {"kind": "denied," * MB}),
        "a moment": ("events.query", lambda: {"since": "2026" * MB}),
        "events to undo": ("ledger.undo", lambda: {"events": list(range(1, many))}),
        "a diff of many lines": ("fs.patch", lambda: {"diff": f"--- a/x\n+++ b/x\n@@ -0,0 +1,{size // 2} @@\n" + "+\n" * (size // 2)}),
        "a persona's name": ("fs.read", lambda: {"path": "a", "offset": "x" * size}),
        "a hash to match": ("fs.write", lambda: {"path": "a.txt", "content": "", "if_match": "f" * size}),
        "what a program reads": ("exec.python", lambda: {"code": "1", "stdin": _text(_SCRIPTS, size)}),
        "lists in lists": ("events.log", lambda: {"type": "x", "data": {"a": [[[]] * 200] * 200}}),
        "keys in other scripts": ("events.log", lambda: {"type": "x", "data": {f"é{n}": n for n in range(many)}}),
        "evidence": ("events.log", lambda: {"type": "x", "evidence_refs": ["e" * 4000] * 2000}),
        "what is no object": ("fs.read", lambda: [1] * many),  # type: ignore[dict-item,return-value]
    }  # fmt: skip


async def longest_wait(
    gate: Gate, work: Callable[[], Awaitable[Any]], others: str = "bob"
) -> tuple[float, float, Any]:
    """The longest that another persona waits for a ping meanwhile, the longest just before, and what came of the work."""
    before = [await _ping(gate, others) for _ in range(5)]
    task = asyncio.ensure_future(work())
    waits = [await _ping(gate, others)]
    while not task.done():
        waits.append(await _ping(gate, others))
    return max(waits), max(before), task.result()


async def _ping(gate: Gate, persona: str) -> float:
    """How long it takes, with the wait for its turn. What other processes do meanwhile does not count: no more of it than
    this one has computed."""
    begun, computed = time.perf_counter(), time.process_time()
    await asyncio.sleep(0.001)
    answer = await gate.call("system.ping", {}, persona=persona)
    assert answer.ok, answer.error
    return min(time.perf_counter() - begun, time.process_time() - computed)


_ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "eve",
    "personas": {
        "eve": {"phase": "contribute", "allow": ["fs.*", "events.*"]},
        "bob": {"phase": "observe"},
    },
    "limits": {"persona": _ROOMY, "global": _ROOMY},
    "policy": {"rules": [{"name": "asked", "tools": ["exec.*"], "decision": "ask"}]},
}
BAR = 0.25


async def stalls(run: Run) -> list[Line]:
    """The bar of `no input of 16 MB holds another persona up`, for each shape; the worst is told."""
    root = run.folder("stalls")
    (root / "a.txt").write_text("hello\n")
    found: list[tuple[float, str]] = []
    async with toolgate.open(root, CONFIG) as gate:
        for many in (100_000, 24_000):
            for name, (tool, make) in shapes(many, run.count(8 * MB, MB)).items():
                run.tell(f"{name} ({many:,})")
                args = make()
                waited, idle, _ = await longest_wait(gate, lambda t=tool, a=args: gate.call(t, a, wait=False))  # type: ignore[misc]
                found.append((max(0.0, waited - idle), name))
    found.sort(reverse=True)
    worst = ", ".join(f"{name} {waited * 1000:.0f} ms" for waited, name in found[:3])
    return [
        Line(
            what="what a call of another persona waits for, at most",
            ours=f"{found[0][0] * 1000:.0f} ms",
            how=f"{len(found)} hostile calls of up to 16 MB, beside pings; the worst: {worst}",
            bar=f"≤ {BAR * 1000:.0f} ms",
            holds=found[0][0] <= BAR,
        )
    ]
