"""Files that exist in memory only: how something of any size is handed over at once."""

from __future__ import annotations

import errno
import fcntl
import os

_NOT_EXECUTABLE = 0x8
"""What is handed to a program as data must not become one that it executes."""


def file(content: bytes) -> int:
    """A handle of a file that nobody can change any more."""
    handle = _create(os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.lseek(handle, 0, os.SEEK_SET)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _create(flags: int) -> int:
    try:
        return os.memfd_create("given", flags | _NOT_EXECUTABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create("given", flags)  # a kernel before 6.3
