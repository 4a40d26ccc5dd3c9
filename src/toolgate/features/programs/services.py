"""ProgramServices: what programs are run with, and what leads out of the sandbox for one of them.

The sandbox is made at the first call: until then nothing is started.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Context
from toolgate.core.decision import Verdict
from toolgate.core.errors import NotAllowed, NotFound, Unavailable
from toolgate.core.event import Requested
from toolgate.core.ports import Facts
from toolgate.core.target import Reach
from toolgate.feature import FeatureContext
from toolgate.features.programs.applying import Proposals
from toolgate.features.programs.config import SandboxSpec
from toolgate.features.programs.viewing import check_path, environment_of
from toolgate.ledger.ledger import Ledger
from toolgate.sandbox.job import Broker, Egress, Environment, Job, Language, Limits, Request, Sandbox, View
from toolgate.secrets.redactor import Stream, VaultRedactor
from toolgate.secrets.vault import SecretBroker, Vault

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs
    from toolgate.features.programs.arguments import NetworkGrant, ProgramRequest
    from toolgate.features.programs.environments import FoundEnvironment
    from toolgate.ledger.traces import TracedProgram

_WRITTEN = 3
"""The last step of policy at which the owner has spoken of a tool by its name, to stop it."""


class ProgramServices:
    def __init__(self, context: FeatureContext) -> None:
        assert context.files is not None
        self._context, self._kernel, self._gate = context, context.services, context.gate
        redactor = self._kernel.redactor
        assert isinstance(redactor, VaultRedactor)
        self._redactor = redactor
        self.files = context.files
        self.ledger = self._kernel.ledger
        self.proposals = Proposals(context.directory / "proposals", self.files, self.ledger.clock.now)
        self.redact = redactor.redact
        self._sandbox: Sandbox | None = None

    @property
    def _spec(self) -> SandboxSpec:
        found: SandboxSpec = self._context.section("sandbox")
        return found

    @property
    def jobs(self) -> Jobs:
        """For programs that run in the background."""
        return self._gate.jobs

    def sandbox(self) -> Sandbox:
        """Starts it if need be; `Unavailable`, with what to do, where there can be none."""
        if sys.platform != "linux":
            raise Unavailable(
                f"programs are run on Linux only, and this is {sys.platform}", "use Linux or WSL2"
            )
        if self._sandbox is None:
            from toolgate.sandbox.host import Host

            host = Host(self._spec.mode, warm=self._spec.warm)
            self._context.stack.push_async_callback(host.close)
            self._sandbox = host
        return self._sandbox

    def longest_s(self, tool: str) -> float:
        """How long the gate lets a tool run: a program's own time is a little less."""
        return self._kernel.timeouts.of(self._kernel.registry.resolve(tool))

    def limits(self, language: Language, seconds: float) -> Limits:
        """The owner's, and the time that the call asks for, which the owner can only shorten. Without a word of the owner's
        the processor's time follows from it."""
        given = self._spec.limits
        said = given.model_fields_set
        wall = min(seconds, given.wall_s) if "wall_s" in said else seconds
        cpu = given.cpu_s if "cpu_s" in said else round(wall) + 1
        from toolgate.sandbox.program import SHELL_LIMITS

        usual = given.limits(SHELL_LIMITS.processes if language == "shell" else 1)
        return replace(usual, wall_s=wall, cpu_s=cpu)

    def packages(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Where the Python packages of these names are, if programs may have them."""
        allowed = set(map(_normal_name, self._spec.packages))
        for name in names:
            if _normal_name(name) not in allowed:
                raise NotAllowed(
                    f"programs may not have the package {name!r}",
                    "the owner lists packages in `sandbox: {packages: [...]}` of toolgate.yaml",
                )
        from toolgate.sandbox import packages

        found = packages.find(names)
        if found.missing:
            missing = " ".join(found.missing)
            raise Unavailable(f"not installed: {missing}", f"pip install {missing}")
        return found.paths

    def check_runs(self, wanted: ProgramRequest) -> Environment | None:
        """Blocking. Refuses what could not run as it is asked for, before anybody is asked about it: secrets, packages,
        hosts, walls, programs. Gives the environment that it would have."""
        check_known(self._redactor.vault, wanted.grant.secrets)
        packages = self.packages(wanted.packages) if wanted.packages else ()
        check_hosts(wanted.grant.hosts, self._spec.network.private)
        environment = self.environment().environment if wanted.project != "none" else None
        view = None
        if wanted.project != "none":
            view = View(self.files.mounts.directory("project"), environment=environment)
        limits = self.limits(wanted.language, wanted.seconds)
        job = Job(wanted.language, "", wanted.argv, limits=limits, view=view, packages=packages)
        self.sandbox().check(job, networked=bool(wanted.grant.hosts))
        if wanted.argv and "/" in wanted.argv[0]:
            check_path(self.files.mounts, wanted.argv[0], view, starts_in_project=not wanted.files)
        return environment

    def environment(self) -> FoundEnvironment:
        """Blocking. The project's own packages and programs, as they are now."""
        return environment_of(self.files.mounts, self._spec.python, self._spec.node)

    def may_save(self, persona: str) -> bool:
        """Whether this persona has the scratch mount, where files that a program left are put."""
        return all("scratch" in member.mounts for member in self._gate.policy.line(persona))

    def network(self, grant: NetworkGrant, context: Context) -> NetworkAccess:
        """Refuses what the vault or the owner does not let out, before anything runs."""
        redactor = self._redactor
        check_known(redactor.vault, grant.secrets)
        broker = SecretBroker(redactor.vault, grant.secrets)
        journal = RequestJournal(self.ledger, context)
        if not grant.hosts:
            return NetworkAccess(None, broker, lambda: False, journal.recorded)
        from toolgate.sandbox.egress.grant import (
            HostGrant as Hosts,  # the proxy is loaded by those who use it
        )
        from toolgate.sandbox.egress.proxy import Proxy

        egress = Proxy(
            Hosts.parse(grant.hosts, grant.methods or None),
            private=self._spec.network.private,
            secrets=SecretInjection(broker, redactor) if grant.secrets else None,
            redact=lambda text: str(redactor.redact(text)),
            on_request=journal,
        )
        return NetworkAccess(egress, broker, lambda: egress.exhausted, journal.recorded)

    def secrets_in(self, content: bytes) -> frozenset[str]:
        """The names of the secrets that a content holds, in whatever form."""
        vault = self._redactor.vault
        return frozenset(name for name, _, _ in vault.within(content)) if vault is not None else frozenset()

    async def trace(self, execution: TracedProgram) -> None:
        await self._gate.traces.add(execution)

    def check_owner_allows(
        self, context: Context, language: Language, code: str, args: Mapping[str, Any]
    ) -> None:
        """One program has two names. What the owner wrote about `exec.*`, in `deny` or in rules, holds for a call of
        `code.execute` with these arguments too."""
        registry, policy = self._kernel.registry, self._gate.policy
        named, own = registry.resolve(f"exec.{language}"), registry.resolve(context.tool)
        closed = named.dump_args(named.validate({"code": code}))
        said = policy.decide(Facts(context.persona, named, closed, named.effects_for(closed)))
        here = policy.decide(Facts(context.persona, own, args, own.effects_for(args)))
        asks = said.verdict is Verdict.ASK and here.verdict is Verdict.ALLOW
        if said.step <= _WRITTEN and (said.verdict is Verdict.DENY or asks):
            raise NotAllowed(
                f"{context.persona} may not run this as {own.name}: {said.reason}", f"call {named.name} itself",
                data={"rule": said.rule}, certain=True,
            )  # fmt: skip


def _normal_name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@dataclass(frozen=True, slots=True)
class NetworkAccess:
    """What leads out of the sandbox for one program."""

    egress: Egress | None
    broker: Broker | None
    exhausted: Callable[[], bool]
    """Whether it made more requests than it may."""
    recorded: Callable[[], Awaitable[None]]
    """Waits until every request that was made is in the journal."""


class SecretInjection:
    """The broker and the redactor, as the proxy asks for them."""

    def __init__(self, broker: SecretBroker, redactor: VaultRedactor) -> None:
        self._broker, self._redactor = broker, redactor

    @property
    def placeholders(self) -> Mapping[str, str]:
        return self._broker.placeholders

    def resolve(self, name: str, place: str) -> str | None:
        return self._broker.resolve(name, place)

    def stream(self, names: Sequence[str]) -> Stream:
        return self._redactor.stream()


class RequestJournal:
    """Every request becomes an event as it ends. If one cannot be recorded, the next ends the program's network, and the
    call fails: nothing goes out that nobody will know of."""

    def __init__(self, ledger: Ledger, context: Context) -> None:
        self._ledger, self._context = ledger, context
        self._writing: list[asyncio.Task[None]] = []

    def __call__(self, request: Request) -> None:
        for task in self._writing:
            if task.done():
                task.result()
        self._writing = [task for task in self._writing if not task.done()]
        self._writing.append(asyncio.ensure_future(self._ledger.tell(self._event(request))))

    async def recorded(self) -> None:
        await asyncio.gather(*self._writing)

    def _event(self, request: Request) -> Requested:
        context = self._context
        return Requested(
            call=context.call_id, persona=context.persona, tool=context.tool, conversation=context.conversation,
            method=request.method, url=request.url, allowed=request.allowed, status=request.status,
            reason=request.reason, address=request.address, sent=request.sent, received=request.received,
            injected=list(request.injected),
        )  # fmt: skip


def check_hosts(hosts: Sequence[str], private: Sequence[str]) -> None:
    """Refuses places that no program may reach, where that is plain from what is written."""
    if hosts:
        from toolgate.sandbox.egress.addresses import check_literal  # the proxy is loaded by those who use it

        for host in hosts:
            reach = Reach.parse(host)
            if not reach.below:
                check_literal(reach.host, reach.ports, private)


def check_known(vault: Vault | None, names: Sequence[str]) -> None:
    """Refuses names of secrets that there are not."""
    for name in names:
        if vault is None or vault.get(name) is None:
            known = ", ".join(vault.names() if vault is not None else ()) or "none"
            raise NotFound(
                f"there is no secret {name}",
                f"there are: {known}; a human sets it: `toolgate secrets set {name}`",
            )
