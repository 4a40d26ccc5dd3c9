"""One call on its way through the gate, and what the stages share."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, final

from toolgate.core.apart import LARGE as LARGE
from toolgate.core.apart import apart
from toolgate.core.apart import large as large
from toolgate.core.bounds import Bounds
from toolgate.core.context import Context, Trail
from toolgate.core.display import encodable
from toolgate.core.ports import Facts, Files, Redactor, Rules, Scan, Scanner
from toolgate.core.records import dataclass, field
from toolgate.core.result import Meta, Result
from toolgate.core.tool import DEFAULT_TIMEOUT, Handler, Tool
from toolgate.gate.cache import Cache
from toolgate.gate.earned import EarnedLimits
from toolgate.gate.unrecorded import Unrecorded
from toolgate.secrets.scan import ContentScanner

if TYPE_CHECKING:
    from toolgate.consent.desk import Desk
    from toolgate.core.call import Call
    from toolgate.core.change import Change
    from toolgate.core.decision import Decision
    from toolgate.core.errors import CallError, Code
    from toolgate.core.names import Registry
    from toolgate.core.paths import Places
    from toolgate.core.rendering import Reader
    from toolgate.core.tool import Arguments
    from toolgate.gate.authorize import Repeats
    from toolgate.ledger.ledger import Ledger
    from toolgate.ledger.owners import Owners
    from toolgate.storage.port import Row

if TYPE_CHECKING:
    from toolgate.core.caller import Caller

log = logging.getLogger("toolgate.gate")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a result may reach the model."""

    tokens: int = 25_000
    bytes: int = 1_000_000
    args: Bounds = field(default_factory=Bounds)
    """How much a call may bring, whatever its tool says."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a tool may run: what is said for it by name, else its own time, never more than the most."""

    default: float = DEFAULT_TIMEOUT
    most: float = 600.0
    by_tool: Mapping[str, float] = field(default_factory=dict)

    def of(self, tool: Tool) -> float:
        own = self.default if tool.timeout == DEFAULT_TIMEOUT else tool.timeout
        return min(self.by_tool.get(tool.name, own), self.most)


@dataclass
class Services:
    """Everything the stages need, handed in by the composition root."""

    registry: Registry
    rules: Callable[[], Rules]
    ledger: Ledger
    desk: Desk
    owners: Owners
    redactor: Redactor
    files: Files | None = None
    budget: Budget = field(default_factory=Budget)
    timeouts: Timeouts = field(default_factory=Timeouts)
    cache: Cache = field(default_factory=Cache)
    scanner: Scanner = field(default_factory=ContentScanner)
    places: Places = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.unrecorded = Unrecorded(self.ledger, self.owners.me)
        self.earned = EarnedLimits(self)


@final
@dataclass(slots=True)  # not frozen: one is made for nearly every call
class Done:
    """The tool returned."""

    value: Any
    cached: bool = False
    reconciled: str = ""
    """How we know that it happened, if the tool did not get to say so."""


@dataclass(frozen=True, slots=True)
class Broke:
    """It did not happen, or the tool says it failed."""

    code: Code
    message: str
    fix: str = ""
    data: Any = None
    """What the tool has to show for it all the same, such as what a program printed before its time was up."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It may or may not have happened."""

    code: Code
    message: str
    fix: str = ""


Outcome = Done | Broke | Lost


NOTHING = Scan()
MAX_NAME = 1024
"""Characters of a tool's name that are looked at: more than any has, with the server that it is of."""


class Flow:
    """What most calls never set are attributes of the class: one is made for every call."""

    tool: Tool | None = None
    args: Arguments | None = None
    call: Call | None = None
    hidden: tuple[str, ...] = ()
    """The call's own secrets, which nothing that leaves the gate may repeat."""
    facts: Facts | None = None
    effectful = False
    decision: Decision | None = None
    rules: Rules | None = None
    """The policy that made the decision."""
    preview: str = ""
    scan: Scan = NOTHING
    masked: Mapping[str, Any] | None = None
    """The arguments as they are recorded, where the scan saw secrets."""
    recorded_preview: str | None = None
    """The preview as it is recorded, where that is not how it is shown."""
    caller: Caller | None = None
    """Whoever can be asked back, if anybody."""
    asked_again: str = ""
    question: str = ""
    earned: Mapping[str, int] = {}
    """Steps that records have earned, by the scope of a limit that would have refused the call."""
    repeats: Repeats | None = None
    """What the run of this call did before; only where the caller names a run."""
    claimed: str = ""
    """The claim that it began with."""
    started: Row | None = None
    outcome: Outcome | None = None
    running: bool = False
    """The tool has been called: from here on an interruption leaves the outcome in doubt."""
    cancelled: bool = False
    data: Any = None
    text: str = ""
    """The result as JSON, and about how many tokens that is."""
    tokens: int = 0
    reader: Reader | None = None
    """How the caller is handed the result, if not as it is."""
    read: str | None = None
    truncated: bool = False
    settled: Row | None = None
    result: Result | None = None
    """Set by a stage that ends the call early, such as a stored result under the same key."""
    turns: int = 0
    took_us: int = 0
    """How long it took until it was settled, as the journal has it."""

    def __init__(
        self, name: str, raw: Mapping[str, Any], persona: str, key: str | None, trail: Trail, wait: bool,
        call_id: str, progress: Callable[[float, str], None] | None = None,
        part: Callable[[Any], None] | None = None,
    ) -> None:  # fmt: skip
        self.name = name[:MAX_NAME] if type(name) is str else name
        self.raw = raw
        self.persona = persona
        self.key = key
        self.trail = trail
        self.wait = wait
        self.call_id = call_id
        self.progress = progress
        self.part = part
        self.begun_ns = time.perf_counter_ns()

    @property
    def duration_us(self) -> int:
        return (time.perf_counter_ns() - self.begun_ns) // 1000

    @property
    def claim(self) -> str:
        """The idempotency scope: a persona's key means nothing to another persona. Tools that opt in are
        deduplicated by what the call is, within its conversation, where the caller gives no key."""
        if self.key and (self.tool is None or self.tool.replays):
            return f"key/{self.persona}/{self.key}"
        if self.tool is not None and self.tool.scoped and self.call is not None:
            return f"scope/{self.persona}/{self.trail.conversation}/{self.call.digest}"
        return ""

    def context(self) -> Context:
        assert self.tool is not None
        more: dict[str, Any] = {"progress": self.progress} if self.progress is not None else {}
        if self.part is not None:
            more["part"] = self.part
        if self.caller is not None:
            more["caller"] = self.caller
        if self.key:
            more["key"] = self.key
        trail = self.trail
        return Context(
            self.call_id, self.persona, self.tool.name, trail.conversation, trail.reason, hidden=self.hidden, **more
        )  # fmt: skip

    def meta(self, event: int | None = None) -> Meta:
        cached = type(self.outcome) is Done and self.outcome.cached
        took = self.took_us or self.duration_us
        return Meta(self.call_id, event, took / 1000, self.tokens, cached, self.truncated)

    def refused(self, error: CallError, event: int | None) -> Result:
        return Result.refused(
            self.tool.name if self.tool else encodable(str(self.name)[:128]), error, self.meta(event)
        )


Stage = Callable[[Services, Flow], Any]
"""Looks at the flow and moves it on, waiting where it must; gives back an earlier stage to return to, or None."""


async def invoke(flow: Flow, function: Handler, *values: Any, **named: Any) -> Any:
    """Call one of a tool's functions: with its Context if it wants one, in a thread if it blocks."""
    if inspect.iscoroutinefunction(function):
        return await function(*values, **with_context(flow, function, named))
    value = await in_thread(flow, function, *values, **named)
    return await value if inspect.isawaitable(value) else value


def in_thread(flow: Flow, function: Handler, *values: Any, **named: Any) -> asyncio.Future[Any]:
    """What a blocking function returns, which may still be awaitable."""
    named = with_context(flow, function, named)
    call = partial(copy_context().run, function, *values, **named)
    return asyncio.get_running_loop().run_in_executor(None, call)


def with_context(flow: Flow, function: Handler, named: dict[str, Any]) -> dict[str, Any]:
    assert flow.tool is not None
    wanted = flow.tool.wants.get(function)
    return {**named, wanted: flow.context()} if wanted else named


def tell(flow: Flow, services: Services, message: str, *values: object) -> None:
    """Log the exception that is being handled, without any secret."""
    told = traceback.format_exc()
    if large(told):  # looking for secrets in it would hold up everybody
        told = f"[left out: a trace of {len(told):,} characters]"
        log.error(message, *values, extra={"call": flow.call_id, "trace": told})
        return
    trace = str(services.redactor.redact(told, flow.hidden))
    if trace == told:
        log.exception(message, *values, extra={"call": flow.call_id})
    else:
        log.error(message, *values, extra={"call": flow.call_id, "trace": trace})


SMALL = 16 << 10
"""Bytes of files that are compared and scanned where we stand; more would hold up everybody else."""


async def maybe_in_thread(change: Change, work: Callable[[], T]) -> T:
    """In a thread if the contents are large; they are ours to look at, and other calls go on."""
    size = sum(len(side) for file in change.files for side in (file.before, file.after) if side)
    return work() if size <= SMALL else await apart(work)


async def whatever_comes(flow: Flow, work: Callable[[], T]) -> T:
    """In a thread, after the tool has run: whoever is no longer interested gets it settled all the same."""
    working = apart(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait((working,))
        flow.cancelled = True
        return working.result()


def arguments(args: Arguments) -> dict[str, Any]:
    """The validated arguments as the tool's function takes them."""
    return dict(args.__dict__)
