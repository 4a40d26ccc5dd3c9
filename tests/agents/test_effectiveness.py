"""Effectiveness of tools: which calls led to an answer, who may see it, and what later runs are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.world import CART, call, calls, config, world
from gates import FixedClock
from toolgate import app
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.features.agents.effectiveness import MadeCall, led
from toolgate.features.agents.pages import plot
from toolgate.gate.earned import earned
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Filter


def made(tool: str, path: str = "", *, text: str = "", ok: bool = True, event: int = 0) -> MadeCall:
    return MadeCall(tool, (path,) if path else (), ok, text, "c_1", event or None)


CASES = [
    ("cited by name", [made("code.read", "src/cart.py")], "The bug is in cart.py:6.", (), [True]),
    ("another file", [made("code.read", "src/cart.py")], "The bug is in my-cart.py.", (), [False]),
    ("failed", [made("code.read", "cart.py", ok=False)], "cart.py is broken", (), [False]),
    ("by a claim's event", [made("code.read", "x/y.py", event=7)], "found it", (7,), [True]),
    (
        "the search that found what was read",
        [made("code.list", text="a.txt"), made("code.search", text="src/cart.py:6:x"), made("code.read", "src/cart.py")],
        "src/cart.py divides by 10",
        (),
        [False, True, True],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "made_calls", "answer", "claimed", "expected"), CASES, ids=[one[0] for one in CASES]
)
def test_a_call_leads_to_an_answer_that_names_what_it_was_about_or_showed(
    what: str, made_calls: list[MadeCall], answer: str, claimed: tuple[int, ...], expected: list[bool]
) -> None:
    assert led(made_calls, answer, claimed) == expected


async def test_later_runs_are_told_which_tools_led_to_answers_once_there_is_enough_and_the_same_all_day(
    tmp_path: Path,
) -> None:
    (tmp_path / "cart.py").write_text(CART)
    reads = [call("code.read", path="cart.py", start_line=line) for line in range(1, 6)]
    one = [calls(*reads), calls(call("t.look", x="1"), call("t.look", x="2"), call("t.look", x="3"), call("t.look", x="4"), call("t.look", x="5")), "cart.py, line 6"]  # fmt: skip
    clock = FixedClock()
    async with app.open(tmp_path, config(), MemoryBackend(), tools=_tools(), clock=clock) as gate:
        agents = gate.feature("agents")
        agents.models.given["model"] = ScriptedModel(one * 5, "model")
        told = []
        for number in range(5):
            run = await agents.drive(await agents.start("why?", offset=number * 3))
            assert run.state == "done", run.reason
            told.append(run.settings["begun"]["system"])
        assert len(set(told)) == 1, "the same to the byte, whatever ends meanwhile"
        assert "led to answers" not in told[0]
        clock.advance(86_400)
        later = (await agents.start("why?")).settings["begun"]["system"]
        line = "Calls that led to answers in this project so far were mostly of: code.read. Calls that seldom did: t.look."
        assert later.endswith(line)
        found = (await gate.call("ai.metrics", {"period": "all"}, persona="bob")).data
        assert found["tools"] == [
            {"tool": "code.read", "calls": 25, "led_to_answer": 1.0},
            {"tool": "t.look", "calls": 25, "led_to_answer": 0.0},
        ]


def _tools() -> Any:
    from agents.world import Witness

    return Witness().tools()


@pytest.mark.parametrize("database", ["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_what_led_to_an_answer_earns_a_persona_its_raise(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("fresh_dsn") if database == "postgres" else None
    (tmp_path / "cart.py").write_text(CART)
    adaptive = {"per_minute": 100, "adaptive": {"per_minute": 200, "every": 5}}
    personas = {"ada": {"phase": "observe", "limits": adaptive}}
    script = [calls(call("code.read", path="cart.py"), call("code.list")), "cart.py, line 6"]
    async with world(script, tmp_path, personas=personas, database=place) as (gate, agents):
        run = await agents.drive(await agents.talk("why?", "v_talk"))
        assert (run.state, bool(run.settings["session"])) == ("done", True)
        found = await gate.call("ai.metrics", {}, persona="ada")
        assert [one["led_to_answer"] for one in found.data["tools"]] == [1.0, 1.0]
        assert (await plot(gate, "all", "ada")).most >= 1
        assert (await earned(gate.services.ledger, "ada", 5)).useful == 2, "the list showed cart.py"
        assert len(await gate.events(Filter(kinds=("noted",), body={"type": "credit"}))) == 1


async def test_metrics_are_of_the_callers_own_user(tmp_path: Path) -> None:
    personas = {"ada": {"phase": "observe", "user": "alice", "allow": ["t.*"]}, "bob": {"phase": "observe", "user": "bert"}}  # fmt: skip
    async with world([calls(call("t.look", x="cart.py")), "cart.py"], tmp_path, personas=personas) as (
        gate,
        agents,
    ):
        assert (await agents.drive(await agents.start("why?"))).state == "done"
        room = await agents.rooms.open("why?", ["ada", "bob"])
        await agents.rooms.judge(room.id, "right", "me")
        own = (await gate.call("ai.metrics", {"period": "all"}, persona="ada")).data
        other = (await gate.call("ai.metrics", {"period": "all"}, persona="bob")).data
        asked = await gate.call("ai.metrics", {"period": "all", "persona": "ada"}, persona="bob")
        human = (await gate.call("ai.metrics", {"period": "all"}, persona="human")).data
    values = {who: {one["name"]: one["value"] for one in found["metrics"]} for who, found in (("own", own), ("other", other), ("human", human))}  # fmt: skip
    assert (values["own"]["adoption"], values["other"]["adoption"]) == (1.0, None)
    assert other["tools"] == []
    assert (values["own"]["accuracy"], values["human"]["accuracy"]) == (None, 1.0)
    assert asked.error is not None
    assert asked.error.code == "not_found"
