"""Reading the record, undoing, pausing and asking why, over HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path

from toolgate.ledger.traces import TracedProgram

from .serving import House, house


async def test_events_come_page_by_page_in_both_orders(here: House) -> None:
    for _ in range(4):
        await here.gate.call("system.ping")
    head = (await here.gate.events())[0].seq
    async with here.client("human") as client:
        for order, expected in (("newest", list(range(head, 0, -1))), ("oldest", list(range(1, head + 1)))):
            seen, cursor = [], 0
            while cursor is not None:
                asked = {"order": order, "limit": 2, "cursor": cursor}
                page = (await client.get("/api/v1/events", params=asked)).json()
                seen += [row["seq"] for row in page["events"]]
                cursor = page["next"]
            assert seen == expected


async def test_events_are_filtered_and_a_wrong_filter_is_said(here: House) -> None:
    await here.gate.call("system.ping", persona="helper", conversation="c-1")
    await here.gate.call("tools.list", persona="other")
    async with here.client("human") as client:
        for asked, count in (
            ({"persona": "helper", "kind": "committed"}, 1),
            ({"tool": "tools.list"}, 2),
            ({"conversation": "c-1", "kind": "started,committed"}, 2),
            ({"since": "2999-01-01T00:00:00Z"}, 0),
        ):
            assert len((await client.get("/api/v1/events", params=asked)).json()["events"]) == count, asked
        for wrong in (
            {"kind": "x"},
            {"since": "yesterday"},
            {"since": "2026-01-01"},
            {"limit": 0},
            {"order": "x"},
        ):
            answer = await client.get("/api/v1/events", params=wrong)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_args"), wrong


async def test_one_event_shows_the_life_of_its_call_and_a_proof_that_anybody_can_recompute(
    here: House,
) -> None:
    asked = await here.gate.call("door.open", {"room": "lab"}, wait=False)
    await here.gate.answer(asked.data["question"], "approve")
    done = await here.gate.call("door.open", {"room": "lab"})
    async with here.client("human") as client:
        shown = (await client.get(f"/api/v1/events/{done.meta.event_id}")).json()
        by_call = (await client.get(f"/api/v1/calls/{done.meta.call_id}")).json()
        by_question = (await client.get(f"/api/v1/calls/{asked.data['question']}")).json()
    assert [row["kind"] for row in shown["life"]] == ["asked", "approved", "started", "committed"]
    assert shown["event"]["kind"] == "committed"
    assert shown["life"] == by_call["life"]
    assert [row["kind"] for row in by_question["life"]] == ["asked", "approved", "started"]
    for proof in shown["proof"]:
        assert hashlib.sha256(proof["text"].encode()).hexdigest() == proof["hash"]
        assert (proof["ok"], proof["seal_checked"]) == (True, True)
    async with here.client("helper") as client:
        own = (await client.get(f"/api/v1/events/{done.meta.event_id}")).json()
    assert not any(proof["seal_checked"] for proof in own["proof"])


async def test_a_pause_stops_calls_until_it_is_lifted(here: House) -> None:
    async with here.client("human") as human, here.client("helper") as agent:
        await human.post("/api/v1/pause", json={"persona": "helper", "reason": "lunch"})
        assert (await human.get("/api/v1/pauses")).json() == {
            "pauses": [{"persona": "helper", "reason": "lunch"}]
        }
        stopped = await agent.post("/api/v1/calls", json={"tool": "system.ping"})
        assert stopped.status_code == 403
        await human.post("/api/v1/resume", json={"persona": "helper"})
        assert (await agent.post("/api/v1/calls", json={"tool": "system.ping"})).status_code == 200
        again = await human.post("/api/v1/resume", json={"persona": "helper"})
        assert (again.status_code, again.json()["code"]) == (404, "not_found")


async def test_policy_says_why(here: House) -> None:
    async with here.client("human") as client:
        asked = {"tool": "door.open", "args": {"room": "lab"}, "persona": "mute"}
        told = (await client.post("/api/v1/policy/explain", json=asked)).json()
        assert told["decision"]["verdict"] == "deny"
        assert [line["decided"] for line in told["lines"]].count(True) == 1
        missing = await client.post("/api/v1/policy/explain", json={"tool": "door.opn"})
        assert (missing.status_code, missing.json()["code"]) == (404, "unknown_tool")
        assert "door.open" in missing.json()["fix"]


async def test_a_change_is_undone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    config = {
        "version": 1,
        "default_persona": "w",
        "personas": {"w": {"phase": "contribute", "allow": ["fs.*"]}},
    }
    async with house(root, config) as here, here.client("human") as human:
        done = await here.gate.call("fs.write", {"path": "a.txt", "content": "hello\n"})
        assert done.ok, done.error
        shown = (await human.get(f"/api/v1/undo/{done.meta.event_id}")).json()["data"]
        assert (shown["files"][0]["path"], "-hello" in shown["diff"]) == ("project:a.txt", True)
        both = await human.post("/api/v1/undo", json={"events": [done.meta.event_id], "preview": True})
        assert both.json()["data"] == shown
        assert (root / "a.txt").exists()
        undone = await human.post(f"/api/v1/undo/{done.meta.event_id}", json={"reason": "a mistake"})
        assert (undone.status_code, undone.json()["ok"]) == (200, True)
        assert not (root / "a.txt").exists()
        twice = await human.post(f"/api/v1/undo/{done.meta.event_id}")
        assert (twice.status_code, twice.json()["error"]["code"]) == (409, "conflict")


async def test_the_ledger_verifies_and_the_numbers_are_there(here: House) -> None:
    async with here.client("human") as human, here.client("helper") as agent:
        await agent.post("/api/v1/calls", json={"tool": "system.ping"})
        assert (await human.post("/api/v1/ledger/verify")).json()["ok"] is True
        stats = (await human.get("/api/v1/stats")).json()
        assert stats["personas"][0]["calls"] == 1
        assert (await human.get("/api/v1/stats?period=fortnight")).status_code == 400
        metrics = (await human.get("/api/v1/metrics")).text.splitlines()
    assert 'toolgate_events_total{kind="committed",persona="helper",tool="system.ping"} 1' in metrics
    assert 'toolgate_call_duration_seconds_bucket{persona="helper",le="+Inf"} 1' in metrics
    assert "toolgate_open_questions 0" in metrics
    assert any(line.startswith('toolgate_http_responses_total{status="200"}') for line in metrics)


async def test_a_server_without_its_policy_is_alive_and_not_ready(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npersonas: {helper: {phase: observe}}\n")
    async with house(root, str(policy)) as here, here.client("helper") as client:  # type: ignore[arg-type]
        assert (await client.get("/api/v1/health/ready")).json() == {"ok": True}
        policy.write_text("version: 1\npersonas: [\n")
        assert (await client.get("/api/v1/health/live")).status_code == 200
        ready = await client.get("/api/v1/health/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "unavailable")
        answer = await client.post("/api/v1/calls", json={"tool": "system.ping"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")


async def test_the_api_describes_itself_without_naming_the_consoles_path(here: House) -> None:
    async with here.client() as client:
        answer = await client.get("/api/openapi.json")
    told = answer.json()
    assert here.site.base not in answer.text
    for path in ("/api/v1/calls", "/api/v1/approvals/{ident}", "/api/v1/stream", "/api/v1/undo/{event}"):
        assert path in told["paths"]
    body = told["paths"]["/api/v1/calls"]["post"]["requestBody"]["content"]["application/json"]
    assert body["examples"]["read"]["value"]["tool"] == "system.ping"


async def test_programs_come_page_by_page_and_a_persona_sees_its_own(here: House) -> None:
    for number in range(3):
        await here.gate.traces.add(
            TracedProgram(
                call=f"c_{number}",
                persona="helper",
                tool="exec.python",
                language="python",
                code="x",
                exit_code=1,
            )
        )
    await here.gate.traces.add(
        TracedProgram(
            call="c_o", persona="other", tool="exec.python", language="python", code="y", exit_code=0
        )
    )
    async with here.client("human") as client:
        first = (await client.get("/api/v1/executions", params={"limit": 2})).json()
        rest = (await client.get("/api/v1/executions", params={"limit": 2, "cursor": first["next"]})).json()
        good = (await client.get("/api/v1/executions", params={"success": True})).json()
        summary = (await client.get("/api/v1/executions/summary")).json()
    assert [row["call"] for row in first["executions"] + rest["executions"]] == ["c_o", "c_2", "c_1", "c_0"]
    assert rest["next"] is None
    assert [row["call"] for row in good["executions"]] == ["c_o"]
    assert (summary["total"], summary["failed"], summary["errors"][0]["category"]) == (4, 3, "unknown")
    async with here.client("helper") as client:
        own = (await client.get("/api/v1/executions")).json()
        foreign = (await client.get("/api/v1/executions", params={"persona": "other"})).json()
        numbers = (await client.get("/api/v1/executions/summary", params={"persona": "other"})).json()
    assert {row["persona"] for row in own["executions"]} == {"helper"}
    assert foreign["executions"] == []
    assert numbers["total"] == 3


async def test_a_persona_sees_its_own_jobs_and_only_the_human_cancels(here: House) -> None:
    mine, other = [
        await here.gate.jobs.submit("call", {"tool": "system.ping"}, persona)
        for persona in ("helper", "other")
    ]
    async with here.client("helper") as client:
        assert [job["job"] for job in (await client.get("/api/v1/jobs")).json()["jobs"]] == [mine]
        assert (await client.get(f"/api/v1/jobs/{mine}")).json()["args"] == {"tool": "system.ping"}
        assert (await client.get(f"/api/v1/jobs/{other}")).status_code == 404
        assert (await client.post(f"/api/v1/jobs/{mine}/cancel")).status_code == 403
    async with here.client("human") as client:
        assert len((await client.get("/api/v1/jobs")).json()["jobs"]) == 2
        assert (await client.post(f"/api/v1/jobs/{other}/cancel")).json()["state"] == "cancelled"
        assert (await client.post(f"/api/v1/jobs/{other}/cancel")).status_code == 409
