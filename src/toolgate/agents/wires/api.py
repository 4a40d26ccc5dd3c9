"""Streams of API messages: objects, dictionaries, or the text of an HTTP answer, whole or as server-sent events."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.agents.wires.base import DENIED, Parsed, WireCall, WireError, WireFormat, told
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.strict import NotStrict, decode
from toolgate.core.functions import wire_names


class ApiStream:
    """What a message of an API, or the events that make it up, come to."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.finish = ""
        self._spelled: list[str] = []
        self._decoder = getincrementaldecoder("utf-8")("replace")  # a piece may end within a character
        self._shown = [0, 0]
        self._message: Any = None

    def message(self, message: Any) -> None:
        raise NotImplementedError

    def event(self, event: Any) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """All events were seen."""

    def feed(self, chunk: Any) -> Parsed:
        """One event, or a piece of the answer's text. Calls are told when the stream is closed."""
        if isinstance(chunk, str | bytes):
            self._spelled.append(chunk if isinstance(chunk, str) else self._decoder.decode(chunk))
            return Parsed()
        self.event(chunk)
        if self._shown == [len(self.texts), len(self.thoughts)]:
            return Parsed()
        new = Parsed(
            text="".join(self.texts[self._shown[0] :]), thinking="".join(self.thoughts[self._shown[1] :])
        )
        self._shown = [len(self.texts), len(self.thoughts)]
        return new

    def close(self) -> Parsed:
        if self._spelled:
            self._read("".join(self._spelled))
        self.end()
        text, thinking = "".join(self.texts), "".join(self.thoughts)
        return self.collector.parsed(text=text, thinking=thinking, finish=self.finish, raw=self._message)

    def whole(self, message: Any) -> Parsed:
        if isinstance(message, str | bytes):
            self.feed(message)
        else:
            self._message = message
            self.message(message)
        return self.close()

    def _read(self, text: str) -> None:
        """A serialised message, or server-sent events."""
        text = text.lstrip("\ufeff \t\r\n")
        if text.startswith(("data:", "event:", "id:", "retry:", ":")):
            for line in text.replace("\r", "\n").split("\n"):  # a string may hold other signs of a new line
                name, colon, value = line.partition(":")
                if colon and name.strip() == "data" and value.strip() not in ("", "[DONE]"):
                    self._serialised(value, self.event)
            return
        self._serialised(text, self.message)

    def _serialised(self, text: str, to: Any) -> None:
        try:
            value = decode(text)
        except NotStrict as error:
            self.collector.error(f"This is not a message of the API: {error}.", text)
            return
        if isinstance(value, dict | list):
            to(value)
        else:
            self.collector.error("This is not a message of the API: it is no object.", text)

    def said_by_model(self, message: Any) -> bool:
        """Whether a message is the model's own: what a tool gave or a user said calls nothing."""
        role = get(message, "role")
        if isinstance(role, str) and role != "assistant":
            self.collector.error(
                f"This is a message of the role {role[:40]!r}; only the assistant's call tools."
            )
            return False
        return True


def get(thing: Any, name: str) -> Any:
    """A field of a dictionary or of an object of an SDK."""
    if type(thing) is dict:  # as nearly always; asking for a Mapping takes longer than all the rest
        return thing.get(name)
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


CUT = ("length", "max_tokens", "content_filter", "incomplete", "failed")
"""Why a message ended that did not end by itself."""


def nothing(arguments: Any) -> bool:
    """A call without arguments, in each of the ways that servers say it."""
    return arguments is None or (isinstance(arguments, str) and not arguments.strip())


def place_of(value: Any) -> int | None:
    """The place of an item in a stream, which is a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


class ApiWire(WireFormat):
    """What all wires of APIs have in common."""

    native = True

    def stream(self, tools: Iterable[Any] | None = None) -> ApiStream:
        raise NotImplementedError

    def parse(self, message: Any, tools: Iterable[Any] | None = None) -> Parsed:
        return self.stream(tools).whole(message)


def asked(parsed: Parsed) -> list[tuple[str, str, dict[str, Any]]]:
    """Id, name on the wire and arguments of every call, also of the broken ones, for an API wants an answer to each; what
    is no JSON is kept as a text in JSON, because some servers read it again."""
    calls = [(one.id, one.name, one.args) for one in parsed.calls]
    calls += [(one.id, one.name, {"unreadable": one.text}) for one in parsed.errors if one.id and one.name]
    names = wire_names(name for _, name, _ in calls)
    return [(ident, names[name], args) for ident, name, args in calls]


def answered(
    answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError]
) -> tuple[list[tuple[str, str]], str]:
    """Id and text of what goes back to each call, and what is wrong beside them."""
    every = list(errors)
    made = [
        (call.id, text if ok or text.startswith(DENIED) else f"Error: {text}") for call, text, ok in answers
    ]
    made += [(error.id, told([error])) for error in every if error.id and error.name]
    return made, told(error for error in every if not (error.id and error.name))
