"""A source file as the code tools see it: opened by the mount's rules, decoded, in lines."""

from __future__ import annotations

import os

from toolgate.core.conceal import conceal_text
from toolgate.core.errors import TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held
from toolgate.workspace.look import read_steady
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.proof import note_file
from toolgate.workspace.reading import open_to_read
from toolgate.workspace.text import decode

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Loaded:
    lines: list[str]
    status: os.stat_result
    encoding: str
    ended: bool
    """Whether its last line has a line end."""


def load(mounts: Mounts, path: MountPath) -> Loaded:
    with held(open_to_read(mounts, path)) as handle:
        status = os.fstat(handle)
        if status.st_size > MAX_BYTES:
            raise TooLarge(
                f"{path.shown!r} has {status.st_size:,} bytes, the limit is {MAX_BYTES:,}",
                "search it with code.search instead",
            )
        data, status = read_steady(handle, path.shown, MAX_BYTES)
        note_file(mounts, path, status, data)
    text = decode(data, path.shown)
    # before it is cut into lines and outlined: half a secret is not known as one
    lines = split_lines(conceal_text(text.text, mounts.secrets()))
    return Loaded(lines, status, text.encoding, text.text.endswith(("\n", "\r")))


def split_lines(content: str) -> list[str]:
    """Lines as editors count them: ended by LF, CRLF or CR, not by the rarer characters of Unicode."""
    if "\r" in content:
        content = content.replace("\r\n", "\n").replace("\r", "\n")
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
