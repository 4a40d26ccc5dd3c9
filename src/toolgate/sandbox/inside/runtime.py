"""Runtime of a program behind the walls, and its line to the host: one JSON object out, one back.

Python code runs as `__main__`, with `await` at the top level, and errors that show only its own frames. Another program
runs in the place of this process, or as its child where it may start others: the first process then collects what the
others leave, and signals do what a program expects of them.
"""

from __future__ import annotations

import ast
import asyncio
import atexit
import builtins
import gc
import importlib
import inspect
import io
import json
import linecache
import os
import random
import signal
import socket
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from .order import Go, Kind

HANDLE = 3


class Link:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._rest = b""

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """One round trip. ConnectionError where the host has hung up."""
        data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock:
            self._line.sendall(data)
            while b"\n" not in self._rest:
                more = self._line.recv(1 << 16)
                if not more:
                    raise ConnectionError("the host has hung up")
                self._rest += more
            answer, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(answer)
        return found


def exec_program(go: Go, kind: Kind) -> int:
    """Does not come back, unless as the first process, with the exit code."""
    if kind == "shell" and go.processes > 1:
        child = os.fork()
        if child:
            return _wait_for(child)
        os.setsid()
    for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    os.close(HANDLE)
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


NAME = "<program>"
_OURS = os.path.dirname(__file__) + "/"


def prepare_python(link: Link, packages: list[str]) -> dict[str, Any]:
    """Everything that can be done before there is a program. Gives the namespace it will run in."""
    _open_streams()
    sys.path += packages
    sys.dont_write_bytecode = True  # importing from a view of the project changes nothing in it
    sys.argv = [NAME]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    for name in ("exit", "quit"):  # what `site` would have added
        setattr(builtins, name, sys.exit)
    if _prelude is not None:
        _prelude.install(main.__dict__, link)
    _guarded("pass", {})  # memory that is touched now need not be copied when somebody waits
    random.seed()
    return main.__dict__


def run_python(code: str, namespace: dict[str, Any]) -> int:
    """The exit code."""
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    return _finish(_guarded(code, namespace), namespace)


def relocate(where: Callable[[str], str]) -> None:
    """The library may be somewhere else than it was when this process began."""
    if where(os.__file__) == os.__file__:
        return
    sys.path[:] = [where(path) for path in sys.path]
    for module in tuple(sys.modules.values()):
        if isinstance(found := getattr(module, "__path__", None), list):
            module.__path__ = [where(path) for path in found]
    sys.path_importer_cache.clear()


def _guarded(code: str, namespace: dict[str, Any]) -> int:
    try:
        compiled = compile(code, NAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if compiled.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(compiled, namespace))  # noqa: S307  This is what the sandbox is for.
        else:
            exec(compiled, namespace)  # noqa: S102
    except SystemExit as error:
        return _code_of(error)
    except BaseException as error:
        _report(error)
        return 1
    return 0


def _code_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)  # noqa: T201
    return 1


def _report(error: BaseException) -> None:
    try:
        shown = traceback.TracebackException.from_exception(error)
        _only_own(shown)
        sys.stderr.write("".join(shown.format()))
    except BaseException:
        # The program may have broken whatever we would print with, or have no memory left for it.
        os.write(2, type(error).__name__.encode() + b"\n")


def _only_own(shown: traceback.TracebackException) -> None:
    """Drop the frames that lead to the program's first one and those of the prelude, here and in the errors before it."""
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [shown]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        first = next(
            (place for place, frame in enumerate(one.stack) if frame.filename == NAME), len(one.stack)
        )
        del one.stack[:first]
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(_OURS)]
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _finish(exit_code: int, namespace: dict[str, Any]) -> int:
    """As the interpreter does at its end: other threads, then what was registered, then what is still buffered."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _write_open_files()
        namespace.clear()
    except BaseException as error:
        _report(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            exit_code = exit_code or 120
    return exit_code


def _write_open_files() -> None:
    """A program need not close its files; the objects of the zygote's own are not among these."""
    for one in gc.get_objects():
        if issubclass(type(one), io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom):
            try:
                one.flush()
            except (OSError, ValueError):  # closed, or not for writing
                continue


def _open_streams() -> None:
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r")), encoding="utf-8")
    out = io.BufferedWriter(io.FileIO(1, "w"))
    # by lines: what a program has printed is there, too, when it is ended from outside
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    err = io.BufferedWriter(io.FileIO(2, "w"))
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _load_prelude() -> Any:
    """Helpers such as `output`, where they are shipped."""
    try:
        return importlib.import_module(".prelude", __package__)
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.prelude":
            raise
        return None


_prelude = _load_prelude()
