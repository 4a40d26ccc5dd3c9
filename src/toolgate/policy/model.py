"""The policy's part of toolgate.yaml, as data.

Every model says what an absent key means, and absent is always the strict one. Unknown keys are refused. Globs
and patterns are compiled here once to refuse impossible ones; `rules.py` and its siblings compile them for use.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.core.display import key_shown
from toolgate.core.effects import READS, WRITES
from toolgate.core.errors import ConfigError
from toolgate.core.finding import FINDING_KINDS
from toolgate.core.late_pattern import late_pattern
from toolgate.core.names import PERSONA
from toolgate.core.paths import MOUNT
from toolgate.core.tool import Phase
from toolgate.policy.endpoints import check_host
from toolgate.policy.globs import path_glob, text_glob, tool_glob
from toolgate.policy.linear import Linear
from toolgate.policy.phases import phase_name
from toolgate.policy.values import Flaw as Flaw

Word = Literal["allow", "ask", "deny"]
Scalar = str | bool | int | float | None
_CHANNEL = late_pattern(r"[a-z][a-z0-9_-]{0,31}")
_FINDING_RULE = late_pattern(r"[a-z][a-z0-9-]{0,63}")
_HASH = late_pattern(r"[0-9a-f]{64}")
_RULE_NAME = late_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


UNKNOWN_KEYS, WHOLE = "unknown_keys", "whole"
"""Kinds of errors that tell of several flaws: keys of one mapping, and what does not fit between the parts."""


def flawed(message: str, fix: str, *at: str | int) -> PydanticCustomError:
    return PydanticCustomError("flaw", "{message}", {"message": message, "fix": fix, "at": at})


def all_flawed(kind: str, flaws: list[Flaw]) -> PydanticCustomError:
    told = {"message": flaws[0].message, "flaws": flaws}
    return PydanticCustomError(kind, "{message}", told)


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=False, allow_inf_nan=False,
        defer_build=True,  # a section is built as a part of the whole file, and not once more by itself; hence `model_construct`
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = [info.alias or name for name, info in cls.model_fields.items()]
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise all_flawed(UNKNOWN_KEYS, [_unknown(key, known) for key in unknown[:10]])
        return data


def _unknown(key: str, known: list[str]) -> Flaw:
    import difflib

    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    fix = f"did you mean `{near[0]}`?" if near else f"the keys here are: {', '.join(known)}"
    return Flaw((key,), f"unknown key `{key_shown(key)}`", fix)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _each(check: Callable[[str], object]) -> BeforeValidator:
    """One text or a list of them, each checked; an error points at the element."""

    def validate(value: Any) -> Any:
        single = isinstance(value, str)
        items = _listed(value)
        if not isinstance(items, list | tuple):
            return items
        for index, item in enumerate(items):
            if isinstance(item, str):
                _checked(check, item, () if single else (index,))
        return tuple(items)

    return BeforeValidator(validate)


def _checked(check: Callable[[str], object], item: str, at: tuple[int, ...] = ()) -> str:
    try:
        check(item)
    except ConfigError as error:
        raise flawed(error.message, error.fix, *at) from None
    return item


def _one(check: Callable[[str], object]) -> BeforeValidator:
    return BeforeValidator(lambda value: _checked(check, value) if isinstance(value, str) else value)


def _named(pattern: re.Pattern[str], what: str, example: str) -> Callable[[str], object]:
    def check(text: str) -> None:
        if not pattern.fullmatch(text):
            raise ConfigError(f"{text[:80]!r} is not {what}", f"write it like `{example}`")

    return check


def _effect(words: dict[str, str]) -> Callable[[str], object]:
    def check(text: str) -> None:
        if text not in words:
            raise ConfigError(f"{text[:80]!r} is not an effect", f"use one of: {', '.join(words)}")

    return check


def _finding(text: str) -> None:
    kind, colon, rule = text.partition(":")
    if kind not in FINDING_KINDS or (colon and not _FINDING_RULE.fullmatch(rule)):
        known = ", ".join(FINDING_KINDS)
        raise ConfigError(
            f"{text[:80]!r} is not a finding", f"use {known}, or one rule of them: `secret:jwt`"
        )


def _inside_mount(text: str) -> None:
    if ":" in text:
        raise ConfigError(
            f"the glob {text!r} names a mount inside a mount", "leave the part up to the colon out"
        )
    path_glob(text)


_mount = _named(MOUNT, "a mount's name", "garden")
Texts = tuple[str, ...]
ToolGlobs = Annotated[Texts, _each(tool_glob)]
PathGlobs = Annotated[Texts, _each(path_glob), Field(min_length=1)]
MountGlobs = Annotated[Texts, _each(_inside_mount)]
Mounts = Annotated[Texts, _each(_mount)]
PhaseName = Annotated[Phase, BeforeValidator(lambda value: phase_name(value))]
PersonaName = Annotated[str, _one(_named(PERSONA, "a persona's name", "builder"))]
UserName = Annotated[str, _one(_named(PERSONA, "a user's name", "alice"))]
Number = Annotated[float, Field(strict=True)]
Count = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]


class RateSpec(Strict):
    """Sliding windows. An absent field takes the value of the profile; where that has none, there is no limit."""

    per_minute: Count | None = None
    per_hour: Count | None = None
    burst: Count | None = None
    """At most this many calls at once, then as fast as `per_minute`. Absent: no shaping."""


WrittenRates = dict[Annotated[str, _one(_effect(WRITES))], RateSpec]
"""By effect: how many calls that write this a persona may make, whatever their tools are called."""


class AdaptiveSpec(Strict):
    """As far as a good record raises the persona's own limits, at most to twice of each."""

    per_minute: Count | None = None
    per_hour: Count | None = None
    every: Annotated[int, Field(ge=5, le=1000, strict=True)] = 25
    """Useful calls that earn one of the four steps."""


class PersonaRatesSpec(RateSpec):
    writes: WrittenRates = Field(default_factory=dict)
    """Over `limits.writes`, field by field."""
    adaptive: AdaptiveSpec | None = None
    """Absent: the limits stay as they are, whatever the record says."""


class BytesSpec(Strict):
    """What the calls of one persona may bring into the ledger. A row's first 4 KiB count for nothing here: how many of
    those there are is what the other limits say."""

    per_minute: Annotated[int, Field(ge=1, le=1 << 40, strict=True)] = 8 * 1024 * 1024
    """Bytes of rows, and of what is kept beside them, in any minute."""
    kept: Annotated[int, Field(ge=1, le=1 << 40, strict=True)] = 64 * 1024 * 1024
    """Bytes beside the journal: for open questions, and once more for all else."""


class LimitsSpec(Strict):
    """Whose calls are counted. Absent altogether: the profile `roomy`, as `init` writes it."""

    profile: Literal["roomy", "strict"] = "roomy"
    everybody: RateSpec = Field(default=RateSpec.model_construct(), alias="global")
    persona: RateSpec = RateSpec.model_construct()
    tool: dict[Annotated[str, _one(tool_glob)], RateSpec] = Field(default_factory=dict)
    """Per persona and tool glob; the tools that one glob matches share its window."""
    writes: WrittenRates = Field(default_factory=dict)
    """Per persona and effect; all tools that have the effect share its window."""
    journal_bytes: BytesSpec = BytesSpec.model_construct()


class ScanSpec(Strict):
    """What a finding in written content means, kind by kind. Absent: secret asks, payload is denied, hidden asks."""

    secret: Word | None = None
    payload: Word | None = None
    hidden: Word | None = None


class PersonaSpec(Strict):
    """Who asks. A subagent (`parent`) takes what it leaves out from its parent, and never gets more than it."""

    description: str = ""
    phase: PhaseName | None = None
    """Absent: the parent's; without a parent no table speaks, only rules and `allow` do."""
    allow: ToolGlobs | None = None
    """Absent: the parent's; without a parent nothing."""
    deny: ToolGlobs = ()
    limits: PersonaRatesSpec = PersonaRatesSpec.model_construct()
    mounts: Mounts | None = None
    """Absent: the parent's; without a parent `project` and `scratch` only."""
    parent: PersonaName | None = None
    user: UserName | None = None
    """Whose memory and garden it reads and tends. Absent: the parent's; without a parent `me`."""
    scan: ScanSpec = ScanSpec.model_construct()
    """Absent: the parent's; without a parent the project's."""


class MountSpec(Strict):
    """A confined directory. Globs here are relative to it."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    kind: Annotated[str, _one(_named(MOUNT, "a kind of mount", "garden"))] | None = None
    """What it is for: `files`, or one that a feature brings, such as `garden`. Absent: its name, if that is a kind."""
    writable: MountGlobs | None = None
    """Absent: all of `project`, `garden` and `scratch` (policy still decides), nothing of any other mount."""
    unblock: MountGlobs = ()
    """Blocked names that may be used here after all: `.env.example` by name, `src/secrets/**` by path."""
    hidden: MountGlobs = ()
    """Paths that no tool may read or write."""
    dotfiles: MountGlobs | None = None
    """Names beginning with a dot that may be used. Absent: the usual ones, such as `.gitignore`; `[]`: none."""
    hard_links: Annotated[bool, Field(strict=True)] = False
    """Whether files with several names may be read; one of the names may be outside. They are never written."""
    worktree: Annotated[bool, Field(strict=True)] = False
    """Whether a directory made by `git worktree` shows the history of the repository that it belongs to, outside."""
    max_bytes: Annotated[int, Field(ge=1, le=1 << 30, strict=True)] = 16 << 20
    """The largest file that is read whole or written."""


class ConditionSpec(Strict):
    """What one argument must be. All that is said must hold."""

    equals: Scalar = None
    one_of: Annotated[tuple[Scalar, ...], Field(min_length=1)] | None = Field(None, alias="in")
    differs: Scalar | tuple[Scalar, ...] = Field(None, alias="not")
    glob: Annotated[Texts, _each(text_glob), Field(min_length=1)] | None = None
    matches: Annotated[str, _one(Linear)] | None = None
    gt: Number | None = None
    gte: Number | None = None
    lt: Number | None = None
    lte: Number | None = None
    exists: Annotated[bool, Field(strict=True)] | None = None
    host: Annotated[Texts, _each(check_host), Field(min_length=1)] | None = None
    """Places on the network, as a network grant names them, or ranges of addresses."""
    begins: Annotated[tuple[Annotated[str, Field(strict=True)], ...], Field(min_length=1)] | None = None
    """A list whose first elements are these, such as the program of an argv."""
    sha256: (
        Annotated[Texts, _each(_named(_HASH, "a SHA-256", "64 digits from 0 to f")), Field(min_length=1)]
        | None
    ) = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        """A scalar is short for `equals`."""
        if isinstance(data, list | tuple):
            raise flawed("a list is not a condition", "write `{in: [a, b]}`")
        return data if isinstance(data, dict) else {"equals": data}

    @model_validator(mode="after")
    def _says_something(self) -> ConditionSpec:
        if not self.model_fields_set:
            raise flawed("a condition says nothing", "write `{equals: x}` or remove it")
        return self


class WhenSpec(Strict):
    """Absent parts do not matter; an empty `when` is refused, because it says nothing."""

    path: PathGlobs | None = None
    mount: Annotated[Mounts, Field(min_length=1)] | None = None
    args: Annotated[dict[str, ConditionSpec], Field(min_length=1)] | None = None
    findings: Annotated[Texts, _each(_finding), Field(min_length=1)] | None = None
    """The rule is about what the content scan found, and about nothing else: it never decides about a call without."""

    @model_validator(mode="after")
    def _says_something(self) -> WhenSpec:
        if not self.model_fields_set:
            raise flawed("`when` says nothing", "write `when: {path: 'src/**'}` or remove it")
        return self


class EffectsSpec(Strict):
    reads: Annotated[Texts, _each(_effect(READS))] = ()
    writes: Annotated[Texts, _each(_effect(WRITES))] = ()


class ExampleCall(Strict):
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    persona: str = ""
    """Absent: the persona of the rule it stands beside, which must then name exactly one."""
    findings: Annotated[Texts, _each(_finding)] = ()
    """What the content scan is supposed to find in the file that the call names first."""


class ExampleSpec(Strict):
    call: ExampleCall
    expect: Word


class RuleSpec(Strict):
    """One rule. `persona` and `tools` absent: everybody, every tool; an allow must say both itself."""

    name: Annotated[str, _one(_named(_RULE_NAME, "a rule's name", "deploy-is-for-people"))] = ""
    """Absent: `rule-N`, by its place in the list."""
    persona: Annotated[Texts, _each(text_glob), Field(min_length=1)] | None = None
    tools: Annotated[ToolGlobs, Field(min_length=1)] | None = None
    effects: EffectsSpec | None = None
    when: WhenSpec | None = None
    decision: Word
    reason: str = ""
    channels: Annotated[Texts, _each(_named(_CHANNEL, "a channel's name", "terminal"))] = ()
    """Where the answer must come from; absent: anywhere a human can answer."""
    examples: tuple[ExampleSpec, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> RuleSpec:
        if self.decision == "allow" and (self.persona is None or self.tools is None):
            missing = "persona" if self.persona is None else "tools"
            raise flawed(
                f"an allow rule must say `{missing}`", f"add `{missing}`; `{missing}: '*'` means all of them"
            )
        if self.channels and self.decision != "ask":
            raise flawed(
                f"`channels` has no meaning in a rule that says {self.decision}", "remove it", "channels"
            )
        if self.effects is not None and not (self.effects.reads or self.effects.writes):
            raise flawed("`effects` says nothing", "write `effects: {writes: [project]}`", "effects")
        return self


class PolicySpec(Strict):
    """Absent: no rules; personas have what their phase and overrides give."""

    profile: Literal["default", "manifest"] = "default"
    """`manifest` asks for every `fs.*`, reads too."""
    rules: tuple[RuleSpec, ...] = ()
    examples: tuple[ExampleSpec, ...] = ()
