"""Check of the sandbox for `toolgate doctor`: which walls stand, why not stronger ones, and what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from toolgate.features.programs.config import SandboxSpec
from toolgate.kits.terminal.checkup import Diagnosis, Patient
from toolgate.policy.hard import MountRules
from toolgate.policy.model import MountSpec
from toolgate.sandbox import packages, probe
from toolgate.sandbox.job import Environment

_WORDS = {
    "root": "root: namespaces, a user for each program, Landlock, seccomp",
    "userns": "userns: namespaces made by this user, Landlock, seccomp",
    "landlock": "landlock: Landlock and seccomp only; programs start no others, have no network and no project view",
}


def sandbox_findings(spec: SandboxSpec) -> Iterator[Diagnosis]:
    standing = probe.look(spec.mode)
    reasons = "; ".join(f"not {mode}: {why}" for mode, why in standing.refused.items())
    if standing.mode is None:
        yield Diagnosis("warn", "sandbox", f"no program can run ({reasons})", probe.fix())
        return
    found = _WORDS[standing.mode] + (f" ({reasons})" if reasons else "")
    weak = standing.mode == "landlock" and spec.mode == "auto"
    yield Diagnosis("warn" if weak else "ok", "sandbox", found, probe.fix())
    if not standing.landlock:
        fix = "boot a kernel with Landlock (lsm=landlock,…): it is one wall more"
        yield Diagnosis("warn", "landlock", "the kernel has none; the other walls stand", fix)
    missing = packages.find(spec.packages).missing
    if missing:
        fix = f"pip install {' '.join(missing)}, or take them out of sandbox.packages"
        yield Diagnosis("warn", "sandbox packages", f"not installed: {', '.join(missing)}", fix)
    elif spec.packages:
        yield Diagnosis("ok", "sandbox packages", ", ".join(spec.packages))


def environment_findings(spec: SandboxSpec, root: Path, mount: MountSpec) -> Iterator[Diagnosis]:
    from toolgate.features.programs.environments import find

    found = find(root / mount.path, MountRules.of("project", mount), spec.python, spec.node, [root])
    fix = "set `sandbox: {python: .venv}` (or `node: …`) in toolgate.yaml, or false for none"
    for problem in found.problems:
        yield Diagnosis("warn", "project environment", problem, fix)
    if found.environment is not None:
        yield Diagnosis("ok", "project environment", _described(found.environment))
    elif not found.problems:
        yield Diagnosis(
            "ok", "project environment", "none found: programs have the system's Python and packages"
        )


def _described(found: Environment) -> str:
    parts = [
        f"Python {found.version} of {found.python}" + (f" (made from {found.base})" if found.base else "")
    ]
    parts = (parts if found.python else []) + ([found.node] if found.node else [])
    return f"{', '.join(parts)}: `exec.shell` with `project: read` runs its programs, in /project"


async def environment(patient: Patient) -> AsyncIterator[Diagnosis]:
    """What programs of the project would be run with; nothing of it is run here."""
    config = patient.setup.config if patient.setup is not None else None
    if config is not None and "project" in config.mounts:
        project = config.mounts["project"]
        for finding in environment_findings(config.sandbox, patient.root, project):
            yield finding


async def sandbox(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Every mode is tried, with a process that does nothing."""
    spec = patient.setup.config.sandbox if patient.setup is not None else SandboxSpec()
    for finding in await asyncio.to_thread(lambda: list(sandbox_findings(spec))):
        yield finding


CHECKS = (sandbox, environment)
