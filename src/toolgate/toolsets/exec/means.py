"""What programs are run with. Handed in by the composition root; the sandbox itself is made at the first call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolgate.core.errors import Unavailable
from toolgate.sandbox.job import Broker, Egress, Language, Sandbox
from toolgate.toolsets.exec.kept import Proposals
from toolgate.workspace.files import WorkspaceFiles


@dataclass(frozen=True, slots=True)
class Grant:
    """What a call asks to reach outside: hosts, methods, and the secrets that may be put into requests."""

    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """None named: every method."""
    secrets: tuple[str, ...] = ()


def _no_egress(grant: Grant) -> Egress:
    raise Unavailable("programs cannot reach the network here", "run it without `network`")


def _no_broker(grant: Grant) -> Broker:
    raise Unavailable("there is no vault here", "run it without `secrets`")


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
    egress: Callable[[Grant], Egress] = _no_egress
    broker: Callable[[Grant], Broker] = _no_broker
    """Both refuse what the vault or the owner does not let out, before anything runs."""
    advise: Callable[[Language, str, Sequence[str]], list[str]] = _no_advice
    """What looks wrong about a program before it runs: advice for whoever approves it, and no wall."""
