"""Putting together what programs are run with. The sandbox is made at the first call: until then nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from toolgate.config import SandboxSpec
from toolgate.core.errors import Unavailable
from toolgate.core.tool import Tool
from toolgate.gate.flow import Services
from toolgate.ledger.traces import Execution
from toolgate.policy.policy import Policy
from toolgate.sandbox import packages
from toolgate.sandbox.job import Sandbox
from toolgate.secrets.advice import advise
from toolgate.secrets.redactor import VaultRedactor
from toolgate.toolsets import exec as programs
from toolgate.toolsets.exec import doors
from toolgate.toolsets.exec.kept import Proposals
from toolgate.toolsets.exec.means import Means
from toolgate.workspace.files import WorkspaceFiles


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


def tools_of(
    services: Services,
    files: WorkspaceFiles,
    state: Path,
    stack: AsyncExitStack,
    policy: Callable[[], Policy],
    spec: Callable[[], SandboxSpec],
    trace: Callable[[Execution], Awaitable[Any]],
) -> tuple[list[Tool], Proposals]:
    """The tools, and the proposals whose contents must be kept."""
    kept = Proposals(state / "proposals", files, services.ledger.clock.now)
    redactor = services.redactor
    assert isinstance(redactor, VaultRedactor)
    means = Means(
        sandbox=Lazy(stack),
        files=files,
        kept=kept,
        most=lambda name: services.timeouts.of(services.registry.resolve(name)),
        may_save=lambda persona: all("scratch" in member.mounts for member in policy().line(persona)),
        doors=lambda grant, context: doors.opened(
            grant, context, services.ledger, redactor.vault, redactor, spec().network.private
        ),
        advise=advise,
        redact=redactor.redact,
        packages=lambda names: packages.given(names, spec().packages),
        trace=trace,
    )
    return programs.toolset(means, services.ledger), kept
