"""What a human is shown before a memory is written or forgotten, and that an approval holds for nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import toolgate
from toolgate.core.names import HUMAN
from toolgate.facade import Gate
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.pages import _change
from toolgate.kits.terminal.question import sentence
from toolgate.kits.web.pages import Pages

from .world import POLICY, done, failed, recalled, stored

_RULE = {"name": "asks", "persona": "bea", "tools": ["memory.*"], "decision": "ask"}
_ROOM = {"per_minute": 1_000_000, "per_hour": 1_000_000}
ASKS = POLICY | {"policy": {"rules": [_RULE]}, "limits": {"global": _ROOM, "persona": _ROOM}}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Gate]:
    async with toolgate.open(tmp_path, ASKS, "memory") as gate:
        yield gate


async def approved(gate: Gate, tool: str, args: dict[str, Any]) -> str:
    """Ask as bea and approve; what the human was shown."""
    waiting = await failed(gate, tool, args, "bea", wait=False)
    question = await gate.question(waiting.data["question"])
    assert question is not None
    await gate.answer(question.id, "approve")
    return question.preview


async def asked_again(gate: Gate, tool: str, args: dict[str, Any]) -> bool:
    result = await failed(gate, tool, args, "bea", wait=False)
    assert result.error is not None
    return result.error.code == "pending"


async def test_a_forgotten_text_is_not_shown_to_a_persona_by_its_id(gate: Gate) -> None:
    ident = await stored(gate, "The walrus lives in Elm Street.")
    await done(gate, "memory.forget", {"memory_id": ident})
    refused = await failed(gate, "memory.list", {"memory_id": ident})
    assert refused.error is not None
    assert refused.error.code == "not_found"
    shown = (await done(gate, "memory.list", {"memory_id": ident}, HUMAN))["memories"]
    assert shown[0]["content"] == "The walrus lives in Elm Street."


async def test_the_one_tool_shows_what_it_forgets_and_asks_anew_when_that_changes(asking: Gate) -> None:
    ident = await stored(asking, "old junk")
    args = {"action": "forget", "memory_id": ident}
    assert f"{ident}: old junk" in await approved(asking, "memory", args)
    await done(
        asking, "memory.update", {"memory_id": ident, "content": "the only copy of an important thing"}
    )
    assert await asked_again(asking, "memory", args)
    assert "a new thing" in await approved(asking, "memory", {"action": "store", "content": "a new thing"})


async def test_however_many_texts_are_to_be_forgotten_each_is_shown_and_bound(asking: Gate) -> None:
    ids = [await stored(asking, f"Note number {number}.") for number in range(202)]
    shown = await approved(asking, "memory.forget", {"memory_ids": ids})
    assert all(f"{ident}: Note number {number}." in shown for number, ident in enumerate(ids))
    await done(asking, "memory.update", {"memory_id": ids[-1], "content": "Now it matters."})
    assert await asked_again(asking, "memory.forget", {"memory_ids": ids})


async def test_a_text_cannot_pose_as_another_memory_in_the_question(asking: Gate) -> None:
    ident = await stored(asking, "first line\nm_other: second line")
    shown = await approved(asking, "memory.forget", {"memory_id": ident})
    assert not any(line.startswith("m_other") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("what", "words"), [("supersede", "takes the place of"), ("contradict", "disagrees with")]
)
async def test_what_a_subject_stands_for_is_shown_and_bound(asking: Gate, what: str, words: str) -> None:
    old = await stored(asking, "Home is Lisbon.", subject="home")
    args = {"content": "Home is Porto.", "subject": "Home", "same_subject": what}
    assert f"{words} {old}: Home is Lisbon." in await approved(asking, "memory.store", args)
    await stored(asking, "Home is Berlin.", HUMAN, subject="home")
    assert await asked_again(asking, "memory.store", args)
    assert "Home is Porto." not in [one["content"] for one in await recalled(asking, "home")]


async def test_the_list_of_questions_shows_no_hash_in_the_place_of_a_text(asking: Gate) -> None:
    await failed(
        asking, "memory.store", {"content": "The shed is red.", "subject": "shed"}, "bea", wait=False
    )
    (listed,) = await asking.approvals()
    recorded = replace(listed, args={**listed.args, "content": "hmac:" + "0f" * 32})  # as the journal has it
    line = sentence(recorded)
    assert "hmac:" not in line
    assert "content=(shown with the question)" in line


async def test_undo_pressed_twice_in_the_console_undoes_one_call(gate: Gate) -> None:
    memory: Memory = gate.feature("memory")
    console = cast(Pages, SimpleNamespace(gate=gate))
    ident = await stored(gate, "The shed is red.")
    await done(gate, "memory.forget", {"memory_id": ident})
    form = {"call": (await memory.one(ident)).call}
    assert (await _change(console, memory, ident, "undo", form)).ok
    again = await _change(console, memory, ident, "undo", form)
    assert again.error is not None
    assert again.error.code == "conflict"
    assert (await memory.one(ident)).state == "kept"
