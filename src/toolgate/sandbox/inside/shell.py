"""Running another program: in the place of this process, or as its child where it may start others.

A program that may start others is not the first process itself: the first one collects what the others leave, and
signals do what a program expects of them.
"""

from __future__ import annotations

import os
import signal

from .link import HANDLE
from .order import Go, Kind


def become(go: Go, kind: Kind) -> int:
    """Does not come back, unless as the first process, with the exit code."""
    if kind == "shell" and go.processes > 1:
        child = os.fork()
        if child:
            return _wait_for(child)
        os.setsid()
    for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    if kind == "shell":
        os.close(HANDLE)
    else:
        os.set_inheritable(HANDLE, True)
    argv = [*go.argv, _script(go)] if go.code else go.argv
    try:
        os.execve(argv[0], argv, go.env)  # noqa: S606
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        return 127 if isinstance(error, FileNotFoundError) else 126


def _script(go: Go) -> str:
    """A file and not an argument: arguments are short, and every user of the machine can see them."""
    path = f"{go.env['TMPDIR']}/script"
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(go.code)
    return path


def _wait_for(child: int) -> int:
    os.closerange(0, HANDLE + 1)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
