"""Whatever is sent in: a clear error with its code, nothing lost, nothing run."""

from __future__ import annotations

from typing import Any

import pytest

from gates import Witness
from toolgate import Tool, tool
from toolgate.storage.port import Filter

from .conftest import Open


def nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


def typed() -> Tool:
    @tool("t.typed", writes=["outside"])
    async def run(count: int, names: list[str] = [], options: dict[str, Any] = {}) -> int:  # noqa: B006
        """Takes typed arguments."""
        raise AssertionError("it must not run")

    return run


BAD: list[tuple[str, Any, Any, str]] = [
    ("a wrong type", "t.typed", {"count": "many"}, "invalid_args"),
    ("a missing argument", "t.typed", {}, "invalid_args"),
    ("an extra argument", "t.typed", {"count": 1, "more": 2}, "invalid_args"),
    ("a list instead of an object", "t.typed", [1], "invalid_args"),
    ("a text instead of an object", "t.typed", "count=1", "invalid_args"),
    ("deep nesting", "t.typed", {"count": 1, "options": {"x": nested(100)}}, "invalid_args"),
    ("very deep nesting", "t.typed", {"count": 1, "options": {"x": nested(50_000)}}, "invalid_args"),
    ("NaN", "t.typed", {"count": 1, "options": {"x": float("nan")}}, "invalid_args"),
    ("an infinity", "t.typed", {"count": 1, "options": {"x": float("-inf")}}, "invalid_args"),
    ("NUL", "t.typed", {"count": 1, "names": ["a\0b"]}, "invalid_args"),
    ("NUL in a key", "t.typed", {"count": 1, "options": {"a\0": 1}}, "invalid_args"),
    ("a lone surrogate", "t.typed", {"count": 1, "names": ["\ud800"]}, "invalid_args"),
    ("a lone surrogate in a key", "t.typed", {"count": 1, "options": {"\udfff": 1}}, "invalid_args"),
    ("a key that is no text", "t.typed", {"count": 1, "options": {1: 1}}, "invalid_args"),
    ("an argument's name that is no text", "t.typed", {1: 1}, "invalid_args"),
    ("an integer beyond 2^53", "t.typed", {"count": 2**53}, "invalid_args"),
    ("a text that becomes such an integer", "t.typed", {"count": str(2**60)}, "invalid_args"),
    ("bytes", "t.typed", {"count": 1, "options": {"x": b"x"}}, "invalid_args"),
    ("a set", "t.typed", {"count": 1, "options": {"x": {1}}}, "invalid_args"),
    ("an object of a class", "t.typed", {"count": 1, "options": {"x": object()}}, "invalid_args"),
    ("huge arguments", "t.typed", {"count": 1, "names": ["x" * 9_000_000]}, "too_large"),
    ("an unknown tool", "t.typd", {"count": 1}, "unknown_tool"),
    ("a tool without a name", "", {}, "unknown_tool"),
    ("a tool's name that is no text", 7, {}, "invalid_args"),
    ("a broken character in the tool's name", "\ud800", {}, "unknown_tool"),
    ("an enormous name", "x" * 1_000_000, {}, "unknown_tool"),
    ("a path that leads upwards", "t.write", {"path": "../x", "text": ""}, "outside_mount"),
    ("an absolute path", "t.write", {"path": "/etc/passwd", "text": ""}, "outside_mount"),
    ("a control character in a path", "t.write", {"path": "a\nb", "text": ""}, "outside_mount"),
]


@pytest.mark.parametrize(("what", "name", "args", "code"), BAD, ids=[case[0] for case in BAD])
async def test_it_is_refused_with_its_code(
    what: str, name: Any, args: Any, code: str, opened: Open, witness: Witness
) -> None:
    async with opened("allow", [typed()]) as gate:
        result = await gate.call(name, args)
        assert not result.ok
        assert result.error is not None
        assert result.error.code == code, result
        assert result.error.message
        assert len(result.error.message) < 2000
        result.error.message.encode()
        rows = await gate.events(Filter())
        assert [row.kind for row in rows] == ["rejected"]
        assert result.meta.event_id == rows[-1].seq
        assert (await gate.verify()).ok
        assert (await gate.call("t.act", {"x": "still works"})).ok
    assert witness.arguments == ["still works"]


WORDS: list[dict[str, Any]] = [
    {"conversation": "a\nb"}, {"conversation": "x" * 300}, {"transaction": "\x1b[2J"}, {"plan": "\u202e"},
    {"step": "\0"}, {"key": "a\tb"}, {"key": "x" * 300}, {"reason": "x" * 5000}, {"reason": "\ud800"},
    {"conversation": 7}, {"persona": "a b"}, {"persona": "x" * 200}, {"persona": "ada\n"}, {"persona": 7},
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=repr)
async def test_words_about_a_call_are_checked_too(
    words: dict[str, Any], opened: Open, witness: Witness
) -> None:
    async with opened("allow") as gate:
        result = await gate.call("t.act", {"x": "no"}, **words)
        assert result.error is not None
        assert result.error.code == "invalid_args", result
        assert (await gate.verify()).ok
    assert witness.ran == []


async def test_wrong_arguments_are_named_in_plain_words(opened: Open) -> None:
    @tool("t.needs", reads=["system"])
    async def needs(path: str) -> str:
        """Take a path."""
        return path

    async with opened("allow", [needs]) as gate:
        result = await gate.call("t.needs", {"file": "a"})
        assert result.error is not None
        assert "path: it is needed" in result.error.message
        assert "file: there is no such argument" in result.error.message
        assert result.error.fix == "it takes: path"


async def test_near_names_are_offered(opened: Open) -> None:
    async with opened("allow", [typed()]) as gate:
        result = await gate.call("t.typd", {})
        assert "t.typed" in result.data["near"]
        assert result.error is not None
        assert "t.typed" in result.error.message + result.error.fix


async def test_a_stranger_may_nothing(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        for name in ("t.act", "t.look", "system.ping"):
            result = await gate.call(name, persona="mallory")
            assert result.error is not None
            assert result.error.code == "not_allowed"
            assert "mallory" in result.error.message
    assert witness.ran == []


async def test_one_bad_call_of_many_at_once_spoils_no_other(opened: Open, tmp_path: Any) -> None:
    import asyncio

    @tool("t.garbled", reads=["system"])
    async def garbled() -> str:
        """Returns a name that is not UTF-8, as directories hold them."""
        return "caf\udce9"

    @tool("t.shouts", writes=["outside"])
    async def shouts() -> str:
        """Fails with such a name."""
        raise ValueError("no file caf\udce9")

    async with opened("allow", [garbled, shouts], database=str(tmp_path / "ledger.db")) as gate:
        good, name, shout, reason = await asyncio.gather(
            gate.call("t.act", {"x": "good"}), gate.call("t.garbled"), gate.call("t.shouts"),
            gate.call("t.act", {"x": "bad"}, reason="\ud800"),
        )  # fmt: skip
        assert good.ok
        assert name.data == "caf?"
        assert shout.error is not None
        assert shout.error.code == "failed"
        assert reason.error is not None
        state = await gate.ledger_state()
        assert state["running"] == 0, "every call is settled"
        assert (await gate.verify()).ok
