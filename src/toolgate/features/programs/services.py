"""ProgramServices: what programs are run with. The sandbox is made at the first call: until then nothing is started."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Context
from toolgate.core.decision import Verdict
from toolgate.core.errors import NotAllowed, Unavailable
from toolgate.core.ports import Facts
from toolgate.feature import FeatureContext
from toolgate.features.programs import network_access
from toolgate.features.programs.applying import Proposals
from toolgate.features.programs.config import SandboxSpec
from toolgate.features.programs.network_access import NetworkAccess, NetworkGrant
from toolgate.features.programs.viewing import check_path, environment_of
from toolgate.sandbox.job import Environment, Job, Language, Limits, Sandbox, View
from toolgate.secrets.redactor import VaultRedactor

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs
    from toolgate.features.programs.arguments import ProgramRequest
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
        self.check_secrets(wanted.grant.secrets)
        packages = self.packages(wanted.packages) if wanted.packages else ()
        network_access.check_hosts(wanted.grant.hosts, self._spec.network.private)
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
        private = self._spec.network.private
        return network_access.open_network(grant, context, self.ledger, self._redactor, private)

    def check_secrets(self, names: Sequence[str]) -> None:
        """Refuses names of secrets that there are not."""
        network_access.check_known(self._redactor.vault, names)

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
