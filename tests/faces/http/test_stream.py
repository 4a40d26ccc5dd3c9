"""The stream of events: what is new, what was missed, and no more than one may see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

import toolgate
from toolgate.faces.http import record
from toolgate.faces.http.connection import Joined

from .serving import CONFIG, PATIENCE, House

Frame = dict[str, str]


class Frames:
    """Frames of a stream, one by one, none waited for too long."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self) -> Frame:
        frame: Frame = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    frame[name or "comment"] = value
                elif frame:
                    return frame
        return frame

    async def until(self, event: str) -> Frame:
        while (frame := await self.next()).get("event") != event:
            assert frame, f"the stream ended before {event}"
        return frame


@asynccontextmanager
async def listening(
    client: httpx2.AsyncClient, path: str = "/api/v1/stream", **more: Any
) -> AsyncIterator[Frames]:
    async with client.stream("GET", path, **more) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Frames(answer)


async def test_a_head_goes_out_with_the_body_that_follows_at_once_and_alone_where_none_does() -> None:
    class Wire(asyncio.Transport):
        sent: tuple[bytes, ...] = ()

        def write(self, data: Any) -> None:
            self.sent += (bytes(data),)

        def close(self) -> None:
            self.sent += (b"closed",)

    wire = Wire()
    joined = Joined(wire)
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    joined.write(b"body")
    joined.write(b"more")
    joined.write(b"HTTP/1.1 201 Created\r\n\r\n")
    await asyncio.sleep(0)
    joined.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    joined.close()
    await asyncio.sleep(0)
    assert wire.sent == (
        b"HTTP/1.1 200 OK\r\n\r\nbody",
        b"more",
        b"HTTP/1.1 201 Created\r\n\r\n",
        b"HTTP/1.1 408 Request Timeout\r\n\r\n",
        b"closed",
    )


async def test_an_event_arrives_as_it_is_recorded_with_its_number_kind_and_row(here: House) -> None:
    async with here.client("human") as client, listening(client) as frames:
        assert (await frames.until("questions"))["data"] == '{"open": 0, "ids": []}'
        done = await here.gate.call("system.ping", persona="helper")
        frame = await frames.until("committed")
        assert int(frame["id"]) == done.meta.event_id
        row = json.loads(frame["data"])
        assert (row["call"], row["persona"], row["kind"]) == (done.meta.call_id, "helper", "committed")


async def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(here: House) -> None:
    async with here.client("human") as client:
        async with listening(client, params={"kind": "committed"}) as frames:
            await here.gate.call("system.ping")
            last = (await frames.until("committed"))["id"]
        missed = [(await here.gate.call("system.ping")).meta.event_id for _ in range(3)]
        again = {"Last-Event-ID": last}
        async with listening(client, params={"kind": "committed"}, headers=again) as frames:
            assert [int((await frames.until("committed"))["id"]) for _ in missed] == missed
            fresh = (await here.gate.call("system.ping")).meta.event_id
            assert int((await frames.until("committed"))["id"]) == fresh


async def test_more_than_one_batch_was_missed(here: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "BATCH", 2)
    for _ in range(5):
        await here.gate.call("system.ping")
    head = (await here.gate.events())[0].seq
    async with here.client("human") as client, listening(client, params={"after": 0}) as frames:
        seen = []
        while not seen or seen[-1] < head:
            frame = await frames.next()
            if "id" in frame:
                seen.append(int(frame["id"]))
    assert seen == list(range(1, head + 1))


async def test_a_persona_sees_its_own_events_and_its_own_questions(here: House) -> None:
    async with (
        here.client("other") as client,
        listening(client, params={"after": 0, "persona": "helper"}) as frames,
    ):
        await here.gate.call("door.open", {"room": "lab"}, persona="helper", wait=False)
        await here.gate.call("door.open", {"room": "hall"}, persona="other", wait=False)
        asked: dict[str, Any] = {}
        openly = 0
        while not asked or openly != 1:  # in whichever order they come
            frame = await frames.next()
            said = json.loads(frame.get("data", "{}"))
            asked = said if frame.get("event") == "asked" else asked
            openly = said["open"] if frame.get("event") == "questions" else openly
        assert asked["body"]["args"] == {"room": "hall"}


async def test_the_questions_that_are_open_are_told_whenever_that_changes(here: House) -> None:
    async with here.client("human") as client, listening(client) as frames:
        await frames.until("questions")
        asked = await here.gate.call("door.open", {"room": "lab"}, wait=False)
        question = asked.data["question"]
        assert json.loads((await frames.until("questions"))["data"]) == {"open": 1, "ids": [question]}
        await here.gate.answer(question, "deny")
        assert json.loads((await frames.until("questions"))["data"]) == {"open": 0, "ids": []}


async def test_what_another_process_records_arrives_too(here: House) -> None:
    async with here.client("human") as client, listening(client) as frames:
        await frames.until("questions")
        async with toolgate.open(here.gate.root, CONFIG) as second:
            done = await second.call("system.ping")
        assert int((await frames.until("committed"))["id"]) == done.meta.event_id


async def test_a_silent_stream_is_kept_open_by_comments(here: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "HEARTBEAT", 0.05)
    async with here.client("human") as client, listening(client) as frames:
        await frames.until("questions")
        assert (await frames.next()).get("comment") == "still here"


async def test_a_stream_ends_when_its_token_is_replaced(here: House) -> None:
    async with here.client("helper") as client, listening(client) as frames:
        await frames.until("questions")
        here.site.tokens.renew("helper")
        await here.gate.call("system.ping")
        while await frames.next():
            pass


async def test_bad_places_and_kinds_are_refused(here: House) -> None:
    async with here.client("human") as client:
        for more in (
            {"headers": {"Last-Event-ID": "x"}},
            {"headers": {"Last-Event-ID": "-1"}},
            {"params": {"after": "-1"}},
            {"params": {"kind": "nonsense"}},
        ):
            answer = await client.get("/api/v1/stream", **more)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_args"), more


async def test_streams_do_not_hold_the_server_when_it_ends(here: House) -> None:
    async with here.client("human") as client, listening(client) as frames:
        await frames.until("questions")
        here.site.closing.set()
        while await frames.next():
            pass
