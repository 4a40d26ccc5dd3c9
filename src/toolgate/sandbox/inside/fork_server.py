"""The zygote: one warm interpreter with one thread and no secrets, which forks a process for each job.

In the modes with namespaces it is the first process of a namespace of its own, so that the kernel ends every job with
it; and it belongs to no job's namespace itself. A mode is tried by raising all its walls around a process that does
nothing, and saying what failed.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
from dataclasses import replace
from typing import Any

from . import landlock, privileges, runtime, walls
from .kernel import CLONE_NEWPID, close_from, setns, unshare
from .order import Mode, Order, read_go, read_order
from .runtime import HANDLE, Link
from .view import CopyTooLarge

# One job's process: raise the walls, say that they stand, wait for a program, run it.

BROKEN = 125


def live(order: Order, mode: Mode, streams: list[int], size: int) -> int:
    """From the fork to the exit code."""
    line = _settle(streams)
    try:
        others = privileges.tasks_of(os.getuid()) if mode == "landlock" and order.has("rlimits") else 0
        work, (how, changes), listener = walls.separate(order, mode)
        os.chdir(walls.work_directory(order, mode))
        os.umask(0o022)
        walls.restrict(order, mode)
    except CopyTooLarge as error:
        line.sendall(json.dumps({"op": "too large", "error": str(error)}).encode())
        return BROKEN
    except Exception as error:
        line.sendall(json.dumps({"op": "broken", "error": f"{type(error).__name__}: {error}"[:500]}).encode())
        return BROKEN
    namespace = _prepare(order, mode, line) if order.kind == "python" else {}
    handles = [work, *([] if changes < 0 else [changes]), *([] if listener is None else [listener.fileno()])]
    said = {"op": "ready", "shown": how, "changes": changes >= 0}
    socket.send_fds(line, [json.dumps(said).encode()], handles)
    for handle in {work, changes} - {-1}:
        os.close(handle)
    if listener is not None:
        listener.close()
    return _serve(order, mode, line, namespace, size, others)


def _serve(
    order: Order, mode: Mode, line: socket.socket, namespace: dict[str, Any], size: int, others: int
) -> int:
    word, handles, _, _ = socket.recv_fds(line, 1, 2)
    if not word or len(handles) != 2:
        return 0  # the host wants no program run here after all
    go = read_go(handles[0])
    os.dup2(handles[1], 0)
    os.close(handles[1])
    go = replace(go, env=walls.environment(order, mode) | go.env)
    if go.in_project:
        os.chdir(walls.project_directory(order, mode))
    if order.has("rlimits"):
        privileges.apply(go, order.kind, size=size, others=others)
    if order.kind != "python":
        line.detach()
        argv = [walls.where(each, order, mode) if each in order.execute else each for each in go.argv]
        return runtime.exec_program(replace(go, argv=argv), order.kind)
    os.environ.update(go.env)
    return runtime.run_python(go.code, namespace)


def _prepare(order: Order, mode: Mode, line: socket.socket) -> dict[str, Any]:
    os.environ.clear()
    os.environ.update(walls.environment(order, mode))
    runtime.relocate(lambda path: walls.where(path, order, mode))
    return runtime.prepare_python(Link(line), walls.import_directories(order, mode))


def _settle(streams: list[int]) -> socket.socket:
    """Nothing of the zygote's stays open but what a program is given."""
    privileges.die_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    # Out of the way first: one of them may have a number that another is to get.
    nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 64) for each in (nothing, *streams)]
    for target, handle in enumerate(moved):
        os.dup2(handle, target, inheritable=target < HANDLE)
    close_from(HANDLE + 1)
    return socket.socket(fileno=HANDLE)


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
            code = BROKEN
            try:
                code = live(order, self.mode, streams, self.size)
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
            live(order, mode, [nothing, nothing, theirs.fileno()], 0)
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
