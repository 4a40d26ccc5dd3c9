"""Raising the walls around this process, from the outermost to the one that takes the tools for building away."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from . import filters, landlock, privileges, root, view
from .kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUTS,
    PR_SET_DUMPABLE,
    prctl,
    unshare,
)
from .order import INSIDE_UID, PACKAGES, PROJECT, PROXY_PORT, SCRAP, WORK, Mode, Order, placed

_NAMESPACES = {
    "mounts": CLONE_NEWNS, "network": CLONE_NEWNET, "ipc": CLONE_NEWIPC, "host name": CLONE_NEWUTS,
    "cgroup": CLONE_NEWCGROUP,
}  # fmt: skip
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def separate(order: Order, mode: Mode) -> tuple[int, tuple[str, int], socket.socket | None]:
    """Namespaces, the new root and the new user. Gives a handle of the work directory, how the project is shown with
    a handle of its changes, and what to listen on."""
    listener = None
    if mode != "landlock":
        unshare(sum(flag for layer, flag in _NAMESPACES.items() if order.has(layer)))
        if order.has("host name"):
            socket.sethostname("sandbox")
        if order.network:
            listener = _listen()
    work, shown = _enter_root(order, mode)
    if mode == "root" and order.has("uid"):
        privileges.become(order.uid)
    return work, shown, listener


def restrict(order: Order, mode: Mode) -> None:
    """What this process may still do, whatever it runs. After this, nothing can be taken back."""
    prctl(PR_SET_DUMPABLE, 0)
    privileges.gain_nothing()
    if order.has("capabilities"):
        privileges.drop_capabilities()
    if order.has("landlock") and landlock.version():
        landlock.restrict(_rules(order, mode), PROXY_PORT if order.network else 0)
    if order.has("seccomp"):
        alone = mode == "landlock" or not order.has("processes")
        filters.install(
            filters.Permits(
                execute=order.kind != "python",
                processes=order.processes,
                network=order.network,
                runtime=order.kind == "javascript",
                alone=os.getpid() if alone else 0,
            )
        )


def work_directory(order: Order, mode: Mode) -> str:
    return order.place if _without_root(order, mode) else WORK


def where(path: str, order: Order, mode: Mode) -> str:
    """What a path of the host's is called for the program."""
    return path if _without_root(order, mode) else placed(path)


def packages_directory(order: Order, mode: Mode) -> list[str]:
    """What Python looks for packages in."""
    if not order.packages:
        return []
    return [f"{order.place}.packages"] if _without_root(order, mode) else [PACKAGES]


def project_directory(order: Order, mode: Mode) -> str:
    return f"{order.place}.project" if _without_root(order, mode) else PROJECT


def _without_root(order: Order, mode: Mode) -> bool:
    return mode == "landlock" or not order.has("mounts")


def _enter_root(order: Order, mode: Mode) -> tuple[int, tuple[str, int]]:
    own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if _without_root(order, mode):
        work = os.open(order.place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        shown = _copy(order, mode) if order.view else ("", -1)
    else:
        work, shown = root.build(order, order.uid if mode == "root" and order.has("uid") else INSIDE_UID)
    if mode == "userns":
        # Again, for this job alone: what is counted for a user is counted for each namespace, and nothing that was
        # built above belongs to this one.
        privileges.enter_user_namespace(os.getuid(), os.getgid(), own)
    os.close(own)
    return work, shown


def _copy(order: Order, mode: Mode) -> tuple[str, int]:
    """Beside the work directory; whoever removes that removes it, too."""
    assert order.view is not None
    target = project_directory(order, mode)
    os.mkdir(target, 0o700)
    owner = order.uid if mode == "root" and order.has("uid") else None
    if owner is not None:
        os.chown(target, owner, owner)
    source = view.open_root(order.view)
    try:
        return "copy", view.copy_to(target, source, order.view, owner)
    finally:
        os.close(source)


def _listen() -> socket.socket:
    """On a loopback that is the program's own; the host serves it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))
    listener = socket.socket()
    listener.bind(("127.0.0.1", PROXY_PORT))
    listener.listen(64)
    return listener


def _rules(order: Order, mode: Mode) -> list[landlock.Rule]:
    work = work_directory(order, mode)
    rules = [(where(path, order, mode), landlock.READ) for path in order.read]
    rules += [(where(path, order, mode), landlock.READ | landlock.EXECUTE) for path in order.execute]
    rules += [(f"/dev/{name}", landlock.READ_FILE) for name in root.DEVICES]
    rules += [("/dev/null", landlock.WRITE_FILE), (work, landlock.OWN)]
    if order.view:
        access = landlock.OWN if order.view["writable"] else landlock.READ
        rules += [(project_directory(order, mode), access)]
    if _without_root(order, mode):
        rules += [(path, landlock.READ) for path in [*order.packages, f"{order.place}.packages"]]
    else:
        rules += [("/", landlock.READ_DIR), ("/proc", landlock.READ), ("/etc", landlock.READ)]
        rules += [(PACKAGES, landlock.READ)]
        if order.kind == "shell":
            rules += [(PROJECT, landlock.EXECUTE)]
    return rules


def environment(order: Order, mode: Mode) -> dict[str, str]:
    work = work_directory(order, mode)
    found = {
        "HOME": work,
        "TMPDIR": f"{work}/{SCRAP}",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    if order.kind == "shell":
        # for a Python that it starts: bytecode is no change of the project, and what was printed is not lost
        found |= dict.fromkeys(("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"), "1")
    if order.view:
        found["PROJECT"] = project_directory(order, mode)
    if order.network:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        found |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
    return found
