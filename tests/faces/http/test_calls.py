"""Calls over HTTP: the same results, with a status that follows from the code."""

from __future__ import annotations

import asyncio
import json

from toolgate.core.errors import Code
from toolgate.kits.web.answers import STATUS
from toolgate.storage.port import Filter

from .serving import PATIENCE, House

OPEN = {"tool": "door.open", "args": {"room": "lab"}}


def test_every_code_has_a_status() -> None:
    assert set(STATUS) == set(Code)


async def test_a_call_gives_the_result_that_the_library_gives(here: House) -> None:
    async with here.client("helper") as client:
        answer = await client.post("/api/v1/calls", json={"tool": "system/ping", "args": {"message": "hi"}})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["ok"], body["tool"], body["data"]["message"], body["error"]) == (
        True,
        "system.ping",
        "hi",
        None,
    )
    assert set(body["meta"]) == {"call_id", "event_id", "duration_ms", "tokens", "cached", "truncated"}


async def test_a_call_that_asks_is_pending_and_runs_when_it_is_repeated_after_approval(here: House) -> None:
    async with here.client("helper") as agent, here.client("human") as human:
        asked = await agent.post("/api/v1/calls", json=OPEN)
        assert (asked.status_code, asked.json()["error"]["code"]) == (202, "pending")
        question = asked.json()["data"]["question"]
        (shown,) = (await human.get("/api/v1/approvals")).json()["approvals"]
        assert (shown["id"], shown["tool"], shown["args"]) == (question, "door.open", {"room": "lab"})
        assert (await human.get(f"/api/v1/approvals/{question}")).json() == shown
        assert here.opened == []
        said = await human.post(f"/api/v1/approvals/{question}", json={"answer": "approve", "reason": "fine"})
        assert said.json() == {"id": question, "outcome": "approved"}
        done = await agent.post("/api/v1/calls", json=OPEN)
        assert (done.status_code, done.json()["data"]) == (200, "the door of lab is open")
    assert here.opened == ["lab"]
    approved = next(row for row in await here.gate.events() if row.kind == "approved")
    assert json.loads(approved.body)["channel"] == "http"


async def test_a_call_that_waits_runs_once_it_is_approved_and_hears_of_a_refusal(here: House) -> None:
    async with here.client("helper") as agent, here.client("human") as human:
        for answer, status in (("approve", 200), ("deny", 403)):
            call = {"tool": "door.open", "args": {"room": answer}, "wait": True}
            waiting = asyncio.create_task(agent.post("/api/v1/calls", json=call))
            question = await _asked(here)
            await human.post(f"/api/v1/approvals/{question}", json={"answer": answer, "reason": "because"})
            done = await asyncio.wait_for(waiting, PATIENCE)
            assert done.status_code == status
    assert done.json()["error"]["code"] == "denied"
    assert "because" in done.json()["error"]["message"]
    assert here.opened == ["approve"]


async def test_a_call_waits_only_as_long_as_it_says(here: House) -> None:
    async with here.client("helper") as agent:
        done = await agent.post("/api/v1/calls", json=OPEN | {"wait": 0.05})
    assert (done.status_code, done.json()["error"]["code"]) == (202, "pending")


async def test_nothing_runs_for_a_caller_who_left_while_the_human_was_reading(here: House) -> None:
    async with here.client("helper") as agent:
        waiting = asyncio.create_task(agent.post("/api/v1/calls", json=OPEN | {"wait": True}))
        question = await _asked(here)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        while any(task.get_name() == f"waits for {question}" for task in asyncio.all_tasks()):
            await asyncio.sleep(0.01)
    await here.gate.answer(question, "approve")
    await here.gate.call("system.ping")  # whatever would run by itself would have begun before this has ended
    assert here.opened == []
    async with here.client("helper") as agent:
        assert (await agent.post("/api/v1/calls", json=OPEN)).status_code == 200
    assert here.opened == ["lab"]


async def test_a_key_gives_the_stored_result_and_a_grant_stops_the_asking(here: House) -> None:
    async with here.client("helper") as agent, here.client("human") as human:
        asked = await agent.post("/api/v1/calls", json=OPEN | {"key": "k1"})
        scope = {"args": {"room": {"equals": "lab"}}, "seconds": 60, "uses": 5}
        question = asked.json()["data"]["question"]
        await human.post(f"/api/v1/approvals/{question}", json={"answer": "approve", "scope": scope})
        first = (await agent.post("/api/v1/calls", json=OPEN | {"key": "k1"})).json()
        again = (await agent.post("/api/v1/calls", json=OPEN | {"key": "k1"})).json()
        assert (again["meta"]["cached"], again["meta"]["call_id"]) == (True, first["meta"]["call_id"])
        assert (await agent.post("/api/v1/calls", json=OPEN)).status_code == 200
        (grant,) = (await human.get("/api/v1/grants")).json()["grants"]
        assert (grant["tool"], grant["max_uses"], grant["uses"]) == ("door.open", 5, 1)
        revoked = await human.post(f"/api/v1/grants/{grant['id']}/revoke", json={"reason": "enough"})
        assert revoked.json() == {"id": grant["id"], "revoked": True}
        assert (await agent.post("/api/v1/calls", json=OPEN)).status_code == 202
    assert here.opened == ["lab", "lab"]


async def test_what_a_tool_may_give_never_breaks_the_answer(here: House) -> None:
    async with here.client("helper") as agent:
        answer = await agent.post("/api/v1/calls", json={"tool": "door.strange"})
    assert answer.status_code in (200, 202), answer.text


BAD = [
    b"",
    b'{"tool": "system.ping"',
    b"[]",
    b"null",
    b'{"tool": 7}',
    b'{"args": {}}',
    b'{"tool": "door.open", "args": []}',
    b'{"tool": "door.open", "args": {"room": "x"}, "approved": true}',
    b'{"tool": "door.open", "args": {"room": "x"}, "wait": -1}',
    b'{"tool": "door.open", "args": {"room": "x"}, "wait": "yes"}',
    b'{"tool": "door.open", "args": {"room": NaN}}',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"tool": "door.open", "args": ' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"}",
]


async def test_a_malformed_body_gets_code_message_and_fix_and_runs_nothing(here: House) -> None:
    async with here.client("helper", headers={"Content-Type": "application/json"}) as client:
        for body in BAD:
            answer = await client.post("/api/v1/calls", content=body)
            assert answer.status_code == 400, body[:80]
            said = answer.json()
            problem = said.get("error") or said
            assert problem["code"] == "invalid_args", body[:80]
            assert problem["message"]
            assert problem["fix"]
    assert here.opened == []
    assert "started" not in await here.kinds()


async def test_a_bad_call_is_a_result_with_the_status_of_its_code(here: House) -> None:
    cases = {
        "no.tool": (404, "unknown_tool"),
        "door.open": (400, "invalid_args"),
    }
    async with here.client("helper") as client:
        for tool, (status, code) in cases.items():
            answer = await client.post("/api/v1/calls", json={"tool": tool})
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    async with here.client("mute") as client:
        answer = await client.post("/api/v1/calls", json=OPEN)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")


async def test_a_plain_call_is_refused_with_the_words_and_headers_of_any_other(here: House) -> None:
    """The short way past the framework may save time, and nothing else. A charset in the type is the long way."""
    cases = [
        ("helper", {"tool": "system.ping", "persona": "mute"}),
        ("helper", {"tool": "no.tool"}),
        ("helper", {"tool": "system.ping", "surplus": 1}),
        ("", {"tool": "system.ping"}),
    ]
    for name, body in cases:
        async with here.client(name) as client:
            short, long = [
                await client.post("/api/v1/calls", content=json.dumps(body), headers={"Content-Type": kind})
                for kind in ("application/json", "application/json; charset=utf-8")
            ]
        assert short.status_code == long.status_code >= 400
        assert set(short.headers) == set(long.headers)
        assert "content-security-policy" in short.headers
        said, same = (answer.json().get("error") or answer.json() for answer in (short, long))
        assert said == same


async def test_two_hundred_calls_at_once_all_succeed_and_all_are_recorded(here: House) -> None:
    async with here.client("helper") as client:
        answers = await asyncio.gather(
            *(
                client.post("/api/v1/calls", json={"tool": "system.ping", "args": {"message": str(n)}})
                for n in range(200)
            )
        )
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["data"]["message"] for answer in answers} == {str(n) for n in range(200)}
    assert len(await here.gate.events(Filter(kinds=("committed",)))) == 200
    assert (await here.gate.verify()).ok


async def test_tools_are_those_that_the_persona_may_see(here: House) -> None:
    async with here.client("mute") as mute, here.client("helper") as helper, here.client("human") as human:
        seen = {each["name"] for each in (await mute.get("/api/v1/tools")).json()["tools"]}
        assert "door.open" not in seen
        assert "system.ping" in seen
        listed = (await helper.get("/api/v1/tools")).json()["tools"]
        (door,) = [each for each in listed if each["name"] == "door.open"]
        assert (door["decision"], door["input_schema"]["required"]) == ("ask", ["room"])
        as_mute = (await human.get("/api/v1/tools", params={"persona": "mute"})).json()["tools"]
        assert {each["name"] for each in as_mute} == seen


async def _asked(here: House) -> str:
    async with asyncio.timeout(PATIENCE):
        while not (found := await here.gate.approvals()):
            await asyncio.sleep(0.01)
    return found[0].id
