"""XML wire: `<tool_call>{"name": …, "args": {…}}</tool_call>` in a model's text.

What stands in code, quotations, thinking or tool results is text. A call is exactly one strict JSON object between the
two tags. Results come back as `<tool_result>`; what a tool gave cannot end that envelope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.base import Message, Parsed, WireCall, WireError, WireFormat, told
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.lexing import until_tag
from toolgate.agents.wires.prose import ProseReader

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_ENVELOPE = r"[ \t]*/?[ \t]*(?:tool_calls?|tool_results?|tool_response|function_results|think|thinking)\b"
_FORGED = re.compile(
    rf"<(?={_ENVELOPE}|/?(?:function|invoke|parameter)\b|\|[A-Za-z_][\w. -]*\|>)|&(?=(?:amp;)*lt;{_ENVELOPE})",
    re.IGNORECASE,
)


class XmlGrammar:
    marks = (
        r"<(?:/?tool_call>|[ \t]*/?[ \t]*(?i:tool[_-]?call)(?:[ \t/][^<>\n]*)?>)"
        r"|&(?:amp;)*lt;/?tool_call(?:&(?:amp;)*gt;|>)"
    )

    def take(self, reader: ProseReader, start: int, mark: str, final: bool) -> int | None:
        text, collector = reader.text, reader.collector
        after = start + len(mark)
        if mark == CLOSE:
            collector.error(f"There is a {CLOSE} without {OPEN}.", mark)
            return after
        if mark.startswith("&"):
            collector.error("The call is HTML-escaped; write < and > as themselves.", mark)
            return after
        if mark != OPEN:
            collector.error(f"{mark[:80]} is not a call; write exactly {OPEN}, without attributes.", mark)
            return after
        extent = until_tag(text, after, final, OPEN, CLOSE)
        if extent is None:
            return None
        whole = text[start : extent.stop]
        if extent.flaw:
            collector.error(f"The call is not complete: {extent.flaw}.", whole)
        else:
            collector.body(text[after : extent.end], whole=whole)
        return extent.stop

    def fenced(self, reader: ProseReader, info: str, text: str) -> bool:
        return False


class TextWire(WireFormat):
    """What all wires that speak in text have in common."""

    def grammar(self) -> Any:
        raise NotImplementedError

    def stream(self, tools: Iterable[Any] | None = None) -> ProseReader:
        return ProseReader(self.grammar(), Collector(tools, self.example))

    def parse(self, message: Any, tools: Iterable[Any] | None = None) -> Parsed:
        reader = self.stream(tools)
        reader.feed(content_of(message))
        return reader.close()

    def assistant(self, parsed: Parsed) -> Message:
        return {"role": "assistant", "content": parsed.raw if isinstance(parsed.raw, str) else parsed.text}


class XmlWire(TextWire):
    name = "xml"

    def grammar(self) -> XmlGrammar:
        return XmlGrammar()

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        return f"{OPEN}{json.dumps({'name': name, 'args': dict(args)}, ensure_ascii=False)}{CLOSE}"

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        parts = [envelope(call.id, call.name, text, ok) for call, text, ok in answers]
        if wrong := told(errors):
            parts.append(envelope("", "", wrong, False))
        return [{"role": "user", "content": "\n".join(parts)}] if parts else []


def envelope(ident: str, name: str, text: str, ok: bool) -> str:
    """A result as the model reads it."""
    shown = "".join(
        f' {key}="{_attribute(value)}"' for key, value in (("id", ident), ("name", name)) if value
    )
    return f'<tool_result{shown} ok="{"true" if ok else "false"}">\n{contained(text)}\n</tool_result>'


def contained(text: str) -> str:
    """A tool's output that can pose as nothing else. Only what would begin or end an envelope is escaped, so that code
    stays as it is; an escape that was there before is escaped once more, so that no two outputs look alike."""
    return _FORGED.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text)


def content_of(message: Any) -> str:
    """The text of a message: itself, or the `content` of an API's."""
    if isinstance(message, str):
        return message
    content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", None)
    if isinstance(content, list):
        texts = [
            one.get("text") if isinstance(one, Mapping) else getattr(one, "text", None) for one in content
        ]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _attribute(value: str) -> str:
    return "".join(char if char.isalnum() or char in "._-:/" else "_" for char in value[:200])
