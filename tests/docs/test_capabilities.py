"""One sentence for each capability that docs/capabilities.md lists and that no other room's tests show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.clock import SECOND
from toolgate.core.errors import Conflict
from toolgate.core.event import Rotated
from toolgate.core.ports import Question
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import View, Work
from toolgate.testing import FixedClock

from . import dies
from .doors import CONFIG, approve, doors


async def test_a_result_says_how_long_it_took_how_large_it_is_and_whether_it_was_cached(
    project: Path,
) -> None:
    @toolgate.tool("list.letters", reads=["system"], cache_s=60)
    async def letters(count: int = 4) -> str:
        return "a" * count

    async with toolgate.open(project, CONFIG, tools=[letters]) as gate:
        first = await gate.call("list.letters")
        again = await gate.call("list/letters", {"count": 4})
        assert (first.data, first.meta.tokens, first.meta.cached) == ("aaaa", 2, False)
        assert (again.data, again.meta.cached, again.tool) == ("aaaa", True, "list.letters")
        assert first.meta.duration_ms > 0
        large = await gate.call("list.letters", {"count": 1_000_000})
        assert large.meta.truncated
        assert large.data.endswith("more characters]")


async def test_the_call_over_the_limit_is_refused_and_told_when_to_come_back(project: Path) -> None:
    clock = FixedClock()
    limits = {"persona": {"per_minute": 2}}
    async with toolgate.open(project, CONFIG | {"limits": limits}, clock=clock) as gate:
        assert [(await gate.call("system.ping")).ok for _ in range(3)] == [True, True, False]
        refused = await gate.call("system.ping")
        assert refused.error is not None
        assert refused.error.code == "rate_limited"
        assert refused.data["retry_after_s"] == 60
        assert (await gate.call("system.ping", persona="other")).ok
        clock.advance(60)
        assert (await gate.call("system.ping")).ok


async def test_every_call_leaves_its_start_and_its_end_with_its_plan_step(project: Path) -> None:
    async with doors(project) as (gate, _):
        trail: Any = {"plan": "p-1", "step": "s-2", "transaction": "t-3", "action": "a-4", "reason": "to see"}
        result = await gate.call("system.ping", {"message": "hi"}, conversation="c-5", **trail)
        end, start = (await gate.events())[:2]
        assert (start.kind, end.kind, end.seq) == ("started", "committed", result.meta.event_id)
        assert {start.call, end.call} == {result.meta.call_id}
        assert start.conversation == "c-5"
        body = json.loads(start.body)
        assert body["trail"] == {
            "plan": "p-1", "step": "s-2", "transaction": "t-3", "action": "a-4", "rationale": "to see",
        }  # fmt: skip
        assert (body["args"], body["decision"], body["rule"]) == (
            {"message": "hi"}, "allow", "phase:experiment/reading",
        )  # fmt: skip
        assert json.loads(end.body)["tokens"] == result.meta.tokens
        assert 0 <= end.at - start.at < 60 * SECOND


async def test_the_system_tools_answer(project: Path) -> None:
    @toolgate.tool("glass.break", reads=["system"])
    async def break_glass() -> str:
        raise RuntimeError("broken glass")

    async with toolgate.open(project, CONFIG, tools=[break_glass]) as gate:
        assert (await gate.call("system.ping", {"message": "hi"})).data["message"] == "hi"
        monitor = (await gate.call("system.monitor")).data
        assert set(monitor) == {"cpu", "memory", "disk", "ledger", "images"}
        assert monitor["ledger"]["running"] == 1
        failed = await gate.call("glass.break")
        assert failed.error is not None
        assert "Traceback" not in failed.error.message
        (entry,) = (await gate.call("system.logs", {"level": "error"})).data
        assert entry["message"] == "glass.break raised"
        assert "trace" not in entry
    assert "RuntimeError: broken glass" in (project / ".toolgate" / "log" / "toolgate.jsonl").read_text()


async def test_tools_are_listed_and_described_without_permission(project: Path) -> None:
    config = {"version": 1, "personas": {"nobody-yet": {}}, "default_persona": "nobody-yet"}
    async with toolgate.open(project, config) as gate:
        assert not (await gate.call("system.ping")).ok
        listed = (await gate.call("tools.list", {"all": True})).data
        assert {"name": "system.ping", "decision": "deny"}.items() <= {
            key: value for entry in listed if entry["name"] == "system.ping" for key, value in entry.items()
        }.items()
        help_text = (await gate.call("tools.help", {"name": "system.ping"})).data
        assert (help_text["decision"], help_text["rule"]) == ("deny", "silence")


async def test_a_question_names_who_asks_for_what_and_a_refusal_reaches_the_caller(project: Path) -> None:
    questions: list[Question] = []
    async with doors(project) as (gate, opened):

        class Refuser:
            name = "refuser"

            async def ask(self, question: Question) -> None:
                questions.append(question)
                await gate.answer(question.id, "deny", reason="it is raining", by="ada")

        gate.services.desk.channels.append(Refuser())
        refused = await gate.call("door.open", {"room": "lab"}, reason="to air it")
        assert refused.error is not None
        assert refused.error.code == "denied"
        assert refused.error.message == "Access denied by creator. ada refused door.open: it is raining"
        (question,) = questions
        assert (question.persona, question.tool, question.args) == ("helper", "door.open", {"room": "lab"})
        assert (question.effects.writes, question.rationale) == (("outside",), "to air it")
        assert (await gate.call("system.ping")).ok
        assert opened == []


async def test_an_annotation_is_kept_and_found_by_type_and_file(project: Path) -> None:
    note: dict[str, Any] = {
        "type": "observation", "op": "edit", "file_path": "a.md", "section_anchor": "s-1", "rationale": "it was wrong",
        "evidence_refs": ["e-1"], "before_hash": "sha256:0", "after_hash": "sha256:1", "lint": {"warnings": 1},
        "transaction_id": "t-1", "agent_action_id": "a-1",
    }  # fmt: skip
    async with doors(project) as (gate, _):
        logged = await gate.call("events.log", note)
        assert logged.ok, logged.error
        found = (await gate.call("events.query", {"type": "observation", "file_path": "a.md"})).data["rows"]
        (event,) = found
        assert (event["event_id"], event["kind"]) == (logged.data["event_id"], "noted")
        kept = {name: event[name] for name in note if not name.endswith("_id")}
        assert kept == {name: value for name, value in note.items() if not name.endswith("_id")}
        assert event["trail"] == {"transaction": "t-1", "action": "a-1"}
        assert (await gate.call("events.query", {"type": "other"})).data["rows"] == []


async def test_the_same_annotation_in_the_same_conversation_is_kept_once(project: Path) -> None:
    async with doors(project) as (gate, _):
        note = {"type": "observation", "rationale": "it was wrong"}
        first = await gate.call("events.log", note, conversation="c-1")
        again = await gate.call("events.log", note, conversation="c-1")
        other = await gate.call("events.log", note, conversation="c-2")
        assert (again.data, again.meta.cached) == (first.data, True)
        assert other.data != first.data


async def test_a_key_gives_the_stored_result_for_48_hours(project: Path) -> None:
    clock = FixedClock()
    async with doors(project, clock=clock) as (gate, opened):
        await approve(gate, "lab")
        first = await gate.call("door.open", {"room": "lab"}, key="k")
        clock.advance(48 * 3600 - 0.000001)
        again = await gate.call("door.open", {"room": "lab"}, key="k", wait=False)
        assert (again.data, again.meta.cached, again.meta.call_id) == ("lab", True, first.meta.call_id)
        clock.advance(0.000001)
        late = await gate.call("door.open", {"room": "lab"}, key="k", wait=False)
        assert late.error is not None
        assert late.error.code == "pending"
        assert opened == ["lab"]


async def test_a_ledger_goes_on_under_a_rotated_key_and_verifies(project: Path) -> None:
    keys = Keys.new()
    async with toolgate.open(project, CONFIG, keys=keys) as gate:
        ledger = gate.services.ledger
        assert (await gate.call("system.ping")).ok
        ledger.keys = keys.rotated()

        def rotate(view: View) -> None:
            view.emit(Rotated(version=2, by="test"))

        await ledger.do(Work(rotate))
        assert (await gate.call("system.ping")).ok
        assert [row.key for row in await gate.events()] == [2, 2, 2, 1, 1, 1]
        assert (await gate.verify()).ok
        ledger.keys = keys
        report = await gate.verify()
        assert (report.bad_event, "key version 2" in report.fault) == (4, True)


@pytest.mark.parametrize(("died", "kind"), [("after", "committed"), ("before", "failed")])
async def test_a_call_whose_process_died_is_settled_by_what_its_tool_can_prove(
    project: Path, died: str, kind: str
) -> None:
    program = subprocess.run([sys.executable, dies.__file__, str(project), died], timeout=60)
    assert program.returncode == 9
    async with toolgate.open(project, dies.CONFIG, tools=[dies.tool(project)]) as gate:
        settled, started = (await gate.events())[:2]
        assert (started.kind, settled.kind, settled.call) == ("started", kind, started.call)
        assert json.loads(settled.body)["reconciled"] == "mark.make was asked"
        again = await gate.call("mark.make", key="once")
        assert again.ok
        assert again.meta.cached is (died == "after")
        assert len([file for file in project.iterdir() if file.name.startswith("c_")]) == 1
        with pytest.raises(Conflict):
            await gate.resolve(started.call, "not")
        assert (await gate.verify()).ok
