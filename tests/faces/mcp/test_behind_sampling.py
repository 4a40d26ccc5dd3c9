"""A server behind the gate wants the client's model: where the file lets it, policy allows it and the client offers one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolgate.core.errors import Code
from toolgate.features.servers import sampling
from upstream.world import witnessed

from .behind_world import ANSWER, ASKS, SAMPLES, Behind, behind, reply, said
from .clients import APPROVE, REFUSE, Message, Raw, envelope

HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}


async def _asked(client: Raw, **args: Any) -> Message:
    """The call, until the server's wish arrives at the client."""
    asked = await client.call("up.sample", args, ident="call")
    assert asked.get("method") == "sampling/createMessage", asked
    return asked


async def _refused(world: Behind, client: Raw, **args: Any) -> str:
    """The call where nothing comes to the client but its answer: what the server was told."""
    (told,) = json.loads(said(await client.call("up.sample", args, ident="call")))
    assert isinstance(told, str)
    return told


async def test_a_wish_reaches_the_client_and_the_answer_the_server_and_both_are_recorded(
    tmp_path: Path,
) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        more = {
            "maxTokens": 1_000_000, "systemPrompt": "be \x1b[1mbrief", "includeContext": "allServers",
            "metadata": {"a": 1}, "temperature": 0.5,
        }  # fmt: skip
        asked = await _asked(client, more=more)
        assert asked["params"] == {
            "messages": [HELLO], "maxTokens": sampling.MOST_TOKENS, "systemPrompt": "be ⟨U+001B⟩[1mbrief",
            "temperature": 0.5,
        }  # fmt: skip
        reply(client, asked, ANSWER | {"_meta": {"x": 1}})
        assert json.loads(said(await client.next())) == [ANSWER]
        assert await world.rows("up.sampling") == ["started", "committed"]
        rows = {row.kind: row for row in await world.gate.events() if row.tool == "up.sampling"}
        call = next(row.call for row in await world.gate.events() if row.tool == "up.sample")
        assert (json.loads(rows["started"].body)["args"]["call"], rows["started"].persona) == (call, "ada")
        assert json.loads(rows["committed"].body)["summary"] == "2 characters for the server"
        assert await world.gate.approvals() == []


async def test_nothing_is_offered_unless_the_file_says_so(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client(SAMPLES)
        assert "not supported" in await _refused(world, client)
        assert "up.sampling" not in world.gate.services.registry


async def test_where_policy_denies_it_nothing_reaches_the_client_and_that_is_recorded(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES, "carl")
        assert await _refused(world, client) == "refused by toolgate: not_allowed"
        assert await world.rows("up.sampling") == ["denied"]


async def test_a_client_without_a_model_is_not_asked(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(ASKS)
        assert await _refused(world, client) == "refused by toolgate: unavailable"
        new = world.stateless()
        answer = await new.call("up.sample", _meta=envelope(ASKS))
        assert said(answer)  # the server did without, and its answer counts


async def test_each_time_a_human_is_shown_the_servers_words_where_the_file_says_ask(tmp_path: Path) -> None:
    async with behind(tmp_path, None, sampling="ask") as world:
        await world.gate.set_secret("TOKEN", "v4ult-value-1234")
        client = await world.client(SAMPLES | ASKS)
        for answer, outcome in ((REFUSE, "denied"), (APPROVE, "")):
            form = await client.call(
                "up.sample", {"text": "tell \x1b[2Jv4ult-value-1234"}, ident=f"call {outcome}"
            )
            assert form["method"] == "elicitation/create"
            shown = form["params"]["message"]
            assert shown.startswith("toolgate asks: ada wants to call up.sampling")
            assert "let the server up send these messages to the model of your client" in shown
            assert "v4ult" not in shown
            assert "tell ⟨U+001B⟩[2J[secret:TOKEN]" in shown
            reply(client, form, {"action": "accept", "content": answer})
            if outcome:
                assert json.loads(said(await client.next())) == [f"refused by toolgate: {outcome}"]
        wish = await client.next()
        assert wish["params"]["messages"][0]["content"]["text"] == "tell ⟨U+001B⟩[2J[secret:TOKEN]"
        leak = {"type": "text", "text": "it is v4ult-value-1234"}
        reply(client, wish, ANSWER | {"content": leak})
        (told,) = json.loads(said(await client.next()))
        assert told["content"]["text"] == "it is [secret:TOKEN]"


@pytest.mark.parametrize(("can", "text"), [(SAMPLES, "short"), (SAMPLES | ASKS, "long " * 5000)])
async def test_a_question_that_cannot_be_shown_in_the_client_waits_for_the_console(
    tmp_path: Path, can: Message, text: str
) -> None:
    async with behind(tmp_path, sampling="ask") as world:
        client = await world.client(can)
        params = {"name": "up.sample", "arguments": {"text": text}}
        client.connection.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        while not (questions := await world.gate.approvals()):
            await asyncio.sleep(0.01)
        await world.gate.answer(questions[0].id, "approve")
        wish = await client.next()
        assert wish["params"]["messages"][0]["content"]["text"] == text
        reply(client, wish, ANSWER)
        assert json.loads(said(await client.next())) == [ANSWER]


async def test_a_server_that_asks_a_thousand_times_is_heard_ten_times(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        asked = await _asked(client, times=1000)
        for count in range(1, sampling.MOST_SAMPLINGS + 1):
            assert asked["method"] == "sampling/createMessage", count
            reply(client, asked, ANSWER)
            asked = await client.next()
        told = json.loads(said(asked))
        assert told[: sampling.MOST_SAMPLINGS] == [ANSWER] * sampling.MOST_SAMPLINGS
        assert set(told[sampling.MOST_SAMPLINGS :]) == {"a call may ask for a model 10 times"}
        assert len(told) == 1000
        rows = await world.rows("up.sampling")
        assert (rows.count("committed"), rows.count("failed")) == (sampling.MOST_SAMPLINGS, 1)


async def test_a_server_that_asks_after_its_call_has_ended_asks_nobody(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        assert said(await client.call("up.sample_late", ident=1)) == "soon"
        async with asyncio.timeout(10):
            while "no call under way" not in witnessed(tmp_path)[-1]:
                await asyncio.sleep(0.01)
        assert client.sent.empty()
        assert await world.rows("up.sampling") == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"text": "x" * 60_000}, "longer than"),
        ({"more": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}, "tools"),
        ({"more": {"messages": [{"role": "user", "content": {"type": "image", "data": "A" * 60_000, "mimeType": "image/png"}}]}}, "does not pass on"),
    ],
)  # fmt: skip
async def test_what_is_too_large_or_more_than_a_text_is_not_sent(
    tmp_path: Path, args: Message, why: str
) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        assert why in await _refused(world, client, **args)
        assert await world.rows("up.sampling") == ["started", "failed"]


@pytest.mark.parametrize("given", [{}, {"content": "text"}, {"content": {"type": "tool_use"}}])
async def test_an_answer_that_is_none_is_not_passed_on(tmp_path: Path, given: Message) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        reply(client, await _asked(client), given)
        assert json.loads(said(await client.next())) == ["refused by toolgate: failed"]


async def test_an_agent_cannot_call_it_and_no_list_shows_it(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        names = [one["name"] for one in (await client.say("tools/list"))["result"]["tools"]]
        assert "up.sample" in names
        assert "up.sampling" not in names
        args = {"request": "s_1", "call": "c_1", "messages": [HELLO], "longest": 5, "more": {}}
        answer = await client.call("up.sampling", args)
        assert answer["result"]["structuredContent"]["error"]["code"] == Code.NOT_ALLOWED
        asked = await _asked(client)  # and what waits for one call cannot be used by another
        started = next(row for row in await world.gate.events() if row.tool == "up.sampling")
        taken = json.loads(started.body)["args"]
        stolen = await world.gate.call("up.sampling", taken, persona="bob")
        assert stolen.error is not None
        reply(client, asked, ANSWER)
        assert json.loads(said(await client.next())) == [ANSWER]


async def test_the_switch_takes_three_words_and_no_other(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="sampling"):
        async with behind(tmp_path, sampling="perhaps"):
            pass


async def test_what_the_client_is_asked_is_withdrawn_when_the_call_ends(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = await world.client(SAMPLES)
        asked = await _asked(client)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}}
        client.connection.receive(cancelled)
        withdrawn = await client.next()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == asked["id"]
        reply(client, asked, ANSWER)  # too late
        assert said(await client.call("up.pid", ident="after"))
        assert (await world.rows("up.sampling"))[-1] == "failed"
