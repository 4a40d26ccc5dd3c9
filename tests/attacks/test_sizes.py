"""One persona sends as much as it can, in every shape; another one's calls go on meanwhile.

The bar of 250 ms is for `python -m bench stalls`; here a busy machine must not fail, so the bound is generous. What was
wrong before took from two seconds to a minute.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench.hostile import CONFIG, MB, longest_wait, shapes
from pydantic import SecretStr

import toolgate
from scan.corpus import GITHUB
from toolgate.core.apart import large
from toolgate.core.errors import Failed
from toolgate.facade import Gate
from toolgate.features.garden.citations import _CITED
from toolgate.features.garden.grammar import read
from toolgate.features.memory.items import has_instructions
from toolgate.features.memory.summarizing import cited_lines
from toolgate.sandbox.javascript import is_commonjs, tidy
from toolgate.secrets.redactor import cleaned
from toolgate.secrets.scan.tokens import runs, tokens

BEARABLE = 1.5
KNOWN = frozenset({"invalid_args", "too_large", "outside_mount", "unknown_tool", "not_allowed", "rate_limited", "pending",
                   "blocked_content", "conflict", "not_found", None})  # fmt: skip


READY: dict[str, Any] = {}
"""Made beforehand: how long a tool takes is its own affair."""


def _answers() -> dict[str, Callable[[], Any]]:
    """What a tool gives back."""
    return {
        "other scripts": lambda: "שָׁלוֹם привет \u202e" * 400_000,
        "many values": lambda: [[n, str(n)] for n in range(50_000)],
        "a wide object": lambda: {f"k{n}": n for n in range(100_000)},
        "deep": lambda: {"a": [[["x" * 1000] * 20] * 20] * 20},
        "control characters": lambda: "\x01\x1b" * MB,
    }


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    @toolgate.tool("t.give", reads=["outside"])
    async def give(what: str) -> Any:
        return READY[what]

    config = CONFIG | {
        "personas": CONFIG["personas"]
        | {"eve": {"phase": "contribute", "allow": ["fs.*", "events.*", "t.*"]}}
    }
    (tmp_path / "a.txt").write_text("hello\n")
    async with toolgate.open(tmp_path, config, tools=[give]) as made:
        yield made


def _bound(idle: float) -> float:
    return BEARABLE + 10 * idle


@pytest.mark.parametrize("many", [100_000, 24_000])
async def test_no_shape_of_arguments_holds_another_persona_up(gate: Gate, many: int) -> None:
    found = shapes(many, MB // 2)
    assert len(found) >= 50
    slow = {}
    for name, (tool, make) in found.items():
        args = make()
        waited, idle, result = await longest_wait(
            gate,
            lambda tool=tool, args=args: gate.call(tool, args, persona="eve", wait=False),  # type: ignore[misc]
        )
        if waited > _bound(idle):
            slow[name] = waited
        code = result.error and result.error.code.value
        assert code in KNOWN, (name, result.error)
        assert result.error is None or len(result.error.message) < 3000, name
    assert slow == {}


@pytest.mark.parametrize("what", _answers())
async def test_no_answer_holds_another_persona_up(gate: Gate, what: str) -> None:
    READY[what] = _answers()[what]()
    waited, idle, result = await longest_wait(
        gate, lambda: gate.call("t.give", {"what": what}, persona="eve")
    )
    READY.clear()
    assert waited < _bound(idle)
    assert result.ok, result.error


@pytest.mark.parametrize("word", ["key", "reason", "conversation", "plan"])
async def test_long_words_about_a_call_are_refused_before_secrets_are_looked_for(
    gate: Gate, word: str
) -> None:
    await gate.set_secret("TOKEN", "a-value-that-is-long-enough")
    more: Any = {word: "%2561\\u0061" * 200_000}
    waited, idle, result = await longest_wait(
        gate, lambda: gate.call("fs.read", {"path": "a"}, persona="eve", **more)
    )
    assert waited < _bound(idle)
    assert result.error.code == "invalid_args"


async def test_many_large_calls_at_once_leave_threads_to_others(gate: Gate) -> None:
    """Tools that block need threads of their own: the large ones wait for each other."""
    args = {"path": "b.txt", "content": "é\n" * 100_000}
    calls = [asyncio.ensure_future(gate.call("fs.write", args, persona="eve", wait=False)) for _ in range(6)]
    read = await asyncio.wait_for(gate.call("fs.read", {"path": "a.txt"}, persona="bob"), 20)
    assert read.ok
    assert not all(call.done() for call in calls)
    await asyncio.gather(*calls)


@pytest.mark.parametrize("way", ["said", "raised", "sealed", "refused"])
async def test_secrets_are_looked_for_beside_the_loop_wherever_a_call_leaves_them(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes of escapes are what takes longest to look through: seconds for what one call may bring."""
    long = "%2525\\\\u0025" * (MB // 12)

    @toolgate.tool("t.say", reads=["outside"])
    async def say() -> str:
        raise Failed(long, long, data={"said": long})

    @toolgate.tool("t.raise", reads=["outside"])
    async def fail() -> str:
        raise RuntimeError(long)

    @toolgate.tool("t.login", writes=["outside"])
    async def login(password: SecretStr, body: str) -> str:
        return "in"

    looked: set[bool] = set()

    def seen(finder: Any, value: Any) -> Any:
        if large(value):
            looked.add(threading.current_thread() is threading.main_thread())
        return cleaned(finder, value)

    monkeypatch.setattr("toolgate.secrets.redactor.cleaned", seen)
    config = CONFIG | {
        "personas": {"eve": {"phase": "observe", "allow": ["t.*"]}, "bob": {"phase": "observe"}}
    }
    async with toolgate.open(tmp_path, config, tools=[say, fail, login]) as gate:
        await gate.set_secret("TOKEN", "a-value-that-is-long-enough")
        tool = {"said": "t.say", "raised": "t.raise"}.get(way, "t.login")
        args = {"password": "correct horse", "body": long} if tool == "t.login" else {}
        persona = "bob" if way == "refused" else "eve"
        result = await gate.call(tool, args, persona=persona, wait=False)
    assert looked == {False}
    assert result.ok is (way == "sealed")
    assert result.error is None or len(result.error.message) < 10_000


def test_one_long_run_is_searched_in_pieces() -> None:
    """A search through all of it would keep every thread from running; a token is found where pieces meet."""
    token = GITHUB.encode()
    for before in range(19_990, 20_010):
        text = b"x" * (before - 1) + b"-" + token
        assert [hit.start for hit in tokens(text, list(runs(text)))] == [before], before


async def test_what_one_persona_remembered_holds_nobody_up(tmp_path: Path) -> None:
    """Long texts are compared with each other where somebody looks for what could go."""
    kept = {
        "limits": CONFIG["limits"] | {"journal_bytes": {"per_minute": 100 * MB}},
        "memory": {"embeddings": "none"},
    }
    async with toolgate.open(tmp_path, CONFIG | kept, "memory") as gate:
        for number in range(25):
            words = " ".join(f"word{(number * 131 + each * 7) % 9000}" for each in range(11_000))
            args = {"content": words.translate(str.maketrans("0123456789", "abcdefghij"))[:99_000]}
            assert (await gate.call("memory.store", args, persona="eve", conversation="talk")).ok
        await gate.call("memory.recall", {"query": "wordh", "limit": 100}, persona="eve", conversation="talk")
        for tool, args in (("memory.audit", {}), ("memory.store", {"content": "wordh"})):
            call = partial(gate.call, tool, args, persona="eve", conversation="talk")
            waited, idle, result = await longest_wait(gate, call)
            assert result.ok, result.error
            assert waited < _bound(idle), tool


LINEAR: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "half-open tags": (has_instructions, "</system " * 44_000),
    "commands": (has_instructions, "ignore previous " * 25_000),
    "comments in a garden": (read, b"<!-- " * 60_000 + b"anchor"),
    "blanks in a heading": (read, b"## a" + b" " * 300_000 + b"b"),
    "words that cite nothing": (lambda text: list(_CITED.finditer(text)), "a-" * 150_000 + " x:y"),
    "blanks of a model": (lambda text: cited_lines(text, 1, 1), "a" + " " * 300_000 + "b"),
    "empty lines of a snippet": (is_commonjs, "module.exports = 1;" + "\n" * 300_000),
    "empty lines of an error": (tidy, b"\n" * 300_000),
}


@pytest.mark.parametrize("shape", LINEAR)
def test_no_pattern_takes_long_for_a_text_made_for_it(shape: str) -> None:
    """A search holds Python's lock until it ends, so that a thread would not help."""
    work, text = LINEAR[shape]
    began = time.perf_counter()
    work(text)
    assert time.perf_counter() - began < BEARABLE
