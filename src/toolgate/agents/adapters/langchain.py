"""LangChain adapter: `model.bind_tools(tools(gate, "reviewer"))`, or the `tools` of an agent. Every call passes the gate.

A refusal or a failure is the tool's message with status `error`, so that the agent goes on. Tools are asynchronous only:
a gate lives on one event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgate.agents.adapters.calling import AdaptedTool, GateLike, adapted, missing

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def tools(gate: GateLike, persona: str | None = None, *, conversation: str = "") -> list[BaseTool]:
    """The persona's tools."""
    return [_tool(one) for one in adapted(gate, persona, conversation)]


def _tool(one: AdaptedTool) -> BaseTool:
    try:
        from langchain_core.tools import StructuredTool, ToolException
    except ImportError:
        raise missing("langchain-core") from None

    async def call(**args: Any) -> str:
        text, ok, _ = await one.run(args)
        if not ok:
            raise ToolException(text)
        return text

    return StructuredTool.from_function(
        coroutine=call, name=one.name, description=one.description, args_schema=one.schema, infer_schema=False,
        handle_tool_error=True,
    )  # fmt: skip
