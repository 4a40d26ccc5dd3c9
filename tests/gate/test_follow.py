"""A call that leads to another: both pass the gate, and the first tells what became of the second."""

from __future__ import annotations

from typing import Any

import toolgate
from toolgate.core.errors import TimedOut
from toolgate.core.result import Follow, Result
from toolgate.core.tool import Tool
from toolgate.testing import Approve, Refuse, Script, gate

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {}},
    "policy": {
        "rules": [
            {"name": "firsts", "persona": "ada", "tools": ["t.first", "t.slow"], "decision": "allow"},
            {
                "name": "seconds",
                "persona": "ada",
                "tools": ["t.second"],
                "decision": "ask",
                "reason": "it counts",
            },
        ]
    },
}


def tools(ran: list[str]) -> list[Tool]:
    def follow(data: Any) -> tuple[str, dict[str, Any]] | None:
        return ("t.second", {"text": data["text"]}) if data["text"] else None

    def told(data: Any, result: Result) -> Any:
        return data | {"second": result.data if result.ok else result.error and result.error.code.value}

    @toolgate.tool("t.first", writes=["outside"], follow=Follow(follow, told))
    async def first(text: str) -> dict[str, Any]:
        """Do something that leads to more."""
        ran.append(f"first {text}")
        return {"text": text}

    @toolgate.tool("t.second", writes=["outside"])
    async def second(text: str) -> str:
        """Do what it led to."""
        ran.append(f"second {text}")
        return text.upper()

    @toolgate.tool("t.slow", writes=["outside"], reconcile=lambda: "unknown")
    async def slow() -> str:
        """Say how it ended."""
        raise TimedOut("it took too long", "wait", {"half": [1, 2]}, certain=True)

    return [first, second, slow]


async def test_the_second_call_is_decided_by_itself_and_told_in_the_first() -> None:
    ran: list[str] = []
    human = Script(Approve("t.second"), Refuse("t.second"))
    async with gate(tools(ran), CONFIG, human=human) as opened:
        assert (await opened.call("t.first", {"text": "a"}, conversation="c")).data == {
            "text": "a",
            "second": "A",
        }
        assert (await opened.call("t.first", {"text": "b"})).data == {"text": "b", "second": "denied"}
        assert (await opened.call("t.first", {"text": ""})).data == {"text": ""}
        assert ran == ["first a", "second a", "first b", "first "]
        kinds = [(row.tool, row.kind, row.conversation) for row in reversed(await opened.events())][1:7]
        assert kinds == [
            ("t.first", "started", "c"), ("t.first", "committed", "c"), ("t.second", "asked", "c"),
            ("t.second", "approved", "c"), ("t.second", "started", "c"), ("t.second", "committed", "c"),
        ]  # fmt: skip


async def test_a_repeated_key_repeats_both_and_runs_neither_twice() -> None:
    ran: list[str] = []
    async with gate(tools(ran), CONFIG) as opened:
        pending = await opened.call("t.first", {"text": "a"}, key="k", wait=False)
        assert pending.data["second"] == "pending"
        (question,) = await opened.approvals()
        await opened.answer(question.id, "approve")
        for _ in range(2):
            assert (await opened.call("t.first", {"text": "a"}, key="k", wait=False)).data["second"] == "A"
        assert ran == ["first a", "second a"]


async def test_a_tool_that_knows_how_it_ended_is_not_doubted_and_may_show_what_it_has() -> None:
    async with gate(tools([]), CONFIG) as opened:
        failed = await opened.call("t.slow", {})
        assert failed.error is not None
        assert (failed.error.code, failed.data) == ("timeout", {"half": [1, 2]})
        assert (await opened.events())[0].kind == "failed"
