"""Wires: what a model says becomes calls, and what came of them becomes messages, in the format that the model speaks.

`parse` takes a whole message, `stream` one that is still arriving. Nothing is guessed and nothing repaired: what is
not a well-formed call is text, or an error with the shortest correct spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from toolgate.agents.wires.base import Message, Parsed, WireCall, WireError, WireFormat, WireStream
from toolgate.core.errors import InvalidArgs

Wire = WireFormat

FORMATS = {
    "xml": "xml:XmlWire",
    "manifest": "manifest:ManifestWire",
    "openai": "openai:OpenAiWire",
    "openai-responses": "responses:ResponsesWire",
    "anthropic": "anthropic:AnthropicWire",
    "leaked": "leaked:LeakedWire",
}


def wire(name: str) -> WireFormat:
    """The wire of a format."""
    if name not in FORMATS:
        raise InvalidArgs(f"there is no wire {name!r}", f"there are: {', '.join(FORMATS)}")
    module, _, kind = FORMATS[name].partition(":")
    made: WireFormat = getattr(import_module(f"{__name__}.{module}"), kind)()
    return made


def parse(text: Any, format: str = "xml", tools: Iterable[Any] | None = None) -> Parsed:  # noqa: A002
    """The calls, the errors and the text of a model's message: its text, or an API's message. `tools` are the names or the specs of what it was offered:
    with them, names are checked; with schemas, arguments too."""
    return wire(format).parse(text, tools)


def stream(format: str = "xml", tools: Iterable[Any] | None = None) -> WireStream:  # noqa: A002
    """The same for a message in pieces: `feed` each, then `close`."""
    return wire(format).stream(tools)


__all__ = [
    "FORMATS", "Message", "Parsed", "Wire", "WireCall", "WireError", "WireFormat", "WireStream", "parse", "stream", "wire",
]  # fmt: skip
