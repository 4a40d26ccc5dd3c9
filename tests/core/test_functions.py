"""Function-calling APIs: names lead back, bad arguments are explained, refusals become results."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import toolgate
from toolgate import testing
from toolgate.core.functions import wire_names


@toolgate.tool("door.open", writes=["outside"])
async def open_door(room: str = "hall") -> str:
    """Open a door."""
    return f"{room} is open"


@toolgate.tool("lamp.light", reads=["system"])
async def light(colour: str = "white") -> dict[str, str]:
    """Light a lamp."""
    return {"colour": colour}


CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "tester",
    "personas": {"tester": {"phase": "experiment"}, "mute": {"phase": "observe", "deny": ["door.open"]}},
}


def test_names_fit_the_apis_and_never_collide() -> None:
    long = "server." + "x" * 100
    names = wire_names(["a_b.c", "a.b_c", "code.read", long, long + "y"])
    assert names["code.read"] == "code_read"
    assert len(set(names.values())) == 5
    assert all(len(name) <= 64 and "." not in name for name in names.values())


async def test_calls_run_in_order_and_come_back_under_their_ids_as_objects_or_dictionaries() -> None:
    async with testing.gate([light], CONFIG) as gate:
        tools = gate.tools()
        chat = SimpleNamespace(
            id="a",
            type="function",
            function=SimpleNamespace(name="lamp_light", arguments='{"colour": "red"}'),
        )
        item = {"type": "function_call", "call_id": "b", "name": "lamp_light", "arguments": ""}
        reasoning = {"type": "reasoning", "summary": []}
        first, second = await tools.run_openai([chat, reasoning, item], conversation="c-9", reason="because")
        assert first == {"role": "tool", "tool_call_id": "a", "content": '{"colour": "red"}'}
        assert second == {"type": "function_call_output", "call_id": "b", "output": '{"colour": "white"}'}
        assert {row.conversation for row in await gate.events() if row.kind == "committed"} == {"c-9"}
        assert await tools.run_openai(None) == []
        assert await tools.run_anthropic([]) == {"role": "user", "content": []}


async def test_a_refusal_is_a_result_and_stops_the_rest() -> None:
    human = testing.Script(testing.Refuse("door.open", reason="at night"))
    async with testing.gate([open_door, light], CONFIG, human=human) as gate:
        blocks = [
            {"type": "tool_use", "id": "1", "name": "door_open", "input": {"room": "lab"}},
            {"type": "tool_use", "id": "2", "name": "lamp_light", "input": {}},
        ]
        answer = await gate.tools().run_anthropic(blocks)
        codes = [json.loads(block["content"])["error"]["code"] for block in answer["content"]]
        assert codes == ["denied", "cancelled"]
        assert [block["is_error"] for block in answer["content"]] == [True, True]
        assert "Access denied by creator." in answer["content"][0]["content"]


async def test_what_is_not_on_the_list_is_refused_by_the_gate_and_bad_arguments_are_explained() -> None:
    async with testing.gate([open_door, light], CONFIG) as gate:
        tools = gate.tools("mute")
        assert "door_open" not in [each["name"] for each in tools.as_anthropic()]

        async def code_of(name: Any, arguments: Any) -> tuple[str, str]:
            call = {"id": "x", "function": {"name": name, "arguments": arguments}}
            (message,) = await tools.run_openai([call])
            error = json.loads(message["content"])["error"]
            return error["code"], error["message"]

        assert (await code_of("door_open", "{}"))[0] == "not_allowed"
        assert (await code_of("nothing_here", "{}"))[0] == "unknown_tool"
        assert (await code_of(None, "{}"))[0] == "invalid_args"
        code, message = await code_of("lamp_light", '{"colour": ')
        assert (code, message.startswith("the arguments are not JSON")) == ("invalid_args", True)
        assert (await code_of("lamp_light", "[1]"))[0] == "invalid_args"
        assert (await code_of("lamp_light", '{"color": "red"}'))[0] == "invalid_args"
        assert "started" not in [row.kind for row in await gate.events()]


async def test_a_model_reads_what_the_tool_renders_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    config = {"version": 1, "default_persona": "tester", "personas": {"tester": {"phase": "observe"}}}
    async with toolgate.open(tmp_path, config, "memory") as gate:
        call = {"type": "function_call", "call_id": "b", "name": "fs_read", "arguments": '{"path": "a.py"}'}
        (told,) = await gate.tools().run_openai([call])
        assert told["output"].split("\n")[1:] == ["1\tone", "2\ttwo"]
