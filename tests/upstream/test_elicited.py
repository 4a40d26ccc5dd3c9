"""What a server asks the human is in the ledger, with what came of it; what it was told is not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.caller import Caller, Elicitation, Reply, Sampling
from toolgate.core.errors import Unavailable
from toolgate.features.servers import client_callbacks
from toolgate.ledger.ledger import Ledger
from toolgate.project import trust
from toolgate.project.config import state_dir
from toolgate.storage.port import Filter

from .world import config, hostile, raw, said, sdk

SECRET = "correct-horse-battery"


async def accept(question: Elicitation) -> Reply:
    return Reply("accept", {"word": "please"})


async def refuse(question: Elicitation) -> Reply:
    return Reply("decline")


async def elicited(gate: toolgate.Gate) -> list[dict[str, Any]]:
    rows = await gate.events(Filter(kinds=("elicited",)))
    return [{"call": row.call, "tool": row.tool, **json.loads(row.body)} for row in rows]


@pytest.mark.parametrize("server", [raw, sdk])
async def test_what_a_server_asked_and_what_came_of_it_is_an_event_without_the_answer(
    place: Path, server: Any
) -> None:
    async with toolgate.open(place, config({"up": server(place)})) as gate:
        first = await gate.call("up.ask", caller=Caller(accept))
        await gate.call("up.ask", caller=Caller(refuse))
        alone = await gate.call("up.ask")
        accepted, declined, unseen = await elicited(gate)
        assert accepted == {
            "call": first.meta.call_id, "tool": "up.ask", "server": "up", "action": "accept",
            "message": "Your ⟨U+001B⟩[1mword?", "fields": ["word"],
        }  # fmt: skip
        assert (declined["action"], "reason" in declined) == ("decline", False)
        assert (unseen["call"], unseen["action"]) == (alone.meta.call_id, "decline")
        assert unseen["reason"] == "the caller has nobody to show it to"
        assert (await gate.verify()).ok
        assert [row.kind for row in await gate.events(Filter(call=first.meta.call_id))] == [
            "started", "elicited", "committed",
        ]  # fmt: skip


async def test_an_answer_that_cannot_be_recorded_is_not_given(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: Ledger, event: object) -> None:
        raise Unavailable("the disk is full", "make room")

    monkeypatch.setattr(Ledger, "tell", full)
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        asked = await gate.call("up.ask", caller=Caller(accept))
        assert json.loads(said(asked)) == {"action": "cancel"}


async def test_a_server_cannot_write_the_secret_it_was_called_with_into_the_ledger(place: Path) -> None:
    async def model(wish: Sampling) -> dict[str, Any]:
        return {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}

    servers = {"up": raw(place, sampling="allow")}
    words = {"message": f"is it {SECRET}?", "text": f"say {SECRET}", "password": SECRET}
    async with toolgate.open(place, config(servers), "memory") as gate:
        caller = Caller(accept, model=model)
        assert (await gate.call("up.ask", words, caller=caller)).ok
        assert (await gate.call("up.sample", words, caller=caller)).ok
        rows = await gate.events(Filter())
        assert {"elicited", "started"} <= {row.kind for row in rows}
        assert any(row.tool == "up.sampling" for row in rows)
        assert [row for row in rows if SECRET in row.body and row.tool == "up.sampling"] == []
        (event,) = await elicited(gate)
        assert SECRET not in event["message"]


async def test_what_is_asked_outside_a_call_is_declined_and_to_be_seen_in_the_ledger(place: Path) -> None:
    (place / "toolgate.yaml").write_text(json.dumps(config({"up": hostile(place, sampling="allow")})))
    trust.trust(place, state_dir())
    form = {"type": "object", "properties": {"pin": {"type": "string"}}}
    asks = {"method": "elicitation/create", "params": {"message": "Your pin?", "requestedSchema": form}}
    words = {"role": "user", "content": {"type": "text", "text": "hello"}}
    wishes = {"method": "sampling/createMessage", "params": {"messages": [words], "maxTokens": 9}}
    steps = [{"send": asks, "asks": True}, {"send": wishes, "asks": True, "wait": 2}]
    async with toolgate.open(place) as gate:
        await gate.upstream.discover("up")
        read = await gate.call("up.resources_read", {"uri": f"do:{json.dumps(steps)}"}, caller=Caller(accept))
        assert json.loads(read.data["contents"][0]["text"])[0] == {"action": "decline"}
        events = sorted(await elicited(gate), key=lambda one: one["reason"])
    assert [(one["call"], one["action"]) for one in events] == [("", "decline")] * 2
    assert (events[0]["reason"], events[0]["fields"]) == ("it is not clear during which call", ["pin"])
    assert "wanted a model" in events[1]["reason"]
    command = [sys.executable, "-m", "toolgate", "ledger", "tail", "--json", "--root", str(place)]
    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert [
        row["body"]["server"] for row in json.loads(shown.stdout)["data"] if row["kind"] == "elicited"
    ] == ["up"] * 2


async def test_a_server_that_asks_without_end_fills_no_ledger(place: Path) -> None:
    count = client_callbacks.MOST_QUESTIONS + 30
    form = {"type": "object", "properties": {}}
    asks = {"method": "elicitation/create", "params": {"message": "again?", "requestedSchema": form}}
    step = {"send": asks, "asks": True, "times": count, "wait": count}
    async with toolgate.open(place, config({"up": hostile(place)}), "memory") as gate:
        asked = await gate.call("up.do", {"steps": [step]}, caller=Caller(accept))
        answers = json.loads(said(asked))
        assert len(answers) == count
        kept = await elicited(gate)
        actions = sorted(one["action"] for one in kept)
        assert actions == ["accept"] * client_callbacks.MOST_QUESTIONS + ["decline"]


@pytest.mark.parametrize(
    ("message", "title"), [(1_000_000 * "\u202e", ""), ("?", 1_000_000 * "\u202e")], ids=["words", "form"]
)
async def test_a_question_that_nobody_could_read_is_declined_unseen_and_kept_in_short(
    place: Path, message: str, title: str
) -> None:
    form = {"type": "object", "properties": {"word": {"type": "string", "title": title}}}
    asks = {"method": "elicitation/create", "params": {"message": message, "requestedSchema": form}}
    steps = [{"send": asks, "asks": True, "wait": 1}]

    async def show(question: Elicitation) -> Reply:
        raise AssertionError("it was shown")

    async with toolgate.open(place, config({"up": hostile(place)}), "memory") as gate:
        asked = await gate.call("up.do", {"steps": steps}, caller=Caller(show))
        assert json.loads(said(asked)) == [{"action": "decline"}]
        (event,) = await elicited(gate)
        assert (event["reason"], len(event["message"]) <= 500) == ("it is too long", True)


async def test_a_server_that_says_it_changed_and_will_not_list_its_tools_is_not_asked_all_the_time(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = {"method": "notifications/tools/list_changed"}
    steps = [{"unlisted": True}, *([{"send": changed, "sleep": 0.01}] * 150)]
    async with toolgate.open(place, config({"up": hostile(place)}), "memory") as gate:
        await gate.call("up.do", {"steps": []})
        await gate.call("up.do", {"steps": steps})
    failed = [message for message in caplog.messages if "could not list its tools again" in message]
    assert 1 <= len(failed) <= 6, "one each half second"
    assert not [message for message in failed if "\x1b" in message]
