"""The architecture in one page of types: what the gate needs from the rooms around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.call import Call
from toolgate.core.decision import Question
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.change import Change
    from toolgate.core.decision import Decision
    from toolgate.core.effects import Effects
    from toolgate.core.finding import Finding
    from toolgate.core.paths import MountPath
    from toolgate.core.tool import Tool


@dataclass(slots=True)  # not frozen: made for every call; nobody changes one
class Facts:
    """All that policy may look at. What a model says about itself is not among it."""

    persona: str
    tool: Tool
    args: Mapping[str, Any]
    effects: Effects
    paths: tuple[MountPath, ...] = ()
    paused: Mapping[str, str] = field(default_factory=dict)
    """Paused personas and why; the empty name stands for everybody."""
    findings: tuple[Finding, ...] = ()
    """What the content scan found in what the call would write."""
    changed: tuple[MountPath, ...] | None = None
    """The files that its Change touches; None while none is planned."""


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` calls in any `seconds`; `name` says whose limit it is."""

    scope: str
    name: str
    limit: int
    seconds: float
    most: int = 0
    """As far as a good record of the persona raises it; 0: it stays as it is."""


class Rules(Protocol):
    """Policy, as the gate sees it."""

    fingerprint: str
    """Hash of everything that can influence a decision."""

    def decide(self, facts: Facts) -> Decision: ...

    def holds(self, paths: Sequence[MountPath]) -> bool:
        """Whether toolgate runs any of these files outside the sandbox: writing it asks, whatever else is decided."""
        ...

    def outlook(self, persona: str, tool: Tool) -> Decision:
        """What this persona may expect of a tool, before any arguments are known."""
        ...

    def rights(self, persona: str) -> str:
        """Hash of what this persona is (phase, overrides, parents): an approval is bound to it."""
        ...

    def windows(self, persona: str, tool: str, writes: tuple[str, ...] = ()) -> tuple[Window, ...]: ...

    @property
    def earns(self) -> Mapping[str, int]:
        """The personas whose record raises their limits: how many useful calls make a step."""
        ...


@dataclass(frozen=True, slots=True)
class Holder:
    """For whom images are kept."""

    call: str = ""
    persona: str = ""
    asked: bool = False
    """Whether a human was asked about it, or granted it."""
    tool: str = ""


class Files(Protocol):
    """Where Changes are carried out: confined, atomic, durable."""

    async def read(self, path: MountPath, *, to_change: bool = False) -> bytes | None:
        """The content, or None where there is no file; `to_change` when a plan starts from it."""
        ...

    def check(self, change: Change, holder: Holder) -> str:
        """Why the change could not be undone; empty where it could. Raises where such a change is refused."""
        ...

    async def completed(self, change: Change, tool: str) -> Change:
        """With what the kinds of the mounts that it touches add to it."""
        ...

    def guard(self, change: Change, holder: Holder) -> None:
        """Raises where the kind of a mount that it touches refuses it. It may take a while, and any thread may call it."""
        ...

    def deletes(self, mount: str) -> bool:
        """Whether things in this mount may be deleted."""
        ...

    def effect_word(self, mount: str) -> str:
        """The word by which a tool must have declared that it writes there; empty where any will do."""
        ...

    async def keep(self, change: Change, holder: Holder) -> None:
        """Store before- and after-images durably, so that the change can be rolled either way."""
        ...

    async def lay_out(self, contents: Sequence[bytes], holder: Holder) -> None:
        """Keep contents that a question only names by their hash, so that a human can look at them."""
        ...

    async def release(self, call: str) -> None:
        """Nothing came of this call: its images are not needed."""
        ...

    async def apply(self, change: Change) -> None:
        """Write it all, or raise Conflict with nothing written if a file is not as planned."""
        ...

    async def hashes(self, paths: Sequence[MountPath]) -> list[str | None]: ...

    async def settle(self, manifest: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        """Roll a half-done change forward or back; `happened`, `not` or `unknown`, and how we know."""
        ...

    async def load(self, manifest: Sequence[Mapping[str, Any]]) -> Change:
        """The Change a recorded manifest stands for, from the kept images."""
        ...


class Redactor(Protocol):
    """Takes secrets out of whatever leaves the gate."""

    @property
    def searches(self) -> bool:
        """Whether it looks for values in whole texts, which takes its time."""
        ...

    @property
    def version(self) -> int:
        """Another one whenever the values are others."""
        ...

    def refresh(self) -> None:
        """Learn of secrets that were set meanwhile. Raises where that cannot be known: then nothing may run."""
        ...

    def redact(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        """The value without any secret; `hidden` are the call's own."""
        ...

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as the journal keeps them; the very same mapping where nothing is secret."""
        ...

    def show(
        self, tool: Tool, args: Mapping[str, Any], paths: frozenset[str] = frozenset()
    ) -> Mapping[str, Any]:
        """The arguments for a human who decides: all but declared secrets, of which name and fingerprint are shown.
        `paths` stay as they are. Raises where they cannot be shown."""
        ...

    def shown(self, value: Any) -> Any:
        """The value for a human who decides: as `redact`, but what is a secret only in part or in another form says so."""
        ...

    def named(self, text: str) -> Mapping[str, str]:
        """The secrets of the vault that are named in a text that is shown, each with the fingerprint of its value."""
        ...

    def fingerprint(self, value: Any) -> str:
        """Tells two values apart for whoever has the key, and nothing else about them."""
        ...

    def seal(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The arguments as the digest takes them, a keyed hash for each secret, and the secrets; likewise the same."""
        ...


@dataclass(frozen=True, slots=True)
class Scan:
    """What is in a Change that was not there before, and every secret seen on the way."""

    findings: tuple[Finding, ...] = ()
    values: frozenset[str] = field(default=frozenset(), repr=False)
    """The secrets themselves, old ones too: an argument that is one of them is not recorded."""


class Scanner(Protocol):
    """Looks for secrets, malicious payloads and hidden characters in what would be written."""

    def scan(self, change: Change) -> Scan: ...

    def hide(self, content: bytes) -> bytes:
        """The content with every secret in it masked where it stands, for what is recorded."""
        ...


class VaultValues(Protocol):
    """Where our own secrets are kept, as the content scan sees it."""

    def within(self, content: bytes) -> Iterable[tuple[str, int, int]]:
        """The name, start and end of each of its values that this content holds."""
        ...


class Channel(Protocol):
    """A place where a human can be asked. The first answer from any channel wins.

    One with `answers = False` is also asked what a rule wants answered elsewhere, so that it can say where.
    """

    @property
    def name(self) -> str: ...

    async def ask(self, question: Question) -> None:
        """Show it, and answer through the gate when the human does. Cancelled when somebody else answered."""
        ...


class Notice(Protocol):
    """A way to tell a human that a question has opened. Telling is not answering."""

    @property
    def name(self) -> str: ...

    async def tell(self, question: Question) -> None: ...


__all__ = [
    "Call", "Channel", "Facts", "Files", "Notice", "Question", "Redactor", "Rules", "Scan", "Scanner", "VaultValues",
    "Window",
]  # fmt: skip
