"""Pydantic AI adapter: `Agent(model, toolsets=[toolset(gate, "reviewer")])`. Every call passes the gate.

Arguments that do not fit are a retry of the model's; a refusal is a result, so that the agent goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgate.agents.adapters.calling import AdaptedTool, GateLike, adapted, missing

if TYPE_CHECKING:
    from pydantic_ai import Tool
    from pydantic_ai.toolsets import FunctionToolset


def toolset(gate: GateLike, persona: str | None = None, *, conversation: str = "") -> FunctionToolset[Any]:
    """The persona's tools as one toolset. Calls of one message run one after the other, as they were asked for."""
    try:
        from pydantic_ai.toolsets import FunctionToolset
    except ImportError:
        raise missing("pydantic-ai-slim") from None
    return FunctionToolset(tools(gate, persona, conversation=conversation), id="toolgate", sequential=True)


def tools(gate: GateLike, persona: str | None = None, *, conversation: str = "") -> list[Tool[Any]]:
    """The persona's tools one by one."""
    return [_tool(one) for one in adapted(gate, persona, conversation)]


def _tool(one: AdaptedTool) -> Tool[Any]:
    try:
        from pydantic_ai import ModelRetry, Tool
    except ImportError:
        raise missing("pydantic-ai-slim") from None

    async def call(**args: Any) -> str:
        text, _, again = await one.run(args)
        if again:
            raise ModelRetry(text)
        return text

    return Tool.from_schema(call, one.name, one.description, one.schema, sequential=True)
