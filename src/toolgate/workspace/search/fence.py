"""A fence around rg: behind it rg opens nothing but what lies below the given handles.

rg walks by path, so a name that is swapped for a link under its feet leads it wherever the link says. Landlock holds
for a thread and the programs that it starts, so a thread is fenced in, starts rg and ends. It costs rg a tenth of
its time: a walk of which it is known that no name was swapped is made without.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import TypeVar

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
