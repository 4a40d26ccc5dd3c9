"""A unified diff, git's or plain, from its text. What is not part of a file's patch is ignored as git ignores it,
except where it could be a part that was meant and got lost: that is an error with its line and hunk."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.header import may_create, plain_patch, read_git_header
from toolgate.workspace.patch.hunks import read_hunks
from toolgate.workspace.patch.model import FilePatch, Hunk, malformed, shown

_NEXT = (b"diff --git ", b"-- \n", b"commit ", b"From ")
_BINARY = (b"GIT binary patch", b"Binary files ")


def parse(diff: str | bytes) -> tuple[FilePatch, ...]:
    """All files of a diff, in its order."""
    found = tuple(_files(_lines(diff)))
    if not found:
        fix = "give a unified diff: `--- a/file`, `+++ b/file`, then hunks"
        raise InvalidArgs("the diff names no file", fix, data={"line": 1, "hunk": None})
    return found


def parse_one(path: MountPath, diff: str | bytes) -> FilePatch:
    """A diff for one given file. It may be hunks alone; a header must be about this file."""
    lines = _lines(diff)
    if not any(_is_header(lines, at) for at in range(len(lines))):
        return _hunks_alone(path, lines)
    found = parse(diff)
    if len(found) > 1:
        raise malformed("a second file begins here", found[1].line, "leave `path` out to patch several files")
    (patch,) = found
    if patch.op in ("rename", "copy"):
        raise malformed(f"it is a {patch.op}", patch.line, "leave `path` out to move files by a diff")
    if path != patch.new and not f"/{path.relative}".endswith(f"/{patch.new.relative}"):
        raise malformed(
            f"it is about {shown(patch.new.shown)}, not {shown(path.shown)}", patch.line, "name the same file"
        )
    return replace(patch, old=path, new=path)


def _files(lines: list[bytes]) -> Iterator[FilePatch]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(b"diff --git "):
            header, at = read_git_header(lines, at)
            _refuse_binary(lines, at)
            hunks, at = read_hunks(lines, at)
            if not hunks:
                _refuse_broken_header(lines, at)
            yield header.patch(hunks)
        elif _is_header(lines, at):
            hunks, end = read_hunks(lines, at + 2)
            if not hunks:
                raise malformed(
                    "the file's header is followed by no hunk", at + 1, "add one, or leave it out"
                )
            yield plain_patch(lines, at, hunks)
            at = end
        else:
            _refuse_lost(lines, at)
            at += 1


def _hunks_alone(path: MountPath, lines: list[bytes]) -> FilePatch:
    hunks: tuple[Hunk, ...] = ()
    at = 0
    while at < len(lines):
        if lines[at].startswith(b"@@") and not hunks:
            start = at
            hunks, at = read_hunks(lines, at)
        else:
            _refuse_lost(lines, at)
            at += 1
    if not hunks:
        raise InvalidArgs("the diff has no hunk", "give at least one `@@ -start,count +start,count @@`")
    return FilePatch("modify", path, path, hunks, start + 1, guessed=may_create("modify", hunks))


def _refuse_lost(lines: list[bytes], at: int) -> None:
    """A line outside of every file's patch that looks as if it belonged to one."""
    line = lines[at]
    if line.startswith((b"diff --cc ", b"diff --combined ", b"@@@ ")):
        raise malformed("this is a combined diff of a merge", at + 1, "make a diff against one parent")
    if line.startswith(b"@@ "):
        raise malformed(
            "a hunk without a file header before it", at + 1, "put `---` and `+++` lines before it"
        )
    _refuse_binary(lines, at)


def _refuse_broken_header(lines: list[bytes], at: int) -> None:
    """A header without hunks ends the file: what goes on right after it was part of it, and is damaged."""
    if at < len(lines) and lines[at] != b"\n" and not lines[at].startswith(_NEXT):
        what = f"{shown(lines[at])} is no line of a file's header"
        raise malformed(what, at + 1, "repair it, or put an empty line before it")


def _refuse_binary(lines: list[bytes], at: int) -> None:
    if at < len(lines) and lines[at].startswith(_BINARY):
        raise malformed("binary patches are not applied", at + 1, "write the file whole instead")


def _is_header(lines: list[bytes], at: int) -> bool:
    if lines[at].startswith(b"diff --git "):
        return True
    return lines[at].startswith(b"--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ ")


def _lines(diff: str | bytes) -> list[bytes]:
    """With their ends, split at LF alone: a CR is content."""
    if isinstance(diff, str):
        try:
            diff = diff.encode()
        except UnicodeEncodeError:
            raise InvalidArgs("the diff has characters that UTF-8 cannot hold", "remove them") from None
    return io.BytesIO(diff).readlines()
