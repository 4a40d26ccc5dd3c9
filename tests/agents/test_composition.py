"""References to earlier results: filled before the gate sees the call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.world import Witness, call, calls, world
from toolgate.agents import wires
from toolgate.agents.composition import EarlierResults, refers
from toolgate.agents.wires import WireCall
from toolgate.core.errors import InvalidArgs

FOUND: dict[str, Any] = {"matches": [{"file": "a.py", "line": 3}], "odd key": {"x.y": 1}}


def earlier() -> EarlierResults:
    made = EarlierResults([WireCall(name, "t", {}) for name in ("toolu_1", "b", "c")])
    made.add(0, True, FOUND)
    made.add(1, False, None)
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("call_1.matches[0].file", "a.py"), ("toolu_1.matches[0].line", 3), ('call_1["odd key"]["x.y"]', 1),
        ("call_1", FOUND), ("call_1.matches", FOUND["matches"]),
    ],
)  # fmt: skip
def test_a_reference_becomes_what_the_earlier_call_gave(path: str, value: Any) -> None:
    assert earlier().fill({"deep": [{"at": {"$from": path}}], "same": 1}) == {
        "deep": [{"at": value}],
        "same": 1,
    }


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("call_9.x", "there is no call 'call_9'"), ("call_3.x", "call_3 has no result yet"),
        ("call_2.x", "call_2 gave no result"), ("call_1.nothing", "call_1 has no 'nothing'"),
        ("call_1.matches[1]", "call_1.matches has 1 items"), ("call_1.matches.file", "call_1.matches has no 'file'"),
        ("call_1[0]", "call_1 is not a list"), ("call_1.matches[-1]", "is not a reference"), ("", "is not a reference"),
        ("call_1.__class__", "call_1 has no '__class__'"), ("call_1 .x", "is not a reference"), ("x" * 600, "is not a reference"),
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_says_why(path: str, problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem.replace("[", r"\[")):
        earlier().fill({"x": {"$from": path}})


def test_only_an_object_with_that_one_key_is_a_reference() -> None:
    assert not refers({"x": {"$from": "call_1", "more": 1}, "y": "$from", "z": {"$from": 3}})


def test_a_wire_lets_references_pass_where_the_schema_wants_something_else() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    text = '<tool_call>{"name": "code.read", "args": {"path": {"$from": "call_1.x"}}}</tool_call>'
    assert wires.parse(text, tools=[{"name": "code.read", "input_schema": schema}]).errors == []


async def test_a_run_fills_references_and_policy_judges_the_filled_call(tmp_path: Path) -> None:
    witness = Witness()
    rules = [
        {
            "tools": ["t.look"],
            "when": {"args": {"x": "seen secret"}},
            "decision": "deny",
            "reason": "not that",
        }
    ]
    first = calls(
        call("t.look", x="a"), call("t.look", x={"$from": "call_1"}), call("t.look", x={"$from": "call_7"})
    )
    second = calls(call("t.look", x="secret"), call("t.look", x={"$from": "call_1"}))
    script = [first, second, {"text": "done"}]
    async with world(script, tmp_path, witness=witness, policy={"rules": rules}) as (_, agents):
        run = await agents.drive(await agents.start("go"))
        assert (run.state, run.answer) == ("done", "done")
        bodies = [step["body"] for step in await agents.store.steps(run.id) if step["kind"] == "result"]
    assert witness.ran == ["look a", "look seen a", "look secret"]
    assert [body["code"] for body in bodies] == ["", "", "invalid_args", "", "not_allowed"]
