"""Putting together what programs are run with. The sandbox is made at the first call: until then nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolgate.core.context import Context
from toolgate.core.errors import Unavailable
from toolgate.core.tool import Tool
from toolgate.gate.flow import Services
from toolgate.ledger.ledger import Ledger
from toolgate.policy.policy import Policy
from toolgate.sandbox.job import Sandbox
from toolgate.secrets.advice import advise
from toolgate.secrets.redactor import VaultRedactor
from toolgate.secrets.vault import Vault
from toolgate.toolsets import exec as programs
from toolgate.toolsets.exec.kept import Proposals
from toolgate.toolsets.exec.means import Grant, Means, Nothing, Reached
from toolgate.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from toolgate.jobs.jobs import Jobs
    from toolgate.ledger.traces import Traces


class Lazy:
    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._host: Sandbox | None = None

    def __call__(self) -> Sandbox:
        if sys.platform != "linux":
            raise Unavailable(
                f"programs are run on Linux only, and this is {sys.platform}", "use Linux or WSL2"
            )
        if self._host is None:
            from toolgate.sandbox.host import Host

            host = Host()
            self._stack.push_async_callback(host.close)
            self._host = host
        return self._host


class Around(Protocol):
    """What is made when it is first used."""

    @property
    def traces(self) -> Traces: ...

    @property
    def jobs(self) -> Jobs: ...


def _reaching(
    vault: Vault | None, redactor: VaultRedactor, ledger: Ledger, private: tuple[str, ...]
) -> Callable[[Grant, Context], Reached]:
    def reach(grant: Grant, context: Context) -> Reached:
        if not grant.hosts and not grant.secrets:
            return Nothing()
        from toolgate.toolsets.exec.reaching import Reaching  # the proxy is loaded by those who use it

        return Reaching(vault, redactor, ledger, private)(grant, context)

    return reach


def tools_of(
    services: Services,
    files: WorkspaceFiles,
    state: Path,
    stack: AsyncExitStack,
    policy: Callable[[], Policy],
    around: Around,
    private: Sequence[str] = (),
) -> tuple[list[Tool], Proposals]:
    redactor = services.redactor
    assert isinstance(redactor, VaultRedactor)
    vault = redactor.vault
    kept = Proposals(state / "proposals", files, services.ledger.clock.now)
    means = Means(
        sandbox=Lazy(stack),
        files=files,
        kept=kept,
        most=lambda name: services.timeouts.of(services.registry.resolve(name)),
        reach=_reaching(vault, redactor, services.ledger, tuple(private)),
        trace=lambda execution: around.traces.add(execution),
        jobs=lambda: around.jobs,
        clean=redactor.redact,
        held=lambda data: {name for name, _, _ in vault.within(data)} if vault is not None else (),
        advise=lambda language, code, secrets: advise(language, code) if secrets else [],
        may_save=lambda persona: all("scratch" in member.mounts for member in policy().line(persona)),
    )
    return programs.toolset(means, services.ledger), kept
