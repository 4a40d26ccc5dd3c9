"""Tools as a model's host needs to know them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core import functions
from toolgate.core.records import dataclass
from toolgate.core.result import Result

if TYPE_CHECKING:
    from toolgate.core.decision import Decision
    from toolgate.core.tool import Tool

Run = Callable[..., Awaitable[list[Result]]]
"""Several calls through the gate, in order: `Gate.calls` for one persona."""
Render = Callable[[Result, Mapping[str, Any]], str | None]
"""A result as its tool says that models read it; None where it does not say."""


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
        from dataclasses import asdict

        return asdict(self)


class ToolSpecs(tuple[ToolSpec, ...]):
    """The list `gate.tools()` gives. It knows how function-calling APIs spell it, and makes the calls they ask for."""

    _run: Run | None = None
    _render: Render | None = None

    def as_openai(self) -> list[dict[str, Any]]:
        """For the `tools` of an OpenAI-compatible API."""
        names = self._names()
        return [
            {
                "type": "function",
                "function": {
                    "name": names[spec.name],
                    "description": spec.description,
                    "parameters": spec.input_schema,
                },
            }
            for spec in self
        ]

    def as_anthropic(self) -> list[dict[str, Any]]:
        """For the `tools` of Anthropic's API."""
        names = self._names()
        return [
            {"name": names[spec.name], "description": spec.description, "input_schema": spec.input_schema}
            for spec in self
        ]

    async def run_openai(self, calls: Iterable[Any] | None, **more: Any) -> list[dict[str, Any]]:
        """Make the calls of `message.tool_calls` (or of the Responses API's `output`); the messages to answer with.

        They run in order. A refusal is a result like any other, and stops the rest. `more` goes to `gate.calls`:
        conversation, reason, wait.
        """
        wanted = functions.from_openai(calls)
        results = await self._carry(wanted, more)
        return [
            functions.to_openai(call, result, self._text(call, result))
            for call, result in zip(wanted, results, strict=True)
        ]

    async def run_anthropic(self, content: Iterable[Any] | None, **more: Any) -> dict[str, Any]:
        """Make the calls of the `tool_use` blocks in `message.content`; the one message to answer with."""
        wanted = functions.from_anthropic(content)
        results = await self._carry(wanted, more)
        blocks = [
            functions.to_anthropic(call, result, self._text(call, result))
            for call, result in zip(wanted, results, strict=True)
        ]
        return {"role": "user", "content": blocks}

    async def _carry(self, wanted: list[functions.RequestedCall], more: dict[str, Any]) -> list[Result]:
        if self._run is None:
            raise TypeError("this list of tools belongs to no gate")
        back = {short: name for name, short in self._names().items()}
        requests = [(back.get(call.name, call.name), call.args) for call in wanted]
        results = await self._run(requests, **more)
        return [functions.explained(call, result) for call, result in zip(wanted, results, strict=True)]

    def _text(self, call: functions.RequestedCall, result: Result) -> str:
        """As the tool's feature renders it for models, else as JSON."""
        args = call.args if isinstance(call.args, dict) else {}
        told = self._render(result, args) if self._render is not None and result.ok else None
        return functions.text_of(result) if told is None else told

    def _names(self) -> dict[str, str]:
        return functions.wire_names(spec.name for spec in self)

    @classmethod
    def of(
        cls, tools: Iterable[tuple[Tool, Decision]], run: Run | None = None, render: Render | None = None
    ) -> ToolSpecs:
        made = cls(
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
        made._run, made._render = run, render
        return made
