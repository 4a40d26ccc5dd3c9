"""Running rg: fixed arguments, no shell, no environment, no configuration, ended when its time is up.

rg walks by path, so a name that is swapped for a link under its feet leads it wherever the link says. A fence lets it open
nothing but what lies below the given handles: Landlock holds for a thread and the programs that it starts, so a thread is
fenced in, starts rg and ends. It costs rg a tenth of its time: a walk of which it is known that no name was swapped is
made without.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from toolgate.core.errors import InvalidArgs, Unavailable
from toolgate.core.programs import find_program
from toolgate.workspace.confine import held

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION, _BELOW, _NO_NEW_PRIVILEGES = 1, 1, 38
_READ_FILE, _READ_DIRECTORY = 4, 8
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")
"""What a program needs to begin that is a script, or not all in one file."""
T = TypeVar("T")


@cache
def available() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return _syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION) >= 1
    except OSError:
        return False


def fenced(start: Callable[[], T], below: Sequence[int], program: str) -> T:
    """What `start` gives back, called where only these directories, and the program itself, can be opened."""
    made: list[T] = []
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            _restrict(below, program)
            made.append(start())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=begin, name="toolgate-fence")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def _restrict(below: Sequence[int], program: str) -> None:
    handled = struct.pack("<Q", _READ_FILE | _READ_DIRECTORY)
    with ExitStack() as stack:
        rules = stack.enter_context(held(_syscall(_CREATE, handled, ctypes.c_size_t(len(handled)), 0)))
        for handle in below:
            _allow(rules, handle, _READ_FILE | _READ_DIRECTORY)
        for path in (program, *_needed(program)):
            _allow(rules, stack.enter_context(held(os.open(path, os.O_PATH | os.O_CLOEXEC))), _READ_FILE)
        _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _syscall(_RESTRICT, rules, 0)


def _allow(rules: int, handle: int, access: int) -> None:
    _syscall(_ADD, rules, _BELOW, struct.pack("<Qi", access, handle), 0)


@cache
def _needed(program: str) -> Iterable[str]:
    """Nothing for a program that is linked statically, as the packaged one is."""
    with open(program, "rb") as file:
        head = file.read(1 << 12)
    alone = head.startswith(b"\x7fELF") and b"/ld" not in head
    return () if alone else tuple(path for path in _SYSTEM if os.path.exists(path))


def _syscall(*args: object) -> int:
    found = int(_libc().syscall(*args))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


_CHUNK = 1 << 18
_ERRORS = 8192
_LOOK = 0.01
"""Seconds between two looks at what rg has written into memory, at first; longer the longer it takes. What is read
while rg goes on need not be read after it."""
MAX_OUTPUT = 256 << 20
_walks: set[int] = set()
"""Where the walks that go on write to."""
FIX = "install toolgate with the extra `code`, or put `rg` on the PATH"


@cache
def find_rg() -> str | None:
    """Beside this Python, where the package puts it, or wherever the system has it."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if os.access(beside, os.X_OK) else find_program("rg")


def run(
    args: Sequence[str],
    where: int,
    handles: Sequence[int],
    deadline: float,
    take: Callable[[bytes], bool],
    tick: Callable[[], None] | None = None,
) -> bool:
    """Start rg in the directory of the handle `where`; `take` gets its output and says whether to go on.

    Says whether that is all: not where its time was up or its reader had enough.
    """
    return _run(args, where, handles, subprocess.PIPE, (), deadline, take, tick)


def run_quietly(
    args: Sequence[str],
    where: int,
    deadline: float,
    take: Callable[[bytes], None],
    tick: Callable[[], None],
    below: Sequence[int] = (),
) -> bool:
    """The same for many short pieces of output: rg writes them into memory, and nobody wakes up for each.

    `take` gets what is new now and then, and the rest at the end. Says whether that is all. With `below`, rg opens
    nothing but what is in these directories.
    """
    memory = os.memfd_create("rg", os.MFD_CLOEXEC)
    taken = 0

    def look() -> bool:
        nonlocal taken
        if chunk := os.pread(memory, os.fstat(memory).st_size - taken, taken):
            taken += len(chunk)
            take(chunk)
        return taken <= MAX_OUTPUT

    with held(memory), _walk(memory) as threads:
        complete = _run([*threads, *args], where, (), memory, below, deadline, lambda chunk: True, tick, look)
        return look() and complete


def _run(
    args: Sequence[str],
    where: int,
    handles: Sequence[int],
    out: int,
    below: Sequence[int],
    deadline: float,
    take: Callable[[bytes], bool],
    tick: Callable[[], None] | None,
    look: Callable[[], bool] | None = None,
) -> bool:
    with _started(args, where, handles, out, below) as process:
        try:
            complete, errors = _read(process, deadline, take, tick, look)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
    if complete and process.returncode == 2 and errors:
        raise _mistake(errors)
    return complete


@contextmanager
def _walk(handle: int) -> Iterator[list[str]]:
    """How many threads rg is given: a lone walk takes all processors, several share them. A second thread costs a walk a
    quarter more of the processors' time, which others then lack."""
    _walks.add(handle)
    try:
        share = (os.cpu_count() or 1) // len(_walks)
        yield [f"--threads={max(1, share)}"] if len(_walks) > 1 else []
    finally:
        _walks.discard(handle)


def _started(
    args: Sequence[str], where: int, handles: Sequence[int], out: int, below: Sequence[int]
) -> subprocess.Popen[bytes]:
    program = find_rg()
    if program is None:
        raise Unavailable("this search needs rg, which is not installed", FIX)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - a fixed program, a list of arguments, nothing inherited
            [program, *args],
            stdin=nothing,
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=f"/proc/self/fd/{where}",
            env={},
            pass_fds=handles,
            bufsize=0,
        )

    with held(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) as nothing:
        return fenced(start, below, program) if below and available() else start()


def _read(
    process: subprocess.Popen[bytes],
    deadline: float,
    take: Callable[[bytes], bool],
    tick: Callable[[], None] | None,
    look: Callable[[], bool] | None = None,
) -> tuple[bool, bytes]:
    """All it says, until it ends: then it has closed its ends and is waited for.

    `look` is for what it says elsewhere, and says whether to go on."""
    assert process.stderr is not None
    errors = b""
    told = begun = time.monotonic()
    with selectors.DefaultSelector() as both:
        if process.stdout is not None:
            both.register(process.stdout, selectors.EVENT_READ)
        both.register(process.stderr, selectors.EVENT_READ)
        while both.get_map():
            now = time.monotonic()
            if now >= deadline:
                return False, errors
            pause = 0.5 if look is None else min(_LOOK + (now - begun) / 32, 0.5)
            for key, _ in both.select(min(deadline - now, pause)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    both.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors = (errors + chunk)[:_ERRORS]
                elif not take(chunk):
                    return False, errors
            if look is not None and not look():
                return False, errors
            if tick is not None and time.monotonic() - told > 0.5:
                told = time.monotonic()
                tick()
    _wait(process, max(deadline, time.monotonic() + 0.1))
    return True, errors


def _wait(process: subprocess.Popen[bytes], until: float) -> None:
    """It has closed its ends and is about to be gone; Popen's own wait with a limit would first sleep for 1 ms."""
    pause = 0.00005
    while process.poll() is None and time.monotonic() < until:
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _mistake(errors: bytes) -> InvalidArgs:
    text = errors.decode("utf-8", "replace").strip().removeprefix("rg: ")
    first, _, rest = text.partition("\n")
    detail = rest.rpartition("error: ")[2].strip().partition("\n")[0] if "error: " in rest else ""
    message = f"{first.rstrip(':')}: {detail}" if detail else first
    return InvalidArgs(
        f"the pattern cannot be searched for: {message}",
        "use a regular expression within one line; look-around and back-references are not supported",
    )
