"""Calls of adapters: whatever framework asks, the call passes the gate and comes back as text that a model reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.agents.wires.base import as_told
from toolgate.core.errors import Code, Unavailable
from toolgate.core.functions import wire_names

if TYPE_CHECKING:
    from toolgate.core.functions import ToolSpec, ToolSpecs
    from toolgate.core.result import Result


class GateLike(Protocol):
    """What an adapter needs of a gate."""

    def tools(self, persona: str | None = None) -> ToolSpecs: ...
    async def call(self, tool: str, args: Mapping[str, Any] | None = None, **more: Any) -> Result: ...
    def rendered(self, result: Result, args: Mapping[str, Any]) -> str: ...


class AdaptedTool:
    """One tool of the gate for one persona."""

    def __init__(
        self, gate: GateLike, spec: ToolSpec, name: str, persona: str | None, conversation: str
    ) -> None:
        self._gate, self._spec, self._persona, self._conversation = gate, spec, persona, conversation
        self.name = name
        """As function-calling APIs allow it: without dots."""
        self.description = spec.description
        self.schema = spec.input_schema

    async def run(self, args: Mapping[str, Any]) -> tuple[str, bool, bool]:
        """What the model is told, whether it worked, and whether the model should try again with other arguments."""
        result = await self._gate.call(
            self._spec.name, dict(args), persona=self._persona, conversation=self._conversation
        )
        again = result.error is not None and result.error.code is Code.INVALID_ARGS
        return as_told(result, self._gate.rendered(result, dict(args))), result.ok, again


def adapted(gate: GateLike, persona: str | None, conversation: str) -> list[AdaptedTool]:
    """Every tool that policy lets the persona see."""
    specs = gate.tools(persona)
    names = wire_names(spec.name for spec in specs)
    return [AdaptedTool(gate, spec, names[spec.name], persona, conversation) for spec in specs]


def missing(package: str) -> Unavailable:
    return Unavailable(f"{package} is not installed", f"pip install {package}")
