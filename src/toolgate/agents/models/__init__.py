"""Models: what answers an agent's messages. Each is a small class around an SDK, or a script.

A model is handed messages and the tools it may call, says words while they come, and returns one reply with what it cost.
It calls nothing itself. SDKs are imported when a model is made; without them an error names the extra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.errors import Unavailable
from toolgate.core.functions import ToolSpecs

if TYPE_CHECKING:
    from toolgate.agents.wires import Parsed

Say = Callable[[str], None]
"""Told the words of a reply as they come."""
CHARS_A_TOKEN = 4
INSTALL = "install the extra: pip install 'toolgate[agents]'"


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one reply cost."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """Of the input, what the provider had cached."""
    usd: float | None = None
    """None where the price of the model is not known."""

    @property
    def tokens(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class ModelReply:
    parsed: Parsed
    usage: ModelUsage
    model: str = ""
    """As the provider calls the one that answered."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    messages: Sequence[Mapping[str, Any]]
    """The first one is the system's."""
    specs: ToolSpecs
    """The tools, as `gate.tools(persona)` gives them."""
    hidden: Sequence[str] = ()
    """Names of the tools that there are besides: a call to one of them is for the gate to refuse, and on record then."""
    persona: str = ""
    turn: int = 0
    """How many replies this persona has had in this conversation: where a script stands."""
    final: bool = False
    """No tool may be called any more. The tools are named all the same: earlier messages may hold calls of them."""

    @property
    def known(self) -> list[Any]:
        """What a wire takes for the name of a tool."""
        return [*self.specs, *self.hidden]


class Model(Protocol):
    name: str
    wire: str
    """The format of its calls: `openai`, `anthropic`, `xml` or `manifest`."""

    async def ask(self, request: ModelRequest, say: Say) -> ModelReply: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a provider is reached. The key is a value: whoever makes a model has looked it up by its name."""

    model: str
    key: str = ""
    base_url: str = ""
    wire: str = ""
    timeout_s: float = 120.0
    retries: int = 2
    max_tokens: int = 4096
    temperature: float | None = None
    usd_per_million: tuple[float, float] | None = None
    """Price of input and output, where the list of prices does not know the model."""


def priced(provider: str, settings: ModelSettings, usage: ModelUsage) -> float | None:
    """US dollars, by the owner's own figures or by genai-prices; None where neither knows."""
    if settings.usd_per_million is not None:
        into, out = settings.usd_per_million
        return (usage.input * into + usage.output * out) / 1_000_000
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None
    tokens = Tokens(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached or None
    )
    try:
        return float(calc_price(tokens, model_ref=settings.model, provider_id=provider).total_price)
    except LookupError:
        return None


def estimated(request: ModelRequest, parsed: Parsed) -> ModelUsage:
    """About what a reply took, where the server does not say: a budget of tokens must hold there too."""
    read = sum(len(str(message)) for message in request.messages)
    said = len(parsed.text) + len(parsed.thinking) + sum(len(str(call.args)) for call in parsed.calls)
    return ModelUsage(read // CHARS_A_TOKEN + 1, said // CHARS_A_TOKEN + 1)


def missing(package: str, error: ImportError) -> Unavailable:
    return Unavailable(f"the model needs the package {package}, which is not installed: {error}", INSTALL)
