"""Servers made with the SDK, on every transport and both protocol eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.caller import Caller, Elicitation, Reply

from .world import code, config, listening, said, sdk, status, witnessed


async def test_a_server_of_the_newest_protocol_on_stdio(place: Path) -> None:
    heard: list[tuple[float, str]] = []

    async def answer(question: Elicitation) -> Reply:
        return Reply("accept", {"word": f"for {question.source}"})

    async with toolgate.open(place, config({"up": sdk(place)}), "memory") as gate:
        assert said(await gate.call("up.echo", {"text": "hi"})) == "hi"
        assert status(gate)["says"]["protocol"] == "2026-07-28"
        wrote = await gate.call("mcp__up__write", {"text": "note"})
        assert wrote.data["structured"] == {"written": "note"}
        assert (wrote.data["source"], wrote.data["untrusted"]) == ("up", True)
        for wrong in ({"text": ""}, {"text": "x", "more": 1}):
            assert code(await gate.call("up.write", wrong)) == "invalid_args"
        assert witnessed(place) == ["note"]

        bad = said(await gate.call("up.controls"))
        assert bad == "a⟨U+001B⟩[2Jb⟨U+202E⟩c⟨U+E0041⟩d ok 👩‍💻 é\u00a0!"
        picture = (await gate.call("up.image")).data["content"][0]
        assert (picture["data"], picture["omitted"][:7]) == ("", "150,000")
        lie = (await gate.call("up.lie")).data
        assert lie["structured"] == {"n": "seven"}
        assert "not what up promised" in lie["warning"]

        await gate.call("up.steps", progress=lambda fraction, words: heard.append((fraction, words)))
        assert heard == [
            (1 / 3, "up: step ⟨U+001B⟩1"),
            (2 / 3, "up: step ⟨U+001B⟩2"),
            (1.0, "up: step ⟨U+001B⟩3"),
        ]
        assert json.loads(said(await gate.call("up.ask")))["action"] == "decline"
        reply: Any = json.loads(said(await gate.call("up.ask", caller=Caller(answer))))
        assert reply == {"action": "accept", "content": {"word": "for up"}}

        listed = await gate.call("up.resources_list")
        assert listed.data["resources"][0]["uri"] == "note://one"
        read = await gate.call("up.resources_read", {"uri": "note://one"})
        assert read.data["contents"][0]["text"] == "a ⟨U+0007⟩note"
        assert (await gate.upstream.check("up", 5)) > 0


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_at_an_address(place: Path, kind: str) -> None:
    with listening(kind, place) as (url, process):
        spec = {"url": url, "transport": kind, "pin": "first", "start_timeout_s": 5.0}
        async with toolgate.open(place, config({"up": spec}), "memory") as gate:
            assert said(await gate.call("up.echo", {"text": "hi"})) == "hi"
            assert (await gate.call("up.write", {"text": "note"})).data["structured"] == {"written": "note"}
            process.kill()
            process.wait(10)
            for _ in range(2):  # at most the first is in doubt
                dead = await gate.call("up.write", {"text": "never"})
            assert code(dead) == "unavailable"
            assert status(gate)["state"] in ("waiting", "broken")
            assert status(gate)["last_error"]
    assert witnessed(place) == ["note"]
