"""Function calling: tools, calls and results as those APIs spell them. No gate and no I/O: only translation.

They allow no dots in names and at most 64 characters, so a list of tools has names of its own, and leads back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import sha256
from toolgate.core.display import encodable
from toolgate.core.errors import Code
from toolgate.core.records import dataclass, replace
from toolgate.core.result import Problem, Result

if TYPE_CHECKING:
    from toolgate.core.decision import Decision
    from toolgate.core.tool import Tool

MAX_FUNCTION_NAME = 64


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One call that a model asked for. `flaw` says why its arguments could not be read."""

    id: str
    name: str
    args: Any
    flaw: str = ""
    item: bool = False
    """Whether it is an item of the Responses API rather than a part of a chat message."""


def wire_names(names: Iterable[str], leads: Callable[[str, str], bool] | None = None) -> dict[str, str]:
    """Tool → the name an API gets. Two tools never share one. `leads` says whether such a name leads to that tool: one
    that is another's by some other rule is not taken."""
    joined = {name: name.replace(".", "_") for name in names}
    shared = Counter(joined.values())
    return {
        name: short
        if shared[short] == 1 and len(short) <= MAX_FUNCTION_NAME and (leads is None or leads(short, name))
        else f"{short[:51]}_{_mark(name)}"
        for name, short in joined.items()
    }


def _mark(name: str) -> str:
    return sha256(name).removeprefix("sha256:")[:12]


def from_openai(calls: Iterable[Any] | None) -> list[RequestedCall]:
    """`message.tool_calls` of a chat completion, or `response.output` of the Responses API; objects or dictionaries."""
    found = []
    for call in calls or ():
        function = _get(call, "function")
        if function is not None:
            found.append(_wanted(_get(call, "id"), _get(function, "name"), _get(function, "arguments")))
        elif _get(call, "type") == "function_call":
            made = _wanted(_get(call, "call_id"), _get(call, "name"), _get(call, "arguments"))
            found.append(replace(made, item=True))
    return found


def from_anthropic(content: Iterable[Any] | None) -> list[RequestedCall]:
    """`message.content`: the blocks that ask for a tool; text is left alone."""
    blocks = [block for block in content or () if _get(block, "type") == "tool_use"]
    return [_wanted(_get(block, "id"), _get(block, "name"), _get(block, "input")) for block in blocks]


def to_openai(call: RequestedCall, result: Result, text: str) -> dict[str, Any]:
    if call.item:
        return {"type": "function_call_output", "call_id": call.id, "output": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def to_anthropic(call: RequestedCall, result: Result, text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
    return block if result.error is None else block | {"is_error": True}


def text_of(result: Result) -> str:
    """What the model reads where nobody says how: the data, or the error with what to do about it."""
    if result.error is not None:
        problem = {"code": result.error.code.value, "message": result.error.message, "fix": result.error.fix}
        return json.dumps({"error": problem} | ({"data": result.data} if result.data else {}), default=str)
    if isinstance(result.data, str):
        return encodable(result.data)
    return encodable(json.dumps(result.data, ensure_ascii=False, default=str))


def explained(call: RequestedCall, result: Result) -> Result:
    """The gate saw something that is no object; the model is told what it misspelled."""
    if not call.flaw or result.error is None or result.error.code is not Code.INVALID_ARGS:
        return result
    fix = "repeat the call with its arguments as one JSON object"
    return replace(result, error=Problem(Code.INVALID_ARGS, f"the arguments are not JSON: {call.flaw}", fix))


def _wanted(ident: Any, name: Any, args: Any) -> RequestedCall:
    ident = ident if isinstance(ident, str) else ""
    if not isinstance(args, str):
        return RequestedCall(ident, name, {} if args is None else args)
    try:
        return RequestedCall(ident, name, json.loads(args) if args.strip() else {})
    except (ValueError, RecursionError) as error:
        return RequestedCall(ident, name, args, str(error)[:200] or "nested too deeply")


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


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
        wanted = from_openai(calls)
        results = await self._carry(wanted, more)
        return [
            to_openai(call, result, self._text(call, result))
            for call, result in zip(wanted, results, strict=True)
        ]

    async def run_anthropic(self, content: Iterable[Any] | None, **more: Any) -> dict[str, Any]:
        """Make the calls of the `tool_use` blocks in `message.content`; the one message to answer with."""
        wanted = from_anthropic(content)
        results = await self._carry(wanted, more)
        blocks = [
            to_anthropic(call, result, self._text(call, result))
            for call, result in zip(wanted, results, strict=True)
        ]
        return {"role": "user", "content": blocks}

    async def _carry(self, wanted: list[RequestedCall], more: dict[str, Any]) -> list[Result]:
        if self._run is None:
            raise TypeError("this list of tools belongs to no gate")
        back = {short: name for name, short in self._names().items()}
        requests = [(back.get(call.name, call.name), call.args) for call in wanted]
        results = await self._run(requests, **more)
        return [explained(call, result) for call, result in zip(wanted, results, strict=True)]

    def _text(self, call: RequestedCall, result: Result) -> str:
        """As the tool's feature renders it for models, else as JSON."""
        args = call.args if isinstance(call.args, dict) else {}
        told = self._render(result, args) if self._render is not None and result.ok else None
        return text_of(result) if told is None else told

    def _names(self) -> dict[str, str]:
        return wire_names(spec.name for spec in self)

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
