"""Collector of one message: objects that ask for calls become calls or errors, in the order they stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolgate.agents.wires.base import MOST_CALLS, MOST_ERRORS, SHOWN, Parsed, WireCall, WireError, numbered
from toolgate.agents.wires.checking import OfferedTools, misfit
from toolgate.agents.wires.strict import NotStrict, decode

NAMES = ("name", "tool")
ARGUMENTS = ("args", "arguments", "params", "parameters", "input")
Example = Callable[[str, Mapping[str, Any]], str]


class Collector:
    """Checks what a wire has found, and keeps it. Only what fits without a doubt becomes a call."""

    def __init__(self, tools: Iterable[Any] | None, example: Example) -> None:
        self.offer = OfferedTools(tools)
        self.calls: list[WireCall] = []
        self.errors: list[WireError] = []
        self.requests: list[dict[str, Any]] = []
        self._example = example
        self._untold = 0

    def example(self, name: str = "") -> str:
        return self._example(*self.offer.shortest(name))

    def error(self, message: str, text: str = "", name: str = "", ident: str = "") -> None:
        if len(self.errors) >= MOST_ERRORS:
            self._untold += 1
            return
        shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        self.errors.append(WireError(message, self.example(name), shown, ident, name))

    def body(self, text: str, *, whole: str = "") -> None:
        """One call as a JSON text of its own."""
        try:
            value = decode(text)
        except NotStrict as error:
            self.error(f"The call is not valid JSON: {error}.", whole or text)
            return
        self.object(value, whole or text)

    def object(self, value: Any, text: str, *, reason: str = "") -> None:
        """One call as an object with a name and arguments."""
        if not isinstance(value, dict):
            self.error("A call is one JSON object with a name and args.", text)
            return
        names = [key for key in NAMES if key in value]
        arguments = [key for key in ARGUMENTS if key in value]
        name = value[names[0]] if len(names) == 1 else None
        if not isinstance(name, str) or not name:
            self.error('A call has one "name", which is a string.', text)
            return
        if len(arguments) > 1:
            self.error(
                f"The call of {name[:80]} has its arguments twice: {', '.join(arguments)}.", text, name
            )
            return
        unknown = [key for key in value if key not in (*names, *arguments, "id", "reason", "type")]
        if unknown or value.get("type", "function") not in ("function", "tool_call", "tool_use"):
            stray = ", ".join(repr(key[:40]) for key in unknown[:5]) or "its type"
            self.error(
                f'The call of {name[:80]} has {stray} beside "args"; arguments belong into "args".',
                text,
                name,
            )
            return
        given = value[arguments[0]] if arguments else {}
        ident, why = value.get("id", ""), value.get("reason", reason)
        if not isinstance(ident, str) or not isinstance(why, str):
            self.error(f'"id" and "reason" of the call of {name[:80]} are strings.', text, name)
            return
        self.call(ident[:200], name, given, text, reason=why)

    def call(self, ident: str, name: str, args: Any, text: str, *, reason: str = "") -> None:
        """One call with its parts known."""
        if not isinstance(args, dict):
            self.error(f"The arguments of {name[:80]} are not a JSON object.", text, name, ident)
            return
        if ident and any(one.id == ident for one in self.calls):
            self.error(f"Two calls have the id {ident[:80]!r}; only the first runs.", text, name)
            return
        if len(self.calls) >= MOST_CALLS:
            self.error(f"One message may ask for {MOST_CALLS} calls at most.", text, name, ident)
            return
        tool = self.offer.find(name)
        if tool is None and self.offer.tools:
            near = self.offer.near(name)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            self.error(f"There is no tool {name[:80]!r}.{hint}", text, name, ident)
            return
        wrong = misfit(tool, args) if tool is not None else ""
        if wrong:
            self.error(
                f"The arguments of {tool.name if tool else name} do not fit: {wrong}.", text, name, ident
            )
            return
        ident = numbered(ident, (one.id for one in self.calls), len(self.calls))
        self.calls.append(WireCall(ident, tool.name if tool else name, args, reason))

    def parsed(self, **more: Any) -> Parsed:
        errors = list(self.errors)
        if self._untold:
            errors.append(WireError(f"{self._untold:,} more things in this message are wrong."))
        return Parsed(calls=list(self.calls), errors=errors, requests=list(self.requests), **more)
