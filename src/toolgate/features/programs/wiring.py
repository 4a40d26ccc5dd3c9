"""Putting together what programs are run with. The sandbox is made at the first call: until then nothing is started."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Context
from toolgate.core.decision import Verdict
from toolgate.core.errors import NotAllowed, Unavailable
from toolgate.core.names import Registry
from toolgate.core.ports import Facts
from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext
from toolgate.features.programs import applying, code_execute, network_access, programs
from toolgate.features.programs.config import SandboxSpec
from toolgate.features.programs.proposal_store import Proposals
from toolgate.features.programs.services import Means
from toolgate.policy.policy import Policy
from toolgate.sandbox.job import Language, Limits, Sandbox
from toolgate.secrets.advice import advise
from toolgate.secrets.redactor import VaultRedactor
from toolgate.secrets.vault import Vault

if TYPE_CHECKING:
    from toolgate.ledger.traces import Traces


_WRITTEN = 3
"""The last step of policy at which the owner has spoken of a tool by its name, to stop it."""


class Lazy:
    def __init__(self, stack: AsyncExitStack, spec: Callable[[], SandboxSpec]) -> None:
        self._stack, self._spec = stack, spec
        self._host: Sandbox | None = None

    def __call__(self) -> Sandbox:
        if sys.platform != "linux":
            raise Unavailable(
                f"programs are run on Linux only, and this is {sys.platform}", "use Linux or WSL2"
            )
        if self._host is None:
            from toolgate.sandbox.host import Host

            spec = self._spec()
            host = Host(spec.mode, warm=spec.warm)
            self._stack.push_async_callback(host.close)
            self._host = host
        return self._host


def open_traces(context: FeatureContext) -> Traces:
    """The programs that were run: `add` stores one, in redacted words."""
    from toolgate.ledger.traces import Traces
    from toolgate.storage.executions import Keep

    kept, ledger = context.section("traces"), context.services.ledger
    return Traces(ledger.backend, ledger.clock, Keep(kept.days, kept.rows), kept.text_bytes)


def tools(context: FeatureContext) -> list[Tool]:
    services, files, gate = context.services, context.files, context.gate
    assert files is not None

    def policy() -> Policy:
        return gate.policy

    def spec() -> SandboxSpec:
        found: SandboxSpec = context.section("sandbox")
        return found

    kept = Proposals(context.directory / "proposals", files, services.ledger.clock.now)
    redactor = services.redactor
    assert isinstance(redactor, VaultRedactor)
    means = Means(
        sandbox=Lazy(context.stack, spec),
        files=files,
        kept=kept,
        most=lambda name: services.timeouts.of(services.registry.resolve(name)),
        may_save=lambda persona: all("scratch" in member.mounts for member in policy().line(persona)),
        doors=lambda grant, context: network_access.opened(
            grant, context, services.ledger, redactor.vault, redactor, spec().network.private
        ),
        known=lambda names: network_access.check_known(redactor.vault, names),
        advise=advise,
        redact=redactor.redact,
        packages=lambda names: _packages(names, spec().packages),
        limits=lambda language, seconds: _limits(spec(), language, seconds),
        trace=lambda execution: gate.traces.add(execution),
        jobs=lambda: gate.jobs,
        heed=lambda context, language, code, args: _heed(
            services.registry, policy(), context, language, code, args
        ),
        held=lambda data: _names_in(redactor.vault, data),
    )

    return [
        *programs.toolset(means),
        *applying.toolset(files, kept),
        *code_execute.toolset(means, services.ledger),
    ]


def _limits(spec: SandboxSpec, language: Language, seconds: float) -> Limits:
    """The owner's, and the time that the call asks for, which the owner can only shorten. Without a word of the owner's
    the processor's time follows from it."""
    said = spec.limits.model_fields_set
    wall = min(seconds, spec.limits.wall_s) if "wall_s" in said else seconds
    cpu = spec.limits.cpu_s if "cpu_s" in said else round(wall) + 1
    from toolgate.sandbox.program import SHELL_LIMITS

    usual = spec.limits.limits(SHELL_LIMITS.processes if language == "shell" else 1)
    return replace(usual, wall_s=wall, cpu_s=cpu)


def _heed(
    registry: Registry, policy: Policy, context: Context, language: Language, code: str, args: Mapping[str, Any]
) -> None:  # fmt: skip
    """One program has two names. What the owner wrote about `exec.*`, in `deny` or in rules, holds for both."""
    named, own = registry.resolve(f"exec.{language}"), registry.resolve(context.tool)
    closed = named.validate({"code": code}).model_dump(mode="json")
    said = policy.decide(Facts(context.persona, named, closed, named.effects_for(closed)))
    here = policy.decide(Facts(context.persona, own, args, own.effects_for(args)))
    asks = said.verdict is Verdict.ASK and here.verdict is Verdict.ALLOW
    if said.step <= _WRITTEN and (said.verdict is Verdict.DENY or asks):
        raise NotAllowed(
            f"{context.persona} may not run this as {own.name}: {said.reason}", f"call {named.name} itself",
            data={"rule": said.rule}, certain=True,
        )  # fmt: skip


def _names_in(vault: Vault | None, data: bytes) -> frozenset[str]:
    return frozenset(name for name, _, _ in vault.within(data)) if vault is not None else frozenset()


def _packages(wanted: Sequence[str], allowed: Sequence[str]) -> tuple[Path, ...]:
    known = {_plain(name) for name in allowed}
    for name in wanted:
        if _plain(name) not in known:
            raise NotAllowed(
                f"programs may not have the package {name!r}",
                "the owner lists packages in `sandbox: {packages: [...]}` of toolgate.yaml",
            )
    from toolgate.sandbox import packages

    found = packages.find(wanted)
    if found.missing:
        names = " ".join(found.missing)
        raise Unavailable(f"not installed: {names}", f"pip install {names}")
    return found.paths


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
