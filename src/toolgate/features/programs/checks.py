"""Check of the sandbox for `toolgate doctor`: which walls stand, why not stronger ones, and what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from toolgate.features.programs.config import SandboxSpec
from toolgate.kits.terminal.checkup import Diagnosis, Patient
from toolgate.sandbox import packages, probe

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


async def sandbox(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Every mode is tried, with a process that does nothing."""
    spec = patient.setup.config.sandbox if patient.setup is not None else SandboxSpec()
    for finding in await asyncio.to_thread(lambda: list(sandbox_findings(spec))):
        yield finding


CHECKS = (sandbox,)
