"""What a program changed in a copy of the project, found by comparing the two. For where the kernel has no layers."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Literal

from toolgate.sandbox.job import Altered, View
from toolgate.sandbox.overlay import DIRECTORY, READ, Layer, content_of

Kind = Literal["file", "directory", "other"]


def compare(handle: int, view: View, layer: Layer) -> tuple[Altered, ...]:
    """`handle` is the copy, in which the program may have made anything of anything."""
    found = layer.read(handle)
    root = os.open(view.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        before = dict(_names(root, "", frozenset(view.hidden)))
        altered = tuple(each for each in found if _differs(root, each, before.get(each.path)))
    finally:
        os.close(root)
    return (*_gone(found, before, layer), *altered)


def _names(handle: int, below: str, hidden: frozenset[str]) -> Iterator[tuple[str, Kind]]:
    for name in os.listdir(handle):
        path = below + name
        if path in hidden:
            continue
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            yield path, "file" if stat.S_ISREG(mode) else "other"
            continue
        yield path, "directory"
        inner = os.open(name, DIRECTORY, dir_fd=handle)
        try:
            yield from _names(inner, path + "/", hidden)
        finally:
            os.close(inner)


def _differs(root: int, each: Altered, before: Kind | None) -> bool:
    if each.kind != "file" or before != "file":
        return each.kind != before
    content, mode = _original(root, each.path, len(each.content))
    return content != each.content or mode != each.mode


def _original(root: int, path: str, room: int) -> tuple[bytes | None, int]:
    *way, name = path.split("/")
    parent = os.dup(root)
    try:
        for part in way:
            inner = os.open(part, DIRECTORY, dir_fd=parent)
            os.close(parent)
            parent = inner
        handle = os.open(name, READ, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        return content_of(handle, room), stat.S_IMODE(os.fstat(handle).st_mode) & 0o777
    finally:
        os.close(handle)


def _gone(found: tuple[Altered, ...], before: dict[str, Kind], layer: Layer) -> Iterator[Altered]:
    """What is in a directory that went is told by the directory. What could not be read has not gone."""
    there = {each.path: each.kind for each in found}
    unread = {text.partition(": ")[0] for text in layer.dropped}
    for path, kind in sorted(before.items()):
        above = path.rpartition("/")[0]
        if there.get(path) == kind or path in unread or layer.names < 0:
            continue
        if not above or there.get(above) == "directory":
            yield Altered(path, "gone")
