"""`tools.list` and `tools.help`: what there is and how to call it. They need no permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.decision import Decision
from toolgate.core.names import Registry
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext

Family = Annotated[str, Field(max_length=256, description="Only tools of this family, such as `fs`.")]
Everything = Annotated[bool, Field(description="Also those that policy refuses, or that cannot work here.")]
Name = Annotated[str, Field(max_length=256, description="The tool's name, such as `code.read`.")]


def tools(context: FeatureContext) -> list[Tool]:
    services = context.services
    return toolset(services.registry, lambda who, tool: services.rules().outlook(who, tool))


def toolset(registry: Registry, standing: Callable[[str, Tool], Decision]) -> list[Tool]:
    """`standing` says what a persona may expect of a tool, before any arguments are known."""

    @tool("tools.list", reads=["tools"], free=True)
    def list_tools(ctx: Context, family: Family = "", all: Everything = False) -> list[dict[str, Any]]:  # noqa: A002
        """List the tools with their effects and what policy would say. `all` includes refused ones."""
        rows = []
        for each in registry:
            if family and not each.name.startswith(family.rstrip(".") + "."):
                continue
            decision = standing(ctx.persona, each)
            if all or (decision.verdict != "deny" and each.listed):
                rows.append(
                    {
                        "name": each.name,
                        "summary": each.description.partition("\n")[0],
                        "reads": list(each.effects.reads),
                        "writes": list(each.effects.writes),
                        "risk": each.risk,
                        "decision": decision.verdict.value,
                    }
                )
        return rows

    @tool("tools.help", reads=["tools"], free=True, also={"name": "tool_id"})
    def help_tool(ctx: Context, name: Name) -> dict[str, Any]:
        """Describe one tool: its arguments, result, effects, and what policy would say."""
        found = registry.resolve(name)
        decision = standing(ctx.persona, found)
        return found.describe() | {
            "decision": decision.verdict.value,
            "reason": decision.reason,
            "rule": decision.rule,
        }

    return [list_tools, help_tool]
