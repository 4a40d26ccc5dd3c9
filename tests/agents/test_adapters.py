"""Adapters against the real packages: their models call, the gate decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from agents.world import CART, Witness, world
from toolgate.agents.adapters import langchain, pydantic_ai

PERSONAS = {"ada": {"phase": "observe", "allow": ["t.look"], "deny": ["t.act"]}}


def asks_for(*calls: tuple[str, Any]) -> FunctionModel:
    """A model that makes these calls, one a round, and then says what it was told last."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done < len(calls):
            return ModelResponse(parts=[ToolCallPart(*calls[done])])
        return ModelResponse(parts=[TextPart(str(getattr(messages[-1].parts[0], "content", "")))])

    return FunctionModel(answer)


async def test_a_pydantic_ai_agent_reads_through_the_gate(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    async with world([], tmp_path, personas=PERSONAS) as (gate, _):
        agent = Agent(
            asks_for(("code_read", {"path": "cart.py"})),
            toolsets=[pydantic_ai.toolset(gate, "ada", conversation="talk")],
        )
        result = await agent.run("read it")
        rows = [row for row in await gate.events() if row.kind == "committed"]
    assert "def total" in result.output
    assert [(row.tool, row.persona, row.conversation) for row in rows] == [("code.read", "ada", "talk")]


async def test_a_refusal_is_a_result_and_wrong_arguments_are_a_retry(tmp_path: Path) -> None:
    witness = Witness()
    async with world([], tmp_path, personas=PERSONAS, witness=witness) as (gate, _):
        rules = asks_for(("code_read", {"path": "../../etc/passwd"}))
        refused = await Agent(rules, toolsets=[pydantic_ai.toolset(gate, "ada")]).run("go")
        model = asks_for(("t_look", {"y": 1}), ("t_look", {"x": "right"}))
        mended = await Agent(model, toolsets=[pydantic_ai.toolset(gate, "ada")]).run("go")
    assert "outside_mount" in refused.output or "outside" in refused.output
    assert mended.output == "seen right"
    assert witness.ran == ["look right"]


async def test_only_the_personas_tools_are_offered_and_the_test_model_calls_each(tmp_path: Path) -> None:
    witness = Witness()
    async with world([], tmp_path, personas=PERSONAS, witness=witness) as (gate, _):
        model = TestModel(call_tools=["t_look"])
        await Agent(model, toolsets=[pydantic_ai.toolset(gate, "ada")]).run("go")
        assert model.last_model_request_parameters is not None
        offered = {one.name for one in model.last_model_request_parameters.function_tools}
        expected = {spec.name.replace(".", "_") for spec in gate.tools("ada")}
    assert offered == expected
    assert "t_act" not in offered
    assert len(witness.ran) == 1


async def test_langchain_tools_run_through_the_gate(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    async with world([], tmp_path, personas=PERSONAS) as (gate, _):
        made = {one.name: one for one in langchain.tools(gate, "ada")}
        asked = AIMessage("", tool_calls=[ToolCall(name="code_read", args={"path": "cart.py"}, id="1"), ToolCall(name="code_read", args={"path": "../x"}, id="2")])  # fmt: skip
        good, bad = [
            await made[call["name"]].ainvoke({**call, "type": "tool_call"}) for call in asked.tool_calls
        ]
        kinds = [row.kind for row in await gate.events() if row.tool == "code.read"]
    assert "def total" in good.content
    assert (good.status, good.tool_call_id) == ("success", "1")
    assert (bad.status, bad.tool_call_id) == ("error", "2")
    assert "outside" in bad.content
    assert "committed" in kinds
    assert "t_act" not in made


async def test_what_is_forbidden_is_denied_by_its_creator_even_if_it_was_not_offered(tmp_path: Path) -> None:
    rules = [{"tools": ["t.look"], "when": {"args": {"x": "no"}}, "decision": "deny", "reason": "not that"}]
    witness = Witness()
    async with world([], tmp_path, personas=PERSONAS, witness=witness, policy={"rules": rules}) as (gate, _):
        look = next(one for one in langchain.tools(gate, "ada") if one.name == "t_look")
        told = await look.ainvoke({"x": "no"})
    assert told.startswith("Access denied by creator.")
    assert "not that" in told
    assert witness.ran == []


def test_the_adapters_say_which_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pydantic_ai.toolsets", None)
    with pytest.raises(Exception, match="pydantic-ai-slim is not installed"):
        pydantic_ai.toolset(None)  # type: ignore[arg-type]
