"""Tools as a model's host needs to know them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from toolgate.core.decision import Decision
from toolgate.core.tool import Tool


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    effects: dict[str, list[str]]
    risk: str
    decision: str
    """What policy says before any arguments are known: `allow` or `ask`."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class ToolSpecs(tuple[ToolSpec, ...]):
    """The list `gate.tools()` gives."""

    __slots__ = ()

    def as_openai(self) -> list[dict[str, Any]]:
        """For the `tools` of an OpenAI-compatible API; the joined names resolve at the gate."""
        return [
            {
                "type": "function",
                "function": {
                    "name": spec.name.replace(".", "_"),
                    "description": spec.description,
                    "parameters": spec.input_schema,
                },
            }
            for spec in self
        ]

    def as_anthropic(self) -> list[dict[str, Any]]:
        """For the `tools` of Anthropic's API; the joined names resolve at the gate."""
        return [
            {
                "name": spec.name.replace(".", "_"),
                "description": spec.description,
                "input_schema": spec.input_schema,
            }
            for spec in self
        ]

    @classmethod
    def of(cls, tools: Iterable[tuple[Tool, Decision]]) -> ToolSpecs:
        return cls(
            ToolSpec(
                tool.name,
                tool.description,
                tool.input_schema,
                tool.output_schema,
                {"reads": list(tool.effects.reads), "writes": list(tool.effects.writes)},
                tool.risk,
                decision.verdict.value,
            )
            for tool, decision in tools
        )
