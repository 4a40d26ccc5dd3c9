"""Types of every wire: the calls that a model's message asks for, what is wrong in it, and the text around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.errors import Code, by_policy

if TYPE_CHECKING:
    from toolgate.core.result import Result

MOST_CALLS = 128
"""In one message. What is above it is an error, not a call."""
MOST_ERRORS = 50
"""That are told; how many more there were is said in one line."""
SHOWN = 500
"""Characters of what is wrong that an error repeats."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WireCall:
    """One well-formed call. `id` is the model's own, or `call_1`, `call_2`… in the order of the message."""

    id: str
    name: str
    args: dict[str, Any]
    reason: str = ""
    """Why, in the model's own words, where the wire has a place for it."""


@dataclass(frozen=True, slots=True)
class WireError:
    """Something that looks like a call and is none: what is wrong, the shortest correct spelling, and the thing."""

    message: str
    example: str = ""
    text: str = ""
    id: str = ""
    """The model's id of the broken call, where it has one: some protocols want an answer to each."""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.message} Correct: {self.example}" if self.example else self.message


@dataclass(slots=True)
class Parsed:
    """A model's message, taken apart."""

    calls: list[WireCall] = field(default_factory=list)
    errors: list[WireError] = field(default_factory=list)
    text: str = ""
    """What is neither a call nor thinking."""
    thinking: str = ""
    finish: str = ""
    """Why the model stopped, in its protocol's own word."""
    raw: Any = None
    """What was parsed: a text, or the message of an API."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """What each manifest says about itself, with the ids of its calls. It is for the record: nothing is decided by it."""


class WireStream(Protocol):
    """A message that is still arriving. What `feed` tells is new since the last time and for display; what counts, and
    does not depend on how the message was cut into pieces, is what `close` returns."""

    def feed(self, chunk: Any) -> Parsed: ...
    def close(self) -> Parsed: ...


class WireFormat:
    """One format: text or API messages to calls, and results back to messages."""

    name = ""
    native = False
    """Whether the API is given the tools, so that the prompt need not describe how to write a call."""

    def stream(self, tools: Iterable[Any] | None = None) -> WireStream:
        raise NotImplementedError

    def parse(self, message: Any, tools: Iterable[Any] | None = None) -> Parsed:
        raise NotImplementedError

    def results(
        self, answers: Iterable[tuple[WireCall, str, bool]], errors: Iterable[WireError] = ()
    ) -> list[Message]:
        """How all calls of one message ended and what was wrong in it, as the protocol wants them together."""
        raise NotImplementedError

    def result(self, call: WireCall, text: str, ok: bool) -> list[Message]:
        """The message that tells the model how a call ended."""
        return self.results([(call, text, ok)])

    def assistant(self, parsed: Parsed) -> Message:
        """The model's own message, as the history keeps it."""
        raise NotImplementedError

    def example(self, name: str, args: Mapping[str, Any]) -> str:
        """One correct call."""
        raise NotImplementedError

    def prompt(self, tools: Iterable[Any], budget: int = 4000) -> str:
        from toolgate.agents.prompt import tool_section

        return tool_section(self, tools, budget)


def numbered(ident: str, taken: Iterable[str], count: int) -> str:
    """The model's own id, or one by the call's place among the others."""
    if ident:
        return ident
    known, number = set(taken), count + 1
    while f"call_{number}" in known:
        number += 1
    return f"call_{number}"


def told(errors: Iterable[WireError]) -> str:
    """The errors as the model reads them."""
    return "\n".join(f"Not run: {error}" for error in errors)


DENIED = "Access denied by creator."


def as_told(result: Result, text: str) -> str:
    """A rendered result as the model reads it: a refusal begins with the words that the manifest promises."""
    error = result.error
    if error is None or not (error.code is Code.DENIED or by_policy(error.code, result.data)):
        return text
    return f"{DENIED} {text.removeprefix(f'{error.code.value}: {DENIED}').lstrip()}"
