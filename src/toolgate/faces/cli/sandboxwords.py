"""What `doctor` says about the sandbox: which walls stand, why not stronger ones, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from toolgate.features.programs.config import SandboxSpec
from toolgate.sandbox import packages, probe

Finding = tuple[Literal["ok", "warn", "bad"], str, str, str]
_WORDS = {
    "root": "root: namespaces, a user for each program, Landlock, seccomp",
    "userns": "userns: namespaces made by this user, Landlock, seccomp",
    "landlock": "landlock: Landlock and seccomp only; programs start no others, have no network and no project view",
}


def sandbox_findings(spec: SandboxSpec) -> Iterator[Finding]:
    standing = probe.look(spec.mode)
    reasons = "; ".join(f"not {mode}: {why}" for mode, why in standing.refused.items())
    if standing.mode is None:
        yield "warn", "sandbox", f"no program can run ({reasons})", probe.fix()
        return
    found = _WORDS[standing.mode] + (f" ({reasons})" if reasons else "")
    weak = standing.mode == "landlock" and spec.mode == "auto"
    yield "warn" if weak else "ok", "sandbox", found, probe.fix()
    if not standing.landlock:
        fix = "boot a kernel with Landlock (lsm=landlock,…): it is one wall more"
        yield "warn", "landlock", "the kernel has none; the other walls stand", fix
    missing = packages.find(spec.packages).missing
    if missing:
        fix = f"pip install {' '.join(missing)}, or take them out of sandbox.packages"
        yield "warn", "sandbox packages", f"not installed: {', '.join(missing)}", fix
    elif spec.packages:
        yield "ok", "sandbox packages", ", ".join(spec.packages), ""
