"""Programs that are not Python code: what is executed, and what any program may see of this machine so that it works."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from toolgate.core.errors import InvalidArgs, Unavailable
from toolgate.sandbox.job import PROJECT, Broker, Job, Limits, Outcome, View

_SHARED = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Where the programs and libraries of the system are, which a shell sees."""
_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/localtime")


@cache
def readable() -> tuple[str, ...]:
    """For Python: its own prefix, shared libraries, time zones, certificates."""
    prefix = Path(sys.base_prefix).resolve()
    own = prefix / "lib" if str(prefix) in ("/usr", "/usr/local") else prefix
    certificates = ssl.get_default_verify_paths()
    more = ["/usr/share/zoneinfo", "/etc/ssl/certs", "/usr/share/ca-certificates", certificates.cafile]
    return existing([str(own), os.path.dirname(os.path.realpath(os.__file__)), *_SHARED, *filter(None, more)])


@cache
def libraries() -> tuple[str, ...]:
    """What a program that is linked dynamically loads."""
    return existing([*_SHARED, "/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/share/zoneinfo"])


@cache
def commands() -> tuple[str, ...]:
    """For a shell: every program that the system has."""
    return existing(SYSTEM)


@cache
def settings() -> tuple[str, ...]:
    return existing(_ETC)


@cache
def loaders() -> tuple[str, ...]:
    """What starts a dynamically linked program; executing the program executes this, too."""
    names = [path for base in ("/lib", "/lib64") for path in Path(base).glob("ld-linux*") if path.exists()]
    return existing(map(str, names))


@cache
def hidden() -> tuple[str, ...]:
    """Packages that somebody installed for this Python: only those that are named are given to a program."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    below = [
        Path(path) / name
        for path in readable()
        for name in (version, "python3", f"lib/{version}", "lib/python3")
    ]
    below.append(Path(os.path.realpath(os.__file__)).parent)
    found = {str(place / name) for place in below for name in ("site-packages", "dist-packages")}
    return tuple(sorted(path for path in found if os.path.isdir(path)))


def installed_in(prefix: str) -> tuple[str, ...]:
    """The packages of an installation of Python, where it is not one of the system's, which a shell sees anyway."""
    if any(prefix == each or prefix.startswith(each + "/") for each in commands()):
        return ()
    found = Path(prefix, "lib").glob("python3*/*-packages")
    return tuple(sorted(str(path) for path in found if path.is_dir() and not path.is_symlink()))


def existing(paths: Iterable[str]) -> tuple[str, ...]:
    """Real paths, without those that are inside another one. Asked again and again, so remembered."""
    return _existing(tuple(paths))


@lru_cache(maxsize=64)
def _existing(paths: tuple[str, ...]) -> tuple[str, ...]:
    real = sorted({os.path.realpath(path) for path in paths if os.path.exists(path)})
    kept: list[str] = []
    for path in real:
        if not any(path.startswith(above + "/") for above in kept):
            kept.append(path)
    return tuple(kept)


SHELL_LIMITS = Limits(processes=32)
"""For a shell, which without others can do little."""
_SHELLS = ("/bin/sh", "/usr/bin/sh")


@dataclass(frozen=True, slots=True)
class ProgramCommand:
    argv: tuple[str, ...]
    """The first is a path, inside the walls as outside."""
    ro_paths: tuple[str, ...] = ()
    exec_paths: tuple[str, ...] = ()
    """Read-only, too. A dynamically linked program also needs its loader: `interpreter.loaders()`."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    finish: Callable[[Outcome], Outcome] = lambda outcome: outcome
    """What the runtime adds to an outcome, or takes out of it."""


Made = Callable[[Job, bool, Broker | None], ProgramCommand]
"""From a job, whether it may reach the egress proxy, and who answers for its secrets."""


def shell(job: Job, networked: bool, broker: Broker | None) -> ProgramCommand:
    """A script, which is put where only the program sees it, or an argv; either sees the system's programs."""
    argv = (find_program(job.argv[0], job.view), *job.argv[1:]) if job.argv else (_sh(),)
    return ProgramCommand(argv, settings(), commands(), {}, job.stdin)


def find_program(name: str, view: View | None = None) -> str:
    """As `execvp` would, on the path that programs have; a path is taken as it is. Of the project's own programs only
    the names are looked at."""
    if "/" in name:
        return name
    environment = view.environment if view is not None else None
    for directory in environment.programs if environment is not None else ():
        assert view is not None
        if os.path.lexists(view.root / directory / name):
            return f"{PROJECT}/{directory}/{name}"
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        if os.access(f"{directory}/{name}", os.X_OK):
            return f"{directory}/{name}"
    raise InvalidArgs(
        f"there is no program {name[:80]!r}",
        "name one in /usr/bin, or with `project: read` one of the project's environment (`toolgate doctor` says which)",
    )


def _sh() -> str:
    for path in _SHELLS:
        if os.path.exists(path):
            return path
    raise Unavailable("there is no /bin/sh", "install one, or run an argv")
