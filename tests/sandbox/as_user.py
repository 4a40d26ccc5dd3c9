"""Doing something as an unprivileged user, from a test that may run as root.

`become(uid)` turns the calling process (a forked child, never the test's own) into a user with no rights, and first
makes whatever Python needs reachable: in a mount namespace of its own it covers every directory that the user could
not pass (such as a home with mode 0700) with an empty one that holds nothing but the interpreter, the virtual
environment and this repository. A process that is not root stays who it is.

    with forked(lambda: asyncio.run(main()), uid=1001): ...     # main runs as uid 1001; its failure is raised here
"""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from toolgate.sandbox.inside.kernel import CLONE_NEWNS, MS_BIND, MS_PRIVATE, MS_REC, mount, unshare

USER = 1001
REPOSITORY = Path(__file__).parents[2]


def become(uid: int = USER) -> None:
    """For good: mounts, groups and user of this process."""
    if os.geteuid() != 0:
        return
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    _make_reachable([Path(sys.base_prefix), Path(sys.prefix), REPOSITORY, *map(Path, filter(None, sys.path))])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.environ["HOME"] = "/nonexistent"


def as_user(work: Callable[[], object], uid: int = USER) -> None:
    """Run it in a child as that user, and raise here what failed there."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(readable)
            become(uid)
            work()
            code = 0
        except BaseException:
            os.write(writable, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(code)
    os.close(writable)
    with open(readable, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(child, 0)
    if status:
        raise AssertionError(f"as user {uid}:\n{said}")


def _make_reachable(needed: list[Path]) -> None:
    real = sorted({path.resolve() for path in needed if path.exists()})
    covered: dict[Path, list[tuple[int, Path]]] = {}
    for path in real:
        barrier = next((above for above in reversed(path.parents) if not _passable(above)), None)
        if barrier is not None:
            covered.setdefault(barrier, []).append((os.open(path, os.O_PATH), path))
    for barrier, inner in covered.items():
        mount("tmpfs", str(barrier), "tmpfs", 0, "mode=755")
        for handle, path in inner:
            if path.exists():  # below another one
                continue
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                path.mkdir(parents=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            mount(f"/proc/self/fd/{handle}", str(path), None, MS_BIND | MS_REC)
            os.close(handle)


def _passable(directory: Path) -> bool:
    return bool(directory.stat().st_mode & stat.S_IXOTH)
