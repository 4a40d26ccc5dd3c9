"""Manifest wire: one JSON object with phase, intent, summary, tools and requires_permission, anywhere in a text.

It stands bare, inside prose, or alone in a code fence. An object that does not begin with one of those keys is text. Each
entry of `tools` is a call; what is wrong with one does not stop the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.base import SHOWN, Message, WireCall, WireError, told
from toolgate.agents.wires.lexing import NEAR, STRING, until_bracket
from toolgate.agents.wires.prose import ProseReader
from toolgate.agents.wires.strict import NOWHERE, NotStrict, decode, decode_from
from toolgate.agents.wires.xml import TextWire

KEYS = ("phase", "intent", "summary", "tools", "requires_permission")
INTENT = "tool_call"
_QUOTE = """["'“”„]"""
_BEGIN = rf"\{{(?=\s*+{_QUOTE}(?:{'|'.join(KEYS)}){_QUOTE})"
_ESCAPED = rf"\{{(?=\s*+&quot;(?:{'|'.join(KEYS)})&quot;)"
_OTHER = rf"\{{(?=\s*+(?:{STRING}\s*+(?::|\Z)|\Z))"
_STARTS = re.compile(rf"\s*+{_BEGIN}")
_HTML = re.compile(_ESCAPED)
_LISTED = re.compile(r"(?:\[|[}\]]\s*+,)\s*+\Z")
"""What stands before the values of an array."""
_FENCES = ("", "json", "manifest", "tool_call")


class ManifestGrammar:
    marks = rf"{_BEGIN}|{_ESCAPED}|{_OTHER}"

    def take(self, reader: ProseReader, start: int, mark: str, final: bool) -> int | None:
        text, collector = reader.text, reader.collector
        if _HTML.match(text, start):
            collector.error(
                "The request is HTML-escaped; write quotes as themselves.", text[start : start + 80]
            )
            return start + 1
        if not _STARTS.match(text, start):
            return self._other(reader, start, final)
        read = decode_from(text, start)
        if isinstance(read, tuple):
            whole = text[start : read[1]]
            if _LISTED.search(text, max(start - NEAR, 0), start):
                collector.error("A request stands alone, not in an array.", whole)
            else:
                self.request(reader, read[0], whole)
            return read[1]
        extent = until_bracket(text, start, final)
        if extent is None:
            return None
        self.broken(reader, text[start : extent.stop])
        return extent.stop

    def _other(self, reader: ProseReader, start: int, final: bool) -> int | None:
        """Some other object: text, with all that is in it."""
        read = decode_from(reader.text, start)
        if read is None and not final:
            return None
        if isinstance(read, tuple):
            stop = read[1]
            if _asks(read[0]) and not reader.behind(start):
                self.request(reader, read[0], reader.text[start:stop])  # that is told what is wrong with it
        elif read is None:
            stop = len(reader.text)
        elif read != NOWHERE:
            stop = max(read, start + 1)
        else:
            extent = until_bracket(reader.text, start, final)
            if extent is None:
                return None
            stop = extent.stop
        reader.say(reader.text[start:stop], code=isinstance(read, tuple))
        return stop

    def fenced(self, reader: ProseReader, info: str, text: str) -> bool:
        if info.lower() not in _FENCES or not text.lstrip().startswith("{"):
            return False
        begins = _STARTS.match(text) is not None
        try:
            value = decode(text.strip())
        except NotStrict:
            if begins:
                self.broken(reader, text.strip())
            return begins
        if not begins and not _asks(value):
            return False
        self.request(reader, value, text)
        return True

    def broken(self, reader: ProseReader, text: str) -> None:
        try:
            decode(text)
            flaw = "it ends too early"
        except NotStrict as error:
            flaw = str(error)
        reader.collector.error(f"The request is not valid JSON: {flaw}.", text)

    def request(self, reader: ProseReader, value: Any, text: str) -> None:
        collector = reader.collector
        wrong = _wrong(value)
        if wrong:
            collector.error(f"The request is wrong: {wrong}.", text)
            return
        before = len(collector.calls)
        for entry in value["tools"]:
            collector.object(entry, json.dumps(entry, ensure_ascii=False), reason=value.get("summary", ""))
        said = {key: _short(value[key]) for key in KEYS if key in value and key != "tools"}
        collector.requests.append(said | {"calls": [call.id for call in collector.calls[before:]]})


def _short(value: str | bool) -> str | bool:
    return value if isinstance(value, bool) or len(value) <= SHOWN else value[: SHOWN - 1] + "…"


def _asks(value: Any) -> bool:
    """Whether an object that does not begin like a request is meant as one."""
    return isinstance(value, dict) and value.get("intent") == INTENT and "tools" in value


def _wrong(value: Any) -> str:
    """What is wrong with a request as a whole."""
    if not isinstance(value, dict):
        return "it is no object"
    if unknown := [key for key in value if key not in KEYS]:
        return f"there is no {unknown[0][:40]!r} in a request"
    if value.get("intent") != INTENT:
        return f'"intent" must be "{INTENT}"'
    if not isinstance(value.get("tools"), list):
        return '"tools" must be an array of calls'
    if not value["tools"]:
        return '"tools" is empty'
    for key in ("phase", "summary"):
        if not isinstance(value.get(key, ""), str):
            return f'"{key}" must be a string'
    if not isinstance(value.get("requires_permission", True), bool):
        return '"requires_permission" must be true or false'
    return ""


class ManifestWire(TextWire):
    name = "manifest"

    def grammar(self) -> ManifestGrammar:
        return ManifestGrammar()

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        request = {
            "phase": "EXECUTE", "intent": INTENT, "summary": "why", "tools": [{"name": name, "args": dict(args)}],
            "requires_permission": True,
        }  # fmt: skip
        return json.dumps(request, ensure_ascii=False)

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        """One JSON object: what a tool gave is a string in it, and can end nothing."""
        listed = [
            {"id": call.id, "tool": call.name, "success": ok, "result" if ok else "error": text}
            for call, text, ok in answers
        ]
        body: dict[str, Any] = {"success": all(one["success"] for one in listed), "results": listed}
        if wrong := told(errors):
            body |= {"success": False, "message": wrong}
        return [{"role": "user", "content": json.dumps(body, ensure_ascii=False)}] if listed or wrong else []
