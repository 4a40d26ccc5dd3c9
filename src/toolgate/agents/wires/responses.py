"""OpenAI Responses wire: `function_call` items of a response, as a whole or as streamed events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.api import CUT, ApiStream, ApiWire, answered, asked, get, listed, place_of
from toolgate.agents.wires.base import Message, Parsed, WireCall, WireError
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.openai import Fragments, OpenAiWire, take


class ResponsesStream(ApiStream):
    """Events of a response. Items are joined by their place in the output, or by their id where a server sends none."""

    def __init__(self, wire: ResponsesWire, tools: Iterable[Any] | None) -> None:
        super().__init__(Collector(tools, wire.example))
        self._items: dict[Any, Fragments] = {}

    def message(self, message: Any) -> None:
        """A response, its output, or one item."""
        output = message if isinstance(message, list | tuple) else get(message, "output")
        if output is None and get(message, "type") in ("function_call", "message", "reasoning"):
            output = [message]
        self.finish = "" if isinstance(message, list | tuple) else str(get(message, "status") or "")
        for item in listed(output):
            if get(item, "type") == "function_call":
                self._take(item, get(item, "arguments"))
            else:
                self._texts(item)

    def event(self, event: Any) -> None:
        kind, place = get(event, "type"), _place(event)
        if kind == "response.output_text.delta":
            self.texts.append(str(get(event, "delta") or ""))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self.thoughts.append(str(get(event, "delta") or ""))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = get(event, "item")
            if get(item, "type") == "function_call":
                one = self._items.setdefault(place, Fragments())
                one.id, one.name = str(get(item, "call_id") or one.id), str(get(item, "name") or one.name)
                if kind.endswith("done"):
                    _ended(one, get(item, "arguments"))
        elif kind == "response.function_call_arguments.delta":
            self._items.setdefault(place, Fragments()).arguments.append(str(get(event, "delta") or ""))
        elif kind == "response.function_call_arguments.done":
            _ended(self._items.setdefault(place, Fragments()), get(event, "arguments"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self.finish = str(get(get(event, "response"), "status") or kind.rpartition(".")[2])
            if not self._items:  # a server that tells the calls at the end only
                for item in listed(get(get(event, "response"), "output")):
                    if get(item, "type") == "function_call":
                        self._take(item, get(item, "arguments"))

    def end(self) -> None:
        for place in sorted(self._items, key=lambda one: one if isinstance(one, int) else -1):
            one = self._items[place]
            joined = "".join(one.arguments)
            if not joined.strip() and (not one.complete or self.finish in CUT):
                self.collector.error(
                    "The stream ended before the arguments of the call.", "", one.name, one.id
                )
                continue
            take(self.collector, one.id, one.name, joined)

    def _take(self, item: Any, arguments: Any) -> None:
        take(self.collector, get(item, "call_id") or get(item, "id"), get(item, "name"), arguments)

    def _texts(self, item: Any) -> None:
        thinks = get(item, "type") == "reasoning"
        for part in listed(get(item, "summary" if thinks else "content")):
            text = get(part, "text") if get(part, "text") is not None else get(part, "refusal")
            if isinstance(text, str):
                (self.thoughts if thinks else self.texts).append(text)


def _place(event: Any) -> int | str | None:
    index = place_of(get(event, "output_index"))
    ident = get(event, "item_id") or get(get(event, "item"), "id")
    return index if index is not None else ident if isinstance(ident, str) else None


def _ended(one: Fragments, arguments: Any) -> None:
    """What the last event says of the arguments counts; where it says nothing, what came before does."""
    one.complete = True
    if isinstance(arguments, str) and arguments.strip():
        one.arguments = [arguments]


class ResponsesWire(ApiWire):
    name = "openai-responses"

    def stream(self, tools: Iterable[Any] | None = None) -> ResponsesStream:
        return ResponsesStream(self, tools)

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        texts, loose = answered(answers, errors)
        made: list[Message] = [
            {"type": "function_call_output", "call_id": ident, "output": text} for ident, text in texts
        ]
        return [*made, {"role": "user", "content": loose}] if loose else made

    def assistant(self, parsed: Parsed) -> Message:
        """The items of the answer; `output` is to be put into the next request's input."""
        items: list[Message] = [{"role": "assistant", "content": parsed.text}] if parsed.text else []
        items += [
            {"type": "function_call", "call_id": ident, "name": name, "arguments": json.dumps(args, ensure_ascii=False)}
            for ident, name, args in asked(parsed)
        ]  # fmt: skip
        return {"output": items}

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        return OpenAiWire().example(name, args)
