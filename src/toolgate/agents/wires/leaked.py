"""Leaked wire: calls that a local model's server handed over as text. It is used only where somebody chose it.

Taken are a JSON object, several of them or an array of them, that stand alone on their lines or alone in `<tool_call>`; and
one `<function=…>` or `<invoke name=…>`. Those have no escaping, so that what an argument says could pose as a second call:
more than one of them in a message is an error. Only tools that were offered are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.base import Message, WireCall, WireError
from toolgate.agents.wires.checking import Offered, is_type
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.lexing import until_bracket
from toolgate.agents.wires.prose import ProseReader
from toolgate.agents.wires.strict import NotStrict, check_text, decode, decode_from
from toolgate.agents.wires.xml import OPEN, TextWire, XmlGrammar, XmlWire
from toolgate.core.errors import InvalidArgs

_OBJECT = r"\{(?=\s*+(?:[\"'“](?:name|tool|type|id|function|arguments|args|parameters)[\"'”]|\Z))"
_ARRAY = r"\[(?=\s*+(?:\{\s*+[\"'“](?:name|tool|type|id|function)[\"'”]|\{?\s*+\Z))"
_ELEMENT = r"<(?:/?function(?:_calls)?[=>]|/?(?:[a-z]+:)?(?:invoke|function_calls)\b)"
_FUNCTION = re.compile(r"<function=[ \t]*[\"']?([\w./:-]{1,128})[\"']?[ \t]*>")
_INVOKE = re.compile(r"<(?:[a-z]+:)?invoke[ \t]+name=[\"']([\w./:-]{1,128})[\"'][ \t]*>")
_PARAMETER = re.compile(
    r"\s*<(?:[a-z]+:)?parameter(?:=[ \t]*[\"']?|[ \t]+name=[\"'])([\w.-]{1,128})[\"']?[ \t]*(?:string=\"\w+\"[ \t]*)?>"
)
_VALUE_ENDS = re.compile(r"</(?:[a-z]+:)?parameter>")
_ENDS = re.compile(r"\s*</(?:function|(?:[a-z]+:)?invoke)>")
_WRAPPED = re.compile(r"\s*<(?:function=|(?:[a-z]+:)?invoke\b)")
_ALONE = re.compile(r"[ \t,;]*+(?:[\n{\[<]|\Z)")
_NESTED = re.compile(r"<(?:function=|(?:[a-z]+:)?(?:invoke|parameter)\b|tool_call>)")


class LeakedGrammar:
    marks = rf"{XmlGrammar.marks}|{_ELEMENT}|{_OBJECT}|{_ARRAY}"

    def __init__(self) -> None:
        self._elements = 0
        self._behind = ""
        """What the wrapper around an element stands behind, if that keeps it from being one."""

    def take(self, reader: ProseReader, start: int, mark: str, final: bool) -> int | None:
        if mark[0] in "{[":
            return self._json(reader, start, final)
        after = start + len(mark)
        if mark == OPEN and not _WRAPPED.match(reader.text, after):
            if not final and not reader.text[after:].strip():
                return None
            return XmlGrammar().take(reader, start, mark, final)
        if mark == OPEN or mark.startswith(("</", "<function_calls")):
            self._behind = "" if mark.startswith("</") else reader.behind(start)
            return after  # a wrapper around elements
        return self._element(reader, start, final)

    def fenced(self, reader: ProseReader, info: str, text: str) -> bool:
        return False

    # --- JSON ---------------------------------------------------------------------------------------------

    def _json(self, reader: ProseReader, start: int, final: bool) -> int | None:
        text = reader.text
        read = decode_from(text, start)
        stop = read[1] if isinstance(read, tuple) else None
        if stop is None:
            extent = until_bracket(text, start, final)
            if extent is None:
                return None
            stop = extent.stop
        if not reader.clean or not _ALONE.match(text, stop):
            reader.say(text[start:stop], code=True)
            reader.clean = False
        elif isinstance(read, tuple):
            for value in read[0] if isinstance(read[0], list) else [read[0]]:
                self._object(reader, value, text[start:stop])
        else:
            self._broken(reader.collector, text[start:stop])
        return stop

    def _broken(self, collector: Collector, text: str) -> None:
        try:
            decode(text)
        except NotStrict as error:
            collector.error(f"The call is not valid JSON: {error}.", text)

    def _object(self, reader: ProseReader, value: Any, text: str) -> None:
        """As one of ours, or as a part of OpenAI's `tool_calls`, whose arguments are a text."""
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            value = {key: item for key, item in value.items() if key in ("id",)} | value["function"]
        named = [value[key] for key in ("name", "tool") if key in value] if isinstance(value, dict) else []
        if not named or not isinstance(named[0], str) or reader.collector.offer.find(named[0]) is None:
            reader.say(text, code=True)  # some other object
            return
        given = value.get("arguments")
        if isinstance(given, str):
            try:
                value = value | {"arguments": decode(given) if given.strip() else {}}
            except NotStrict as error:
                reader.collector.error(
                    f"The arguments are not valid JSON: {error}.", text, value.get("name", "")
                )
                return
        reader.collector.object(value, text)

    # --- elements without escaping ------------------------------------------------------------------------

    def _element(self, reader: ProseReader, start: int, final: bool) -> int | None:
        text, collector = reader.text, reader.collector
        begin = _FUNCTION.match(text, start) or _INVOKE.match(text, start)
        if begin is None:
            reader.say(text[start : start + 1])
            return start + 1
        found, at, cut = _parameters(text, begin.end())
        ends = _ENDS.match(text, at)
        if ends is None:
            cut = cut or not text[at:].strip()
            if cut and not final:
                return None
            collector.error("The call is not complete.", text[start:at], begin[1])
            return len(text) if cut else at
        flaw = "an argument holds a tag of a call" if any(_NESTED.search(value) for _, value in found) else ""
        if self._behind:
            flaw = f"it stands behind {self._behind}"
        self._elements += 1
        if self._elements > 1:
            flaw = "this form has no escaping, so that only one call in a message is taken"
            self._withdraw(collector, flaw)
        self._called(collector, begin[1], found, flaw, text[start : ends.end()])
        return ends.end()

    def _withdraw(self, collector: Collector, why: str) -> None:
        for call in collector.calls:
            collector.error(f"The call of {call.name} is not run: {why}.", "", call.name)
        collector.calls.clear()

    def _called(
        self, collector: Collector, name: str, found: list[tuple[str, str]], flaw: str, text: str
    ) -> None:
        tool = collector.offer.find(name)
        args: dict[str, Any] = {}
        for key, value in found:
            if key in args:
                flaw = flaw or f"the argument {key!r} is given twice"
            try:
                args[key] = _typed(tool, key, value)
            except NotStrict as error:
                flaw = flaw or f"{key} is not valid JSON: {error}"
        if flaw:
            collector.error(f"The call of {name} is not run: {flaw}.", text, name)
        else:
            collector.call("", name, args, text)


def _parameters(text: str, at: int) -> tuple[list[tuple[str, str]], int, bool]:
    """The arguments from there on, where they end, and whether the text ends within one."""
    found: list[tuple[str, str]] = []
    while parameter := _PARAMETER.match(text, at):
        ends = _VALUE_ENDS.search(text, parameter.end())
        if ends is None:
            return found, at, True
        found.append((parameter[1], text[parameter.end() : ends.start()]))
        at = ends.end()
    return found, at, False


def _typed(tool: Offered | None, key: str, value: str) -> Any:
    """A text where the schema wants one; JSON otherwise. Without a schema it is a text."""
    text = value.removeprefix("\n").removesuffix("\n")
    check_text(text)
    schema = tool.properties.get(key) if tool is not None else None
    if not isinstance(schema, Mapping):
        return text
    branches = [one for one in (schema, *schema.get("anyOf", ())) if isinstance(one, Mapping)]
    types = [kind for one in branches for kind in _listed(one.get("type"))]
    if not types or "string" in types:
        return text
    read = decode(text.strip())
    if not any(is_type(read, kind) for kind in types):
        raise NotStrict(f"it must be {' or '.join(types)}")
    return read


def _listed(kind: Any) -> list[str]:
    return [kind] if isinstance(kind, str) else [str(one) for one in kind] if isinstance(kind, list) else []


class LeakedWire(TextWire):
    """Speaks as the XML wire does, and also takes what local servers leak."""

    name = "leaked"

    def grammar(self) -> LeakedGrammar:
        return LeakedGrammar()

    def stream(self, tools: Iterable[Any] | None = None) -> ProseReader:
        offered = list(tools or ())
        if not offered:
            raise InvalidArgs(
                "the leaked wire needs the list of tools", "give `tools`: only what is offered is called"
            )
        return super().stream(offered)

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        return json.dumps({"name": name, "arguments": dict(args)}, ensure_ascii=False)

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        return XmlWire().results(answers, errors)
