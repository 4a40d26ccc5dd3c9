"""The zygote: one warm interpreter with one thread and no secrets, which forks a process for each job.

In the modes with namespaces it is the first process of a namespace of its own, so that the kernel ends every job with
it; and it belongs to no job's namespace itself. A mode is tried by raising all its walls around a process that does
nothing, and saying what failed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
from typing import Any

from . import child, landlock, privileges
from .kernel import CLONE_NEWPID, setns, unshare
from .order import Mode, Order, read_order

PRELOADED = (
    "argparse", "asyncio", "base64", "bisect", "collections", "contextlib", "copy", "csv", "dataclasses", "datetime",
    "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "html", "http.client", "io", "itertools", "json",
    "math", "operator", "pathlib", "random", "re", "secrets", "sqlite3", "ssl", "statistics", "string", "tempfile",
    "textwrap", "time", "typing", "urllib.parse", "urllib.request", "uuid", "zoneinfo",
)  # fmt: skip


def settle(mode: Mode) -> None:
    """Become what forks jobs in this mode."""
    privileges.die_with_parent()
    if mode == "landlock":
        return
    if mode == "userns":
        own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        privileges.enter_user_namespace(os.getuid(), os.getgid(), own)
        os.close(own)
    unshare(CLONE_NEWPID)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    privileges.die_with_parent()


def serve(control: socket.socket, mode: Mode, ablation: bool) -> None:
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:  # a Python that was built without it
            continue
    privileges.share_one_heap()
    size = privileges.address_space()
    gc.collect()
    gc.freeze()
    ForkServer(control, mode, ablation, size).loop()


class ForkServer:
    def __init__(self, control: socket.socket, mode: Mode, ablation: bool, size: int) -> None:
        self.control = control
        self.mode = mode
        self.ablation = ablation
        self.size = size
        self.jobs: dict[int, int] = {}
        """Process to the number of its job."""
        self.own = -1 if mode == "landlock" else os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def loop(self) -> None:
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.tell({"op": "up"})
        while True:
            ready, _, _ = select.select([self.control.fileno(), wake], [], [])
            if wake in ready:
                os.read(wake, 4096)
                self.reap()
            if self.control.fileno() in ready:
                self.take()

    def take(self) -> None:
        word, handles, _, _ = socket.recv_fds(self.control, 64, 4)
        if not word:
            os._exit(0)
        number = int(word)
        try:
            self.start(number, read_order(handles.pop(0)), handles)
        except OSError as error:
            self.tell({"op": "refused", "job": number, "error": str(error)})
        for handle in handles:
            os.close(handle)

    def start(self, number: int, order: Order, streams: list[int]) -> None:
        if order.off and not self.ablation:
            raise OSError("this zygote leaves no layer out")
        pid = self.fork(order)
        if pid == 0:
            code = child.BROKEN
            try:
                code = child.live(order, self.mode, streams, self.size)
            finally:
                os._exit(code)
        self.jobs[pid] = number
        handle = os.pidfd_open(pid)
        self.tell({"op": "started", "job": number}, handle)
        os.close(handle)

    def fork(self, order: Order) -> int:
        if self.mode == "landlock" or not order.has("processes"):
            return os.fork()
        unshare(CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                setns(self.own, CLONE_NEWPID)  # so that the next one can have its own, too
        return pid

    def reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait3(os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self.jobs.pop(pid, None)
            if number is None:
                continue
            cpu = used.ru_utime + used.ru_stime
            code = os.waitstatus_to_exitcode(status)
            self.tell(
                {"op": "ended", "job": number, "code": code, "cpu": cpu, "memory": used.ru_maxrss << 10}
            )

    def tell(self, message: dict[str, Any], *handles: int) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], handles)
        except OSError:
            os._exit(1)  # the host is gone


def try_mode(mode: Mode, uid: int) -> None:
    """One line of JSON on stdout."""
    print(json.dumps({"error": _trial_error(mode, uid), "landlock": landlock.version()}), flush=True)  # noqa: T201
    os._exit(0)


def _trial_error(mode: Mode, uid: int) -> str:
    if mode == "landlock" and landlock.version() < landlock.NEEDED_ALONE:
        return (
            f"the kernel's Landlock has version {landlock.version()}; alone it needs {landlock.NEEDED_ALONE}"
        )
    place = tempfile.mkdtemp(prefix="toolgate-trial-") if mode == "landlock" else ""
    try:
        return _trial(mode, place, uid)
    except OSError as error:
        return str(error)
    finally:
        if place:
            shutil.rmtree(place, ignore_errors=True)


def _trial(mode: Mode, place: str, uid: int) -> str:
    ours, theirs = socket.socketpair()
    control, _other = socket.socketpair()
    nothing = os.open("/dev/null", os.O_RDWR)
    order = Order(
        kind="python", uid=uid, place=place, disk=1 << 20, inodes=16, read=[], execute=[], hide=[],
        packages=[], view=None, processes=False, network=mode != "landlock", off=[],
    )  # fmt: skip
    pid = ForkServer(control, mode, False, 0).fork(order)
    if pid == 0:
        try:
            child.live(order, mode, [nothing, nothing, theirs.fileno()], 0)
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(10)
    word = ours.recv(4096)
    ours.close()
    os.waitpid(pid, 0)
    if not word:
        return "the process ended before its walls stood"
    said = json.loads(word)
    return "" if said["op"] == "ready" else str(said["error"])
