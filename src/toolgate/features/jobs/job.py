"""Jobs as values: what one is told, what can be known of it, and the kinds of them. Plain values, JSON where they are stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from toolgate.core.clock import iso
from toolgate.core.errors import Code, InvalidArgs

State = Literal["queued", "running", "waiting", "done", "failed", "unknown", "cancelled"]
"""`waiting` is for a human's answer; `unknown` means that nobody can prove whether its call happened."""
ENDED: frozenset[State] = frozenset({"done", "failed", "unknown", "cancelled"})

RETRIED = frozenset({Code.FAILED, Code.TIMEOUT, Code.UNAVAILABLE, Code.RATE_LIMITED})
"""What may go better next time. Refusals, wrong arguments and conflicts will not; what is unknown must not."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed call is tried, and how long to wait in between: longer each time."""

    attempts: int = 1
    delay_s: float = 2.0
    factor: float = 2.0
    most_s: float = 300.0

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= 100:
            raise InvalidArgs(f"{self.attempts} attempts cannot be made", "choose 1 to 100")
        if not (0 < self.delay_s <= self.most_s <= 86_400 and 1 <= self.factor <= 100):
            raise InvalidArgs(
                f"a delay of {self.delay_s:g} s, {self.factor:g} times longer each time, cannot be kept",
                "choose a delay above 0 and up to a day, and a factor of 1 to 100",
            )

    def delay(self, attempt: int) -> float:
        """After this attempt, counted from 1."""
        longest = self.delay_s
        for _ in range(attempt - 1):
            longest = min(longest * self.factor, self.most_s)
        return longest


@dataclass(frozen=True, slots=True)
class Spec:
    """What is to be done, for whom."""

    kind: str
    args: Mapping[str, Any]
    persona: str
    conversation: str = ""
    reason: str = ""
    retry: Retry = field(default_factory=Retry)
    timeout_s: float | None = None
    """From its first start to its end, waiting included; None: as long as its calls take."""
    root: str = ""
    """The job this one repeats. Its calls have the keys of that one, so that nothing which happened happens again."""

    def stored(self) -> dict[str, Any]:
        return asdict(self) | {"args": dict(self.args)}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Spec:
        known = {name: stored[name] for name in cls.__slots__ if name in stored}
        return cls(**known | {"retry": Retry(**stored.get("retry", {}))})

    @property
    def what(self) -> str:
        """In a few words."""
        if self.kind == "call":
            return str(self.args.get("tool", ""))
        if self.kind == "calls":
            return ", ".join(str(call.get("tool", "")) for call in self.args.get("calls", ()))
        return self.kind


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands."""

    id: str
    spec: Spec
    state: State
    progress: float | None = None
    message: str = ""
    question: str = ""
    """What it waits for."""
    attempt: int = 0
    call: str = ""
    """The last call it made, where one is known."""
    outcome: str = ""
    """How the call that a cancellation interrupted was settled."""
    result: Any = None
    error: Mapping[str, Any] | None = None
    schedule: str = ""
    created_at: int = 0
    started_at: int = 0
    ended_at: int = 0

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def shown(self, whole: bool = True) -> dict[str, Any]:
        """As programs see it; without `whole`, one line of a list."""
        spec = self.spec
        line = {
            "job": self.id, "what": spec.what, "persona": spec.persona, "conversation": spec.conversation,
            "state": self.state, "progress": 1.0 if self.state == "done" else self.progress, "message": self.message, "question": self.question,
            "attempt": self.attempt, "schedule": self.schedule, "created_at": _moment(self.created_at),
            "started_at": _moment(self.started_at), "ended_at": _moment(self.ended_at),
        }  # fmt: skip
        if not whole:
            return line
        return line | {
            "kind": spec.kind, "args": dict(spec.args), "retry": asdict(spec.retry), "timeout_s": spec.timeout_s,
            "reason": spec.reason, "repeats": spec.root, "call": self.call, "outcome": self.outcome,
            "result": self.result, "error": self.error,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that is submitted again and again, at the times of a cron expression in UTC."""

    name: str
    cron: str
    spec: Spec
    last: str = ""

    def shown(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "name": self.name, "cron": self.cron, "what": spec.what, "args": dict(spec.args),
            "persona": spec.persona, "last": self.last or None,
        }  # fmt: skip


def _moment(micros: int) -> str | None:
    return iso(micros) if micros else None


# The kinds of jobs. A kind says which calls are made, one after the other; each has a number and therefore
# a key. It may look at the results of its calls and at nothing else, because after a crash it is run again
# from its beginning, with the results it had.

MOST_CALLS = 1000


class JobCalls(Protocol):
    async def call(self, tool: str, args: Mapping[str, Any]) -> Any:
        """The data of the call's result. What refuses or fails for good ends the job."""
        ...


@dataclass(frozen=True, slots=True)
class JobKind:
    run: Callable[[JobCalls, Mapping[str, Any]], Awaitable[Any]]
    known: Callable[[Mapping[str, Any]], Iterable[tuple[str, Mapping[str, Any]]]]
    """The calls that are known beforehand, to be checked when it is submitted; wrong arguments raise."""


def _one(args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool, given = args.get("tool"), args.get("args", {})
    if not isinstance(tool, str) or not isinstance(given, Mapping) or set(args) - {"tool", "args"}:
        raise InvalidArgs(
            "a call has a `tool` and its `args`", 'write {"tool": "code.search", "args": {...}}'
        )
    return tool, given


def _several(args: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    calls = args.get("calls")
    if not isinstance(calls, list) or not 1 <= len(calls) <= MOST_CALLS or set(args) - {"calls"}:
        raise InvalidArgs(
            f"`calls` is not a list of 1 to {MOST_CALLS} calls", 'write {"calls": [{"tool": ...}]}'
        )
    return [_one(call if isinstance(call, Mapping) else {}) for call in calls]


async def _run_one(calls: JobCalls, args: Mapping[str, Any]) -> Any:
    return await calls.call(*_one(args))


async def _run_several(calls: JobCalls, args: Mapping[str, Any]) -> Any:
    return [await calls.call(*call) for call in _several(args)]


BUILT_IN = {"call": JobKind(_run_one, lambda args: [_one(args)]), "calls": JobKind(_run_several, _several)}
