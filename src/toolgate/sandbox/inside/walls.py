"""Raising the walls around this process, from the outermost to the one that takes the tools for building away.

Its file system is a root in memory that holds only what the program may see, all of it read-only. Sources are opened
before anything is covered, and mounted by their handles.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from . import landlock, privileges, seccomp, view
from .kernel import (
    ATTR_NODEV,
    ATTR_NOSUID,
    ATTR_RDONLY,
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    held,
    mount,
    pivot_root,
    prctl,
    restrict_mount,
    unmount,
    unshare,
)
from .order import INSIDE_UID, PACKAGES, PROJECT, PROXY_PORT, SCRAP, WORK, Mode, Order, placed

_BASE = "/tmp"  # noqa: S108  Any directory would do: it is covered in this process's own namespace only.
_TEMPORARY = "tmp"
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = ("null", "zero", "full", "random", "urandom")
_FIXED = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV
_READ_ONLY = 1


def build(order: Order, uid: int) -> tuple[int, tuple[str, int]]:
    """Build it and move in. Gives a handle of the work directory, for the host to collect from, and how the project
    is shown with a handle of its changes."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    binds = [(_source(path), placed(path)) for path in sorted({*order.read, *order.execute})]
    binds += [(_source(path), f"{PACKAGES}/{os.path.basename(path)}") for path in order.packages]
    devices = [(_source(f"/dev/{name}"), f"/dev/{name}") for name in DEVICES]
    project = view.open_root(order.view) if order.view else None
    place = _source(order.place) if order.place else None

    mount("tmpfs", _BASE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    _furnish(uid)
    for handle, target in binds:
        _bind(handle, target, _FIXED)
    for handle, target in devices:
        _bind(handle, target, 0)
    for path in order.hide:
        view.cover(_BASE, placed(path))
    shown = ("", -1)
    if project is not None:
        assert order.view is not None
        shown = view.show(_BASE, project, order.view, None if uid == INSIDE_UID else uid)
    work = _make_work(order, uid, place)
    _mount_proc()
    os.chdir(_BASE)
    pivot_root(".", ".")
    unmount(".")
    os.chdir("/")
    if order.view and order.view["known_as"]:
        _link_project(order.view["known_as"])
    restrict_mount("/", ATTR_RDONLY | ATTR_NOSUID, below=False)
    return work, shown


def _link_project(path: str) -> None:
    """The project's own path leads to its view: the first lines of its installed programs name it."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(PROJECT, path)
    except OSError:  # something that is shown has its place: only programs that name it will miss it
        return


def _source(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _furnish(uid: int) -> None:
    for name in ("proc", "dev", "etc", WORK[1:], PROJECT[1:], PACKAGES[1:]):
        os.mkdir(f"{_BASE}/{name}", 0o755)
    view.make_covers(_BASE)
    for name in _LINKS:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{_BASE}/{name}")
    os.symlink(f"{WORK}/{SCRAP}", f"{_BASE}/{_TEMPORARY}")
    for name, text in _identity(uid):
        with open(f"{_BASE}/etc/{name}", "w") as stream:
            stream.write(text)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{_BASE}/dev/{name}")


def _identity(uid: int) -> Iterator[tuple[str, str]]:
    """Programs ask who they are and what localhost is."""
    yield "passwd", f"program:x:{uid}:{uid}::{WORK}:/bin/sh\n"
    yield "group", f"program:x:{uid}:\n"
    yield "hosts", "127.0.0.1 localhost\n"


def _bind(handle: int, target: str, attributes: int) -> None:
    directory = stat.S_ISDIR(os.fstat(handle).st_mode)
    place = _BASE + target
    if directory:
        os.makedirs(place, exist_ok=True)
    elif not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    mount(f"/proc/self/fd/{handle}", place, None, MS_BIND | (MS_REC if directory else 0))
    if attributes:
        restrict_mount(place, attributes)
    os.close(handle)


def _make_work(order: Order, uid: int, place: int | None) -> int:
    target = _BASE + WORK
    if place is not None:
        mount(f"/proc/self/fd/{place}", target, None, MS_BIND)
        restrict_mount(target, ATTR_NOSUID | ATTR_NODEV)
        os.close(place)
    else:
        # Its own root, the directory for temporary files and the way to the project are not counted.
        own = 2 + (order.view["known_as"].count("/") if order.view else 0)
        limits = f"size={order.disk},nr_inodes={order.inodes + own},mode=700"
        owner = "" if uid == INSIDE_UID else f",uid={uid},gid={uid}"
        mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, limits + owner)
        os.mkdir(f"{target}/{SCRAP}", 0o700)
        os.chown(f"{target}/{SCRAP}", *((-1, -1) if uid == INSIDE_UID else (uid, uid)))
    return os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _mount_proc() -> None:
    """Only processes, and only its own. Some containers forbid it; most programs do without."""
    try:
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | _READ_ONLY
        mount("proc", f"{_BASE}/proc", "proc", flags, "subset=pid")
    except OSError:
        return


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
        elif _has_loopback(order, mode):
            with suppress(OSError):  # where they cannot be bounded it stays down
                _bound_buffers()
                _raise_loopback()
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
        port = PROXY_PORT if order.network else 0
        landlock.restrict(_rules(order, mode), port, any_port=not port and _has_loopback(order, mode))
    if order.has("seccomp"):
        alone = mode == "landlock" or not order.has("processes")
        seccomp.install(
            seccomp.Permits(
                execute=order.kind != "python",
                processes=order.processes,
                network=order.network or _has_loopback(order, mode),
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


def import_directories(order: Order, mode: Mode) -> list[str]:
    """What Python looks for modules in beyond its own library: packages of the call, of the project, its sources."""
    return [*packages_directory(order, mode), *_site(order, mode), *_sources(order, mode)]


def _site(order: Order, mode: Mode) -> list[str]:
    """The packages of the project's environment, where they were installed for a Python like this one."""
    found = _environment(order, mode)
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not found or not found["python"] or found["version"] != own:
        return []
    return [f"{PROJECT}/{found['python']}/lib/python{own}/site-packages"]


def _sources(order: Order, mode: Mode) -> list[str]:
    if not order.view:
        return []
    project = project_directory(order, mode)
    inner = f"{project}/src"
    layered = os.path.isdir(inner) and not os.path.exists(f"{inner}/__init__.py")
    return [inner, project] if layered else [project]


def _environment(order: Order, mode: Mode) -> dict[str, Any] | None:
    """The project's, which is mounted: without namespaces there is none."""
    return order.view["environment"] if order.view and not _without_root(order, mode) else None


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
        work, shown = build(order, order.uid if mode == "root" and order.has("uid") else INSIDE_UID)
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
    with held(view.open_root(order.view)) as source:
        return "copy", view.copy_to(target, source, order.view, owner)


def _has_loopback(order: Order, mode: Mode) -> bool:
    """A shell with a view of the project runs its tests, and these call servers that they start themselves."""
    return order.kind == "shell" and bool(order.view) and mode != "landlock" and order.has("network")


def _bound_buffers() -> None:
    """What sockets hold is the kernel's memory: no limit of the program counts it, and all TCP of the machine shares it."""
    for name in ("tcp_rmem", "tcp_wmem"):
        with open(f"/proc/sys/net/ipv4/{name}", "w") as setting:
            setting.write("4096 16384 32768")


def _raise_loopback() -> None:
    """The program's own: nothing else is in its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def _listen() -> socket.socket:
    """On the program's own loopback; the host serves it."""
    _raise_loopback()
    listener = socket.socket()
    listener.bind(("127.0.0.1", PROXY_PORT))
    listener.listen(64)
    return listener


def _rules(order: Order, mode: Mode) -> list[landlock.Rule]:
    work = work_directory(order, mode)
    rules = [(where(path, order, mode), landlock.READ) for path in order.read]
    rules += [(where(path, order, mode), landlock.READ | landlock.EXECUTE) for path in order.execute]
    rules += [(f"/dev/{name}", landlock.READ_FILE) for name in DEVICES]
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


def _project_environment(order: Order, mode: Mode, usual: dict[str, str]) -> dict[str, str]:
    """The project's programs before the system's, its sources importable, and caches where they can be written."""
    found = _environment(order, mode)
    if not found:
        return {}
    assert order.view is not None
    caches = f"{usual['TMPDIR']}/cache"
    made = dict.fromkeys(("XDG_CACHE_HOME", "npm_config_cache"), caches)
    made["PATH"] = os.pathsep.join([*(f"{PROJECT}/{each}" for each in found["programs"]), usual["PATH"]])
    if found["python"]:
        made["VIRTUAL_ENV"] = f"{PROJECT}/{found['python']}"
        made["PYTHONPATH"] = os.pathsep.join([*packages_directory(order, mode), *_sources(order, mode)])
        if not order.view["writable"]:
            made |= {
                "RUFF_CACHE_DIR": caches,
                "MYPY_CACHE_DIR": caches,
                "COVERAGE_FILE": f"{caches}.coverage",
            }
            made["PYTEST_ADDOPTS"] = f"-o cache_dir={caches}/pytest"
    return made


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
        if order.packages:
            found["PYTHONPATH"] = os.pathsep.join(packages_directory(order, mode))
    if order.kind != "javascript":
        found |= _project_environment(order, mode, found)
    if order.view:
        found["PROJECT"] = project_directory(order, mode)
    if order.network:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        found |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
    return found
