"""OpenAI chat wire: `tool_calls` of a chat completion, as a message or as streamed deltas.

Deltas are joined by their index, as the protocol says; by their id where a server sends none. Arguments are a JSON text,
read strictly once it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgate.agents.wires.api import CUT, ApiStream, ApiWire, answered, asked, get, listed, nothing, place_of
from toolgate.agents.wires.base import Message, Parsed, WireCall, WireError
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.strict import NotStrict, decode


@dataclass(slots=True)
class Fragments:
    """One call that is arriving."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    complete: bool = False


class OpenAiStream(ApiStream):
    """Chunks of a chat completion: objects of the SDK, dictionaries, or the bytes of the HTTP stream as text."""

    def __init__(self, wire: OpenAiWire, tools: Iterable[Any] | None) -> None:
        super().__init__(Collector(tools, wire.example))
        self._open: dict[Any, Fragments] = {}
        self._order: list[Fragments] = []
        self._last: Fragments | None = None
        self._old = False
        self._responses: ApiStream | None = None

    def _as_response(self) -> ApiStream:
        """The same API's other protocol, told by its shapes: what is read goes to the same places."""
        if self._responses is None:
            from toolgate.agents.wires.responses import ResponsesStream, ResponsesWire

            self._responses = ResponsesStream(ResponsesWire(), None)
            self._responses.collector, self._responses.texts = self.collector, self.texts
            self._responses.thoughts = self.thoughts
        return self._responses

    def message(self, message: Any) -> None:
        """A whole message, a whole completion, or the list of its calls."""
        choices = get(message, "choices")
        if isinstance(choices, list | tuple):
            if not choices:
                return
            self.finish = str(get(choices[0], "finish_reason") or "")
            message = get(choices[0], "message") or {}
        alone = isinstance(message, list | tuple)
        if _is_response(message):
            self._as_response().message(message)
            return
        if not alone and not self.said_by_model(message):
            return
        if _is_function(message):
            self.take(get(message, "id"), get(message, "name"), get(message, "arguments"))
            return
        calls = message if alone else get(message, "tool_calls")
        if not alone and calls is None and get(message, "function") is not None:
            calls = [message]
        if not alone:
            self._texts(message)
        self._old_form(message)
        for call in listed(calls):
            function = get(call, "function")
            if function is None:
                self.collector.error("An entry of `tool_calls` has no `function`.", repr(call))
                continue
            self.take(get(call, "id"), get(function, "name"), get(function, "arguments"))

    def event(self, event: Any) -> None:
        if str(get(event, "type") or "").startswith("response."):
            self._as_response().event(event)
            return
        for choice in listed(get(event, "choices")):
            if get(choice, "index") not in (None, 0):
                continue
            self.finish = str(get(choice, "finish_reason") or self.finish)
            delta = get(choice, "delta")
            if delta is None:
                if get(choice, "message") is not None:
                    self.message({"choices": [choice]})
                continue
            self._texts(delta)
            self._old_form(delta)
            for part in listed(get(delta, "tool_calls")):
                self._part(part)

    def _old_form(self, message: Any) -> None:
        if get(message, "function_call") is not None and not self._old:
            self._old = True  # once, not for each delta
            self.collector.error("`function_call` is the old form of a call; use `tool_calls`.")

    def _texts(self, message: Any) -> None:
        content = get(message, "content")
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list | tuple):
            self.texts += [text for one in content if isinstance(text := get(one, "text"), str)]
        refusal = get(message, "refusal")
        if isinstance(refusal, str):
            self.texts.append(refusal)
        thought = get(message, "reasoning_content") or get(message, "reasoning")
        if isinstance(thought, str):
            self.thoughts.append(thought)

    def _part(self, part: Any) -> None:
        index, ident = place_of(get(part, "index")), str(get(part, "id") or "")
        function = get(part, "function")
        name, arguments = get(function, "name") or "", get(function, "arguments")
        place = ("index", index) if index is not None else ("id", ident) if ident else None
        one = self._open.get(place) if place is not None else self._last
        if one is None or (ident and name and one.id and one.id != ident):
            one = (
                Fragments()
            )  # some servers number all of them 0: another id with another name is another call
            self._order.append(one)
            if place is not None:
                self._open[place] = one
        self._last = one
        one.id = one.id or str(ident)
        if name and name != one.name:
            one.name += str(name)
        if isinstance(arguments, str):
            one.arguments.append(arguments)
        elif arguments is not None:
            one.arguments.append(json.dumps(arguments, default=str))

    def end(self) -> None:
        if self._responses is not None:
            self._responses.end()
            self.finish = self.finish or self._responses.finish
        strays = any(not one.name for one in self._order)
        for one in self._order:
            joined = "".join(one.arguments)
            if one.name and not joined.strip() and (flaw := self._lost(strays)):
                self.collector.error(flaw, "", one.name, one.id)
            else:
                self.take(one.id, one.name, joined)

    def _lost(self, strays: bool) -> str:
        """Why a call without arguments may have had some: it is not run then."""
        if not self.finish or self.finish in CUT:
            return "The stream ended before the arguments of the call."
        return "It cannot be told whose the arguments without a name are." if strays else ""

    def take(self, ident: Any, name: Any, arguments: Any) -> None:
        take(self.collector, ident, name, arguments)


def _is_response(message: Any) -> bool:
    items = message if isinstance(message, list | tuple) else get(message, "output")
    first = items[0] if isinstance(items, list | tuple) and items else message
    return get(first, "type") in ("function_call", "reasoning") or isinstance(get(message, "output"), list)


def _is_function(message: Any) -> bool:
    """One call without anything around it, as the examples of this wire are."""
    return (
        isinstance(get(message, "name"), str)
        and isinstance(get(message, "arguments"), str | Mapping)
        and get(message, "content") is None
        and get(message, "tool_calls") is None
    )


def take(collector: Collector, ident: Any, name: Any, arguments: Any) -> None:
    """A call of an API: its arguments are a JSON text, or an object already."""
    ident = ident if isinstance(ident, str) else ""
    if not isinstance(name, str) or not name:
        collector.error("The call has no name.", str(arguments), "", ident)
        return
    if isinstance(arguments, str) and arguments.strip():
        try:
            arguments_read = decode(arguments)
        except NotStrict as error:
            collector.error(
                f"The arguments of {name[:80]} are not valid JSON: {error}.", arguments, name, ident
            )
            return
    else:
        arguments_read = {} if nothing(arguments) else plain(arguments)
    text = arguments if isinstance(arguments, str) else str(arguments)
    collector.call(ident, name, arguments_read, text)


def plain(arguments: Any) -> Any:
    """Arguments that some library has read already, once more as strict JSON: it may have been less strict."""
    try:
        return decode(json.dumps(arguments, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        return None


class OpenAiWire(ApiWire):
    name = "openai"

    def stream(self, tools: Iterable[Any] | None = None) -> OpenAiStream:
        return OpenAiStream(self, tools)

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        texts, loose = answered(answers, errors)
        made: list[Message] = [
            {"role": "tool", "tool_call_id": ident, "content": text} for ident, text in texts
        ]
        return [*made, {"role": "user", "content": loose}] if loose else made

    def assistant(self, parsed: Parsed) -> Message:
        message: Message = {"role": "assistant", "content": parsed.text or None}
        calls = [
            {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}}
            for ident, name, args in asked(parsed)
        ]  # fmt: skip
        return message | ({"tool_calls": calls} if calls else {})

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        return json.dumps(
            {"name": name, "arguments": json.dumps(dict(args), ensure_ascii=False)}, ensure_ascii=False
        )
