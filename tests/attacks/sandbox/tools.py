"""What stands above the code of every attack in Python. It runs inside the sandbox: standard library only.

The scene's names (`CANARY`, `VICTIM`, …) and the kernel's numbers (`CALLS`) are put in front of it.
"""

import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)
CALLS: dict = {}


def won(what=""):
    os.write(1, f"BREACH {what!r}\n"[:2000].encode())


def held(why=""):
    os.write(1, f"held {why}\n"[:300].encode())


def refused(act, *args, **options):
    """It is a breach if this works."""
    try:
        found = act(*args, **options)
    except (OSError, MemoryError, RuntimeError, OverflowError) as error:
        number = getattr(error, "errno", None)
        held(errno.errorcode.get(number, type(error).__name__))
        return None
    won(found)
    return found


def call(name, *args):
    """A system call, by its number."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(CALLS[name]), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def text(value):
    return ctypes.c_char_p(os.fsencode(value))


def space(size):
    return ctypes.create_string_buffer(size)


def read(path):
    with open(path, "rb") as stream:
        return stream.read(1 << 16)


def write(path):
    with open(path, "ab") as stream:
        stream.write(b"changed by a program")
