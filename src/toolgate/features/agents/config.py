"""`models:` and `agents:` in toolgate.yaml."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from toolgate.policy.model import WHOLE, Flaw, Strict, all_flawed, flawed

NAME = re.compile(r"[a-z][a-z0-9._-]{0,63}")
SECRET = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
Count = Annotated[int, Field(ge=0, le=10**9, strict=True)]
Amount = Annotated[float, Field(ge=0, le=10**6)]
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class ModelSpec(Strict):
    """One model: which SDK reaches it, what it is called there, and where its key is."""

    kind: Literal["openai", "anthropic", "scripted"]
    model: Text | None = None
    """As the provider calls it. Absent: the name of this entry."""
    base_url: Annotated[str, Field(max_length=4096)] | None = None
    """Another server that speaks the same protocol, such as a local one."""
    key: str | None = None
    """The name of a secret in the vault, or of a variable of this user's environment."""
    wire: Literal["openai", "openai-responses", "anthropic", "xml", "manifest", "leaked"] | None = None
    """How it calls tools. Absent: as its SDK does it; `openai-responses` asks over that API; `xml` and `manifest` are for models
    that know only text, `leaked` for local servers that hand calls over as text."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    retries: Annotated[int, Field(ge=0, le=10, strict=True)] = 2
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 4096
    context_tokens: Annotated[int, Field(ge=1000, le=10_000_000, strict=True)] = 100_000
    """How much it is given at once, with the prompt."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    usd_per_million: tuple[Amount, Amount] | None = None
    """Price of input and output tokens. Absent: by the list of prices that comes with the extra `agents`."""
    script: Text | None = None
    """For `scripted`: a file of the project with what it says (YAML or JSON)."""

    @model_validator(mode="after")
    def _whole(self) -> ModelSpec:
        if (self.kind == "scripted") != (self.script is not None):
            fix = "name a file in `script`" if self.script is None else "remove it, or use `kind: scripted`"
            raise flawed(f"`script` does not fit the kind `{self.kind}`", fix, "script")
        speaks = {"openai": ("anthropic",), "anthropic": ("openai", "openai-responses")}.get(self.kind, ())
        if self.wire in speaks:
            raise flawed(
                f"the wire `{self.wire}` does not fit the kind `{self.kind}`", "leave it out", "wire"
            )
        if self.key is not None and not SECRET.fullmatch(self.key):
            raise flawed(
                "`key` is not a name",
                "write the name of a secret, such as OPENAI_API_KEY, never the key",
                "key",
            )
        if self.base_url is not None and not re.match(r"https?://[^/\s]", self.base_url):
            raise flawed(
                f"{self.base_url[:80]!r} is not an address", "begin with https:// or http://", "base_url"
            )
        return self


class RunBudgetSpec(Strict):
    """What one run may use, with all its helpers; 0 means no limit."""

    tokens: Count = 500_000
    usd: Amount = 1.0
    seconds: Amount = 1800.0
    calls: Count = 100


class SummarySpec(Strict):
    """Long results are read by a small model first; the run's own model gets what it says, marked as that."""

    model: Text
    """One of `models`."""
    above_tokens: Annotated[int, Field(ge=200, le=1_000_000, strict=True)] = 4000
    tokens: Annotated[int, Field(ge=50, le=10_000, strict=True)] = 500
    """About how long the summary may be."""


class AgentsSpec(Strict):
    """How personas run."""

    model: str | None = None
    """For personas that `personas` below gives none. Absent: the only one there is."""
    personas: dict[str, str] = Field(default_factory=dict)
    """The model of each persona."""
    roles: dict[str, Annotated[str, Field(max_length=8000)]] = Field(default_factory=dict)
    """What a persona is told about itself, before the rules and the tools."""
    rounds: Annotated[int, Field(ge=1, le=100, strict=True)] = 5
    """Rounds of tool calls before the answer is due."""
    depth: Annotated[int, Field(ge=0, le=10, strict=True)] = 2
    """How deep helpers may ask helpers."""
    budget: RunBudgetSpec = RunBudgetSpec.model_construct()
    summary: SummarySpec | None = None
    """Absent: results are given whole, as far as the gate's budget lets them."""
    keep_days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 90
    """How long runs that have ended can be looked at."""


def _named(models: dict[str, ModelSpec]) -> dict[str, ModelSpec]:
    fix = "use lower-case letters, digits, `.`, `_` and `-`, beginning with a letter"
    found = [
        Flaw((name,), f"{name[:80]!r} is not a model's name", fix)
        for name in models
        if not NAME.fullmatch(name)
    ]
    if found:
        raise all_flawed(WHOLE, found)
    return models


ModelsSection = Annotated[
    dict[str, ModelSpec],
    BeforeValidator(lambda given: {} if given is None else given),
    AfterValidator(_named),
]
