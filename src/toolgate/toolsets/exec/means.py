"""What programs are run with. Handed in by the composition root; the sandbox itself is made at the first call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.context import Context
from toolgate.sandbox.job import Broker, Egress, Language, Sandbox
from toolgate.toolsets.exec.kept import Proposals
from toolgate.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from toolgate.jobs.jobs import Jobs
    from toolgate.ledger.traces import Execution


@dataclass(frozen=True, slots=True)
class Grant:
    """What a call asks to reach outside: hosts, methods, and the secrets that may be put into requests."""

    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """None named: every method."""
    secrets: tuple[str, ...] = ()


class Reached(Protocol):
    """What a program was given to reach; closed when it has ended."""

    @property
    def egress(self) -> Egress | None: ...

    @property
    def broker(self) -> Broker | None: ...

    @property
    def exhausted(self) -> bool:
        """Whether it made more requests than it may."""
        ...

    async def close(self) -> None: ...


class Nothing:
    """For a program that asked for nothing outside."""

    egress = broker = None
    exhausted = False

    async def close(self) -> None:
        return


def _no_advice(language: Language, code: str, secrets: Sequence[str]) -> list[str]:
    return []


@dataclass(frozen=True, kw_only=True)
class Means:
    sandbox: Callable[[], Sandbox]
    """Starts it if need be; `Unavailable`, with what to do, where there can be none."""
    files: WorkspaceFiles
    kept: Proposals
    most: Callable[[str], float]
    """How long the gate lets a tool run: a program's own time is a little less."""
    may_save: Callable[[str], bool]
    """Whether this persona has the scratch mount, where files that a program left are put."""
    reach: Callable[[Grant, Context], Reached]
    """Refuses what the vault or the owner does not let out, before anything runs."""
    trace: Callable[[Execution], Awaitable[object]]
    """Keeps what a program was and how it ended, for whoever wants to do better next time."""
    jobs: Callable[[], Jobs]
    """For programs that run in the background."""
    clean: Callable[[Any], Any]
    """A value without any secret of the vault."""
    held: Callable[[bytes], Collection[str]]
    """The names of the secrets that a file's content holds, in whatever form."""
    advise: Callable[[Language, str, Sequence[str]], list[str]] = _no_advice
    """What looks wrong about a program before it runs: advice for whoever approves it, and no wall."""
