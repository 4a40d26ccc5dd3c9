"""Running rg: fixed arguments, no shell, no environment, no configuration, ended when its time is up."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolgate.core.errors import InvalidArgs, Unavailable
from toolgate.workspace.confine import held

_CHUNK = 1 << 18
_ERRORS = 8192
MAX_OUTPUT = 256 << 20
FIX = "install toolgate with the extra `code`, or put `rg` on the PATH"


@dataclass(frozen=True, slots=True)
class Ended:
    complete: bool
    """False where its time was up or its reader had enough."""


@cache
def find_rg() -> str | None:
    """Beside this Python, where the package puts it, or wherever the system has it."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("rg")


def run(
    args: Sequence[str],
    where: int,
    handles: Sequence[int],
    deadline: float,
    take: Callable[[bytes], bool],
    tick: Callable[[], None] | None = None,
) -> Ended:
    """Start rg in the directory of the handle `where`; `take` gets its output and says whether to go on."""
    with _started(args, where, handles, subprocess.PIPE) as process:
        try:
            complete, errors = _read(process, deadline, take, tick)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
    if complete and process.returncode == 2 and errors:
        raise _mistake(errors)
    return Ended(complete)


def run_quietly(
    args: Sequence[str], where: int, deadline: float, tick: Callable[[int], None]
) -> tuple[bytes, bool]:
    """The same for many short pieces of output: rg writes them into memory, and nobody wakes up for each.

    `tick` is told now and then how many lines there are.
    """
    memory = os.memfd_create("rg", os.MFD_CLOEXEC)

    def count() -> None:
        tick(os.pread(memory, os.fstat(memory).st_size, 0).count(b"\n"))

    with held(memory), _started(args, where, (), memory) as process:
        try:
            complete, errors = _read(process, deadline, lambda chunk: True, count, memory)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        size = os.fstat(memory).st_size
        output = os.pread(memory, size, 0)
    if complete and process.returncode == 2 and errors:
        raise _mistake(errors)
    return output, complete


def _started(args: Sequence[str], where: int, handles: Sequence[int], out: int) -> subprocess.Popen[bytes]:
    program = find_rg()
    if program is None:
        raise Unavailable("this search needs rg, which is not installed", FIX)
    return subprocess.Popen(  # noqa: S603 - a fixed program, a list of arguments, nothing inherited
        [program, *args],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        cwd=f"/proc/self/fd/{where}",
        env={},
        pass_fds=handles,
        bufsize=0,
    )


def _read(
    process: subprocess.Popen[bytes],
    deadline: float,
    take: Callable[[bytes], bool],
    tick: Callable[[], None] | None,
    memory: int | None = None,
) -> tuple[bool, bytes]:
    """All it says, until it ends: then it has closed its ends and is waited for."""
    assert process.stderr is not None
    errors = b""
    told = time.monotonic()
    with selectors.DefaultSelector() as both:
        if process.stdout is not None:
            both.register(process.stdout, selectors.EVENT_READ)
        both.register(process.stderr, selectors.EVENT_READ)
        while both.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return False, errors
            for key, _ in both.select(min(left, 0.5)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    both.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors = (errors + chunk)[:_ERRORS]
                elif not take(chunk):
                    return False, errors
            if tick is not None and time.monotonic() - told > 0.5:
                told = time.monotonic()
                tick()
            if memory is not None and os.fstat(memory).st_size > MAX_OUTPUT:
                return False, errors
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(deadline - time.monotonic(), 0.1))
    return True, errors


def _mistake(errors: bytes) -> InvalidArgs:
    text = errors.decode("utf-8", "replace").strip().removeprefix("rg: ")
    first, _, rest = text.partition("\n")
    detail = rest.rpartition("error: ")[2].strip() if "error: " in rest else ""
    message = f"{first.rstrip(':')}: {detail}" if detail else first
    return InvalidArgs(
        f"the pattern cannot be searched for: {message}",
        "use a regular expression within one line; look-around and back-references are not supported",
    )
