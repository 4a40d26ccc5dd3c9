"""Anthropic wire: `tool_use` blocks of a message, as a whole or as streamed events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.api import CUT, ApiStream, ApiWire, asked, get, listed, place_of
from toolgate.agents.wires.base import Message, Parsed, WireCall, WireError, told
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.openai import Fragments, take


class AnthropicStream(ApiStream):
    """Events of a message. Blocks are joined by their index; one that was not ended is no call."""

    def __init__(self, wire: AnthropicWire, tools: Iterable[Any] | None) -> None:
        super().__init__(Collector(tools, wire.example))
        self._blocks: dict[Any, Fragments] = {}
        self._order: list[Fragments] = []

    def message(self, message: Any) -> None:
        """A message, or its blocks."""
        alone = isinstance(message, list | tuple)
        content = message if alone else get(message, "content")
        if not alone and get(message, "type") == "tool_use":
            content = [message]
        if not alone and not self.said_by_model(message):
            return
        self.finish = "" if alone else str(get(message, "stop_reason") or "")
        if isinstance(content, str):
            self.texts.append(content)
            return
        for block in listed(content):
            kind = get(block, "type")
            if kind == "tool_use":
                take(self.collector, get(block, "id"), get(block, "name"), get(block, "input"))
            elif kind == "text":
                self.texts.append(str(get(block, "text") or ""))
            elif kind == "thinking":
                self.thoughts.append(str(get(block, "thinking") or ""))

    def event(self, event: Any) -> None:
        kind, place = get(event, "type"), place_of(get(event, "index"))
        if kind == "content_block_start":
            block = get(event, "content_block")
            if get(block, "type") == "tool_use":
                given = get(block, "input")
                begun = [json.dumps(given)] if isinstance(given, Mapping) and given else []
                self._blocks[place] = Fragments(
                    str(get(block, "id") or ""), str(get(block, "name") or ""), begun
                )
                self._order.append(self._blocks[place])
            elif get(block, "type") == "text":
                self.texts.append(str(get(block, "text") or ""))
        elif kind == "content_block_delta":
            self._delta(place, get(event, "delta"))
        elif kind == "content_block_stop" and place in self._blocks:
            self._blocks[place].complete = True
        elif kind == "message_delta":
            self.finish = str(get(get(event, "delta"), "stop_reason") or self.finish)

    def _delta(self, place: Any, delta: Any) -> None:
        kind = get(delta, "type")
        if kind == "text_delta":
            self.texts.append(str(get(delta, "text") or ""))
        elif kind == "thinking_delta":
            self.thoughts.append(str(get(delta, "thinking") or ""))
        elif kind == "input_json_delta":
            if place in self._blocks:
                self._blocks[place].arguments.append(str(get(delta, "partial_json") or ""))
            else:
                self.collector.error("Arguments came for a block that was not begun.", str(place))

    def end(self) -> None:
        for one in self._order:
            joined = "".join(one.arguments)
            if not one.complete or (not joined.strip() and self.finish in CUT):
                self.collector.error("The stream ended within the call.", joined, one.name, one.id)
                continue
            take(self.collector, one.id, one.name, joined)


class AnthropicWire(ApiWire):
    name = "anthropic"

    def stream(self, tools: Iterable[Any] | None = None) -> AnthropicStream:
        return AnthropicStream(self, tools)

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        """One message with all of them: the API wants every result right after the message that asked."""
        blocks = [_result(call.id, text, ok) for call, text, ok in answers]
        every = list(errors)
        blocks += [_result(error.id, told([error]), False) for error in every if error.id and error.name]
        if loose := [error for error in every if not (error.id and error.name)]:
            blocks.append({"type": "text", "text": told(loose)})
        return [{"role": "user", "content": blocks}] if blocks else []

    def assistant(self, parsed: Parsed) -> Message:
        blocks: list[Message] = [{"type": "text", "text": parsed.text}] if parsed.text.strip() else []
        blocks += [
            {"type": "tool_use", "id": ident, "name": name, "input": args}
            for ident, name, args in asked(parsed)
        ]
        return {"role": "assistant", "content": blocks}

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        return json.dumps({"type": "tool_use", "name": name, "input": dict(args)}, ensure_ascii=False)


def _result(ident: str, text: str, ok: bool) -> Message:
    block: Message = {"type": "tool_result", "tool_use_id": ident, "content": text}
    return block if ok else block | {"is_error": True}
