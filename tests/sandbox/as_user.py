"""Doing something as an unprivileged user, from a test that runs as root: `python as_user.py UID PROGRAM ARG ...`.

Before it becomes that user it makes whatever Python needs reachable: in a mount namespace of its own it covers every
directory that the user could not pass (such as a home with mode 0700) with an empty one that holds nothing but the
interpreter, the virtual environment and this repository. Then it executes the program. Where the tests do not run as
root, it executes the program as whoever runs them.

    subprocess.run(as_user.command([sys.executable, "-c", "import os; print(os.getuid())"]))
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from toolgate.sandbox.inside.kernel import CLONE_NEWNS, MS_BIND, MS_PRIVATE, MS_REC, mount, unshare

USER = 1001
REPOSITORY = Path(__file__).parents[2]


def command(argv: Sequence[str], uid: int = USER) -> list[str]:
    """What to start instead of argv. Handles and environment are passed on."""
    return [sys.executable, str(Path(__file__).resolve()), str(uid), *argv]


def environment() -> dict[str, str]:
    """With what this test can import."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": "/nonexistent"}


def become(uid: int) -> None:
    """For good: mounts, groups and user of this process."""
    if os.geteuid() != 0:
        return
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    _make_reachable([Path(sys.base_prefix), Path(sys.prefix), REPOSITORY, *map(Path, filter(None, sys.path))])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _make_reachable(needed: list[Path]) -> None:
    covered: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted({path.resolve() for path in needed if path.exists()}):
        barrier = next((above for above in reversed(path.parents) if not _passable(above)), None)
        if barrier is not None:
            covered.setdefault(barrier, []).append((os.open(path, os.O_PATH), path))
    for barrier, inner in covered.items():
        mount("tmpfs", str(barrier), "tmpfs", 0, "mode=755")
        for handle, path in inner:
            if not path.exists():  # it may be inside one that is there already
                _make_room(path, stat.S_ISDIR(os.fstat(handle).st_mode))
                mount(f"/proc/self/fd/{handle}", str(path), None, MS_BIND | MS_REC)
            os.close(handle)


def _make_room(path: Path, directory: bool) -> None:
    if directory:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _passable(directory: Path) -> bool:
    return bool(directory.stat().st_mode & stat.S_IXOTH)


if __name__ == "__main__":
    become(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
