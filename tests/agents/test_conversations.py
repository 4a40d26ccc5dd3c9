"""Conversations divided as memory's sessions are: by day, by week, by hand, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.world import PERSONAS, Witness, calls, config
from gates import FixedClock
from toolgate import app
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.storage.memory import MemoryBackend


def opened(root: Path, clock: FixedClock, divide: str, **more: Any) -> Any:
    spec = {"sessions": {"auto_divide": divide}} | more.pop("memory", {})
    return app.open(root, config(memory=spec, **more), MemoryBackend(), tools=Witness().tools(), clock=clock)


async def ask(agents: Any, words: str, **more: Any) -> Any:
    run = await agents.drive(await agents.talk(words, "v_talk", **more))
    assert run.state == "done", run.reason
    return run


def history(run: Any) -> list[str]:
    return [message["content"] for message in run.settings["begun"]["history"]]


@pytest.mark.parametrize(("divide", "days", "told"), [("daily", 1, []), ("weekly", 1, ["one", "first"]), ("weekly", 7, []), ("none", 100, ["one", "first"])])  # fmt: skip
async def test_a_conversation_is_told_what_its_session_holds(
    tmp_path: Path, divide: str, days: int, told: list[str]
) -> None:
    clock = FixedClock(1_799_928_000_000_000)  # a Wednesday at noon
    async with opened(tmp_path, clock, divide) as gate:
        agents = gate.feature("agents")
        agents.models.given["model"] = ScriptedModel(["first", "second"], "model")
        first = await ask(agents, "one")
        clock.advance(days * 86_400)
        again = await agents.talk("two", "v_talk")
        assert history(again) == told
        assert (again.settings["session"] == first.settings["session"]) == bool(told)
        assert again.shown()["session"] == again.settings["session"]


async def test_a_person_or_the_model_begins_a_new_session_through_the_gate(tmp_path: Path) -> None:
    clock = FixedClock()
    personas = PERSONAS | {"ada": {"phase": "observe", "allow": ["session.new"]}}
    async with opened(tmp_path, clock, "none", personas=personas) as gate:
        agents = gate.feature("agents")
        script = ["first", calls({"tool": "session.new", "args": {"name": "fresh"}}), "second", "third"]
        agents.models.given["model"] = ScriptedModel(script, "model")
        await ask(agents, "one")
        clock.advance(1)
        mine = await agents.talk("begin anew", "v_talk")
        assert history(mine) == ["one", "first"]
        assert mine.settings["begun"]["history"][0]["role"] == "user"
        assert (await agents.drive(mine)).answer == "second"
        clock.advance(1)
        after = await agents.talk("two", "v_talk")
        assert history(after) == []
        assert (await agents.conversations.said("ada", "v_talk")).name == "fresh"


async def test_another_users_words_are_not_told_in_a_conversation_of_the_same_name(tmp_path: Path) -> None:
    personas = {"ada": {"phase": "observe", "user": "alice"}, "bob": {"phase": "observe", "user": "bert"}}
    async with opened(tmp_path, FixedClock(), "none", personas=personas) as gate:
        agents = gate.feature("agents")
        agents.models.given["model"] = ScriptedModel({"ada": ["for alice"], "bob": ["for bert"]}, "model")
        await ask(agents, "one", persona="ada")
        assert history(await agents.talk("two", "v_talk", persona="bob")) == []
        assert history(await agents.talk("two", "v_talk", persona="ada")) == ["one", "for alice"]


async def test_replies_of_helpers_do_not_move_the_script_of_who_asked_them(tmp_path: Path) -> None:
    async with opened(tmp_path, FixedClock(), "none") as gate:
        agents = gate.feature("agents")
        look = calls({"tool": "t.look", "args": {"x": "1"}})
        ask_scout = calls({"tool": "ai.ask", "args": {"question": "look", "persona": "scout"}})
        script = {"ada": [ask_scout, "first", "second"], "scout": [look, "seen"]}
        agents.models.given["model"] = ScriptedModel(script, "model")
        assert (await ask(agents, "one")).answer == "first"
        assert (await ask(agents, "two")).answer == "second"
