"""A program that is not Python code: what is executed, and what it may see and execute while it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toolgate.core.errors import InvalidArgs, Unavailable
from toolgate.sandbox import interpreter
from toolgate.sandbox.inside.order import PACKAGES
from toolgate.sandbox.job import Broker, Job, Limits, Outcome

LIMITS = Limits(processes=32)
"""For a shell, which without others can do little."""
_SHELLS = ("/bin/sh", "/usr/bin/sh")


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    """The first is a path, inside the walls as outside."""
    ro_paths: tuple[str, ...] = ()
    exec_paths: tuple[str, ...] = ()
    """Read-only, too. A dynamically linked program also needs its loader: `interpreter.loaders()`."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    finish: Callable[[Outcome], Outcome] = lambda outcome: outcome
    """What the runtime adds to an outcome, or takes out of it."""


Made = Callable[[Job, bool, Broker | None], Program]
"""From a job, whether it may reach the egress proxy, and who answers for its secrets."""


def shell(job: Job, networked: bool, broker: Broker | None) -> Program:
    """A script, which is put where only the program sees it, or an argv; either sees the system's programs."""
    argv = (_found(job.argv[0]), *job.argv[1:]) if job.argv else (_sh(),)
    env = {"PYTHONPATH": PACKAGES} if job.packages else {}  # for whatever Python it starts
    return Program(argv, interpreter.settings(), interpreter.commands(), env, job.stdin)


def _found(name: str) -> str:
    """As `execvp` would, on the path that programs have; a path is taken as it is."""
    if "/" in name:
        return name
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        if os.access(f"{directory}/{name}", os.X_OK):
            return f"{directory}/{name}"
    raise InvalidArgs(f"there is no program {name[:80]!r}", "name one in /usr/bin, or give a path")


def _sh() -> str:
    for path in _SHELLS:
        if os.path.exists(path):
            return path
    raise Unavailable("there is no /bin/sh", "install one, or run an argv")
