"""What real servers say and ask during a call, on every transport: heard by whoever made that call, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.caller import Caller, LogLine, NoModel, Sampling

from .world import config, listening, raw, said, sdk, settled, status

ERAS = {"stdio": "2026-07-28", "http": "2026-07-28", "sse": "2025-11-25"}


@asynccontextmanager
async def _gate(place: Path, kind: str) -> AsyncIterator[toolgate.Gate]:
    if kind == "stdio":
        async with toolgate.open(place, config({"up": sdk(place, sampling="allow")}), "memory") as gate:
            yield gate
        return
    with listening(kind, place) as (url, _):
        spec = {"url": url, "transport": kind, "pin": "first", "sampling": "allow"}
        async with toolgate.open(place, config({"up": spec}), "memory") as gate:
            yield gate


class Party:
    """A caller with an ear and a model of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[tuple[str, str, Any]] = []

    def hear(self, line: LogLine) -> None:
        self.heard.append((line.level, line.logger, line.data))

    async def model(self, wish: Sampling) -> Mapping[str, Any]:
        words = wish.params["messages"][0]["content"][0]["text"]
        answer = {"type": "text", "text": f"{self.name} answers {words}"}
        return {"role": "assistant", "content": answer, "model": "m"}

    async def call(self, gate: toolgate.Gate, tool: str) -> str:
        caller = Caller(model=self.model, hear=self.hear)
        return said(await gate.call(tool, {"text": self.name}, caller=caller))


@pytest.mark.parametrize("kind", list(ERAS))
async def test_a_caller_hears_the_server_and_lends_it_a_model(place: Path, kind: str) -> None:
    async with _gate(place, kind) as gate:
        ada = Party("ada")
        assert await ada.call(gate, "up.log") == "logged"
        assert status(gate)["says"]["protocol"] == ERAS[kind]
        assert ada.heard == [("warning", "up/a", "ada begins"), ("warning", "up/a", "ada ends")]
        assert await ada.call(gate, "up.sample") == "ada answers ada"
        kinds = [row.kind for row in await gate.events() if row.tool == "up.sampling"]
        assert kinds == ["committed", "started"]


async def test_callers_at_the_same_time_hear_their_own_server_only_over_http(place: Path) -> None:
    async with _gate(place, "http") as gate:
        await gate.upstream.discover("up")
        parties = [Party(name) for name in ("ada", "bob", "eve")]
        await asyncio.gather(*(party.call(gate, "up.log") for party in parties))
        for party in parties:
            assert [data for _, _, data in party.heard] == [f"{party.name} begins", f"{party.name} ends"]
        answers = await asyncio.gather(*(party.call(gate, "up.sample") for party in parties))
        assert answers == [f"{party.name} answers {party.name}" for party in parties]


async def test_callers_at_the_same_time_over_one_pipe_get_what_is_certain(place: Path) -> None:
    """There a message does not say whose it is; a question by an unfinished result does."""
    async with _gate(place, "stdio") as gate:
        await gate.upstream.discover("up")
        parties = [Party(name) for name in ("ada", "bob")]
        await asyncio.gather(*(party.call(gate, "up.log") for party in parties))
        assert all(data.startswith(party.name) for party in parties for _, _, data in party.heard)
        answers = await asyncio.gather(*(party.call(gate, "up.sample") for party in parties))
        assert answers == [f"{party.name} answers {party.name}" for party in parties]


async def test_a_model_that_gives_no_answer_is_a_refusal_to_the_server(place: Path) -> None:
    async def silent(wish: Sampling) -> Mapping[str, Any]:
        raise NoModel("it sleeps")

    async with _gate(place, "stdio") as gate:
        result = await gate.call("up.sample", {"text": "x"}, caller=Caller(model=silent))
        assert result.error is not None
        assert "refused by toolgate: failed" in result.error.message
        assert "it sleeps" not in result.error.message


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_server_of_the_newest_protocol_that_has_more_tools_is_listed_again_at_once(
    place: Path, kind: str
) -> None:
    async with _gate(place, kind) as gate:
        assert gate.upstream is not None
        await gate.upstream.discover("up")
        assert said(await gate.call("up.grow")) == "grown"
        await settled(gate, lambda one: bool(one["held"]))


@pytest.mark.parametrize("kind", ["stdio", "http", "sse"])
async def test_a_resource_that_changes_is_told_until_nobody_wants_to_know(place: Path, kind: str) -> None:
    async with _gate(place, kind) as gate:
        assert gate.upstream is not None
        await gate.upstream.discover("up")
        told = asyncio.Event()
        leave = await gate.upstream.subscribe("up", "note://one", told.set)
        assert said(await gate.call("up.touch")) == "touched"
        async with asyncio.timeout(10):
            await told.wait()
        await leave()
        told.clear()
        assert said(await gate.call("up.touch")) == "touched"
        await asyncio.sleep(0.2)
        assert not told.is_set()


async def test_a_server_that_does_not_say_when_things_change_refuses(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        assert gate.upstream is not None
        with pytest.raises(Exception, match="method not found"):
            await gate.upstream.subscribe("up", "note://one", lambda: None)
