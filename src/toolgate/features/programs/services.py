"""What programs are run with. Handed in by the composition root; the sandbox itself is made at the first call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Context
from toolgate.features.programs.proposal_store import Proposals
from toolgate.sandbox.job import Broker, Egress, Language, Limits, Sandbox
from toolgate.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs
    from toolgate.ledger.traces import Execution


@dataclass(frozen=True, slots=True)
class Grant:
    """What a call asks to reach outside: hosts, methods, and the secrets that may be put into requests."""

    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """None named: every method."""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doors:
    """What leads out of the sandbox for one program."""

    egress: Egress | None
    broker: Broker | None
    exhausted: Callable[[], bool]
    """Whether it made more requests than it may."""
    recorded: Callable[[], Awaitable[None]]
    """Waits until every request that was made is in the journal."""


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
    doors: Callable[[Grant, Context], Doors]
    """Refuses what the vault or the owner does not let out, before anything runs."""
    known: Callable[[Sequence[str]], None]
    """Refuses names of secrets that there are not."""
    advise: Callable[[Language, str], list[str]]
    """What looks wrong about a program before it runs: advice for whoever approves it, and no wall."""
    redact: Callable[[Any], Any]
    packages: Callable[[Sequence[str]], tuple[Path, ...]]
    """Where the Python packages of these names are, if programs may have them."""
    limits: Callable[[Language, float], Limits]
    """What a program in this language may use, that asks for so many seconds."""
    trace: Callable[[Execution], Awaitable[Any]]
    jobs: Callable[[], Jobs]
    """For programs that run in the background."""
    heed: Callable[[Context, Language, str, Mapping[str, Any]], None]
    """Refuses to run this code for a call of `code.execute` with these arguments, where the owner has said so of
    `exec.python` and its like."""
    held: Callable[[bytes], frozenset[str]]
    """The names of the secrets that a content holds, in whatever form."""
