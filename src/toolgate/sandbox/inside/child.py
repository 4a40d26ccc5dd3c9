"""One job's process: raise the walls, say that they stand, wait for a program, run it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
from dataclasses import replace
from typing import Any

from . import privileges, runtime, walls
from .copying import CopyTooLarge
from .kernel import close_from
from .order import Mode, Order, read_go
from .runtime import HANDLE, Link

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
