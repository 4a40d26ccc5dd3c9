"""Parser of unified diffs, git's or plain. What is not part of a file's patch is ignored as git ignores it,
except where it could be a part that was meant and got lost: that is an error with its line and hunk.

The lines of a hunk are counted, so that nothing is applied that its header did not announce.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace

from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.header import (
    FilePatch,
    PatchHunk,
    malformed,
    may_create,
    plain_patch,
    read_git_header,
    shown,
)

# Hunk headers whose counts do not fit the lines after them, with counts that do: models count badly, and
# what they mean is plain from the lines. As `git apply --recount` reads a diff, but for what may have been
# cut off.

_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_LINE = (b" ", b"+", b"-", b"\\")


def recounted(diff: str) -> tuple[str, int]:
    """The diff with right counts, line by line where it was, and how many headers were wrong."""
    lines = io.BytesIO(diff.encode("utf-8", "surrogatepass")).readlines()
    wrong = at = 0
    while at < len(lines):
        found = _HEADER.match(lines[at])
        if found is None:
            at += 1
            continue
        end = _end_of(lines, at + 1, _count(found[2]), _count(found[4]))
        body = lines[at + 1 : end]
        if not (_cut_off(found, body) and end == len(lines)) and (header := _right(found, lines[at], body)):
            lines[at] = header
            wrong += 1
        at = end
    return b"".join(lines).decode("utf-8", "surrogatepass"), wrong


def _count(said: bytes | None) -> int:
    return 1 if said is None else int(said)


def _end_of(lines: list[bytes], start: int, old: int, new: int) -> int:
    """Where the hunk ends: before the next hunk, file or text. Empty lines at its end are empty context lines or what
    stands between two files: as many of them belong to it as its header counts, if that fits, and else none."""
    at = start
    while at < len(lines) and (lines[at] == b"\n" or lines[at].startswith(_LINE)) and not _next(lines, at):
        at += 1
    end = at
    while end > start and lines[end - 1] == b"\n":
        end -= 1
    for last in range(at, end, -1):
        if _sides(lines[start:last]) == (old, new):
            return last
    return end


def _next(lines: list[bytes], at: int) -> bool:
    """Whether another file begins here, or the signature of a mail, rather than a removed line that looks so."""
    header = lines[at].startswith(b"--- ") and at + 2 < len(lines)
    if header and lines[at + 1].startswith(b"+++ ") and lines[at + 2].startswith(b"@@"):
        return True
    return lines[at] == b"-- \n" and not (at + 1 < len(lines) and lines[at + 1].startswith(_LINE))


def _sides(body: list[bytes]) -> tuple[int, int]:
    old = sum(line[:1] in (b" ", b"-", b"\n") for line in body)
    new = sum(line[:1] in (b" ", b"+", b"\n") for line in body)
    return old, new


def _cut_off(found: re.Match[bytes], body: list[bytes]) -> bool:
    """Fewer lines than announced, and no context after the last change: the rest may have got lost."""
    old, new = _sides(body)
    short = old < _count(found[2]) or new < _count(found[4])
    return short and not (body and body[-1][:1] in (b" ", b"\\"))


def _right(found: re.Match[bytes], header: bytes, body: list[bytes]) -> bytes:
    """The header with the counts of its lines; nothing where it has them, or has no lines at all."""
    old, new = _sides(body)
    if not body or (old, new) == (_count(found[2]), _count(found[4])):
        return b""
    return b"@@ -%b,%d +%b,%d @@" % (found[1], old, found[3], new) + header[found.end() :]


_COUNTS = "make the counts in @@ say how many lines follow"


class Body:
    """The lines of one hunk as they are read."""

    def __init__(self, number: int, line: int, header: bytes) -> None:
        found = _HEADER.match(header)
        if found is None:
            fix = "write it as `@@ -start,count +start,count @@`"
            raise malformed(f"{shown(header)} is not a hunk header", line, fix, number)
        self.number, self.line = number, line
        self.old_start, self.old_count = int(found[1]), 1 if found[2] is None else int(found[2])
        self.new_start, self.new_count = int(found[3]), 1 if found[4] is None else int(found[4])
        self.old: list[bytes] = []
        self.new: list[bytes] = []
        self.leading = self.trailing = self.context = self.changed = 0
        self.last = b""
        if (self.old_count and not self.old_start) or (self.new_count and not self.new_start):
            raise malformed("lines are counted from 1", line, "a start of 0 goes with a count of 0", number)

    @property
    def full(self) -> bool:
        return len(self.old) == self.old_count and len(self.new) == self.new_count

    def take(self, text: bytes, line: int) -> None:
        """One line, which must be of a hunk."""
        kind, rest = (b" ", text) if text == b"\n" else (text[:1], text[1:])
        if not text.endswith(b"\n"):
            raise self._wrong("the diff ends in the middle of a line", line, "end the diff with a line end")
        if kind == b"\\":
            self.end_without_newline(text, line)
        elif kind == b" ":
            self._add(self.old, rest, line)
            self._add(self.new, rest, line)
            self.context += 1
            self.trailing += 1
            self.leading += not self.changed
        elif kind == b"-" or kind == b"+":
            self._add(self.old if kind == b"-" else self.new, rest, line)
            self.changed += 1
            self.trailing = 0
        else:
            fix = "start every line of a hunk with a blank, `+` or `-`, and make the counts in @@ right"
            raise self._wrong(f"{shown(text)} is no line of a hunk{self._missing()}", line, fix)
        self.last = kind

    def end_without_newline(self, text: bytes, line: int) -> None:
        """`\\ No newline at end of file`: the line before it is the last of its file and has no end."""
        if not text.startswith(b"\\ ") or len(text) < 12:
            raise self._wrong(
                f"{shown(text)} is no line of a hunk", line, "write `\\ No newline at end of file`"
            )
        sides = {b" ": (self.old, self.new), b"-": (self.old,), b"+": (self.new,)}.get(self.last)
        if sides is None or not all(side[-1].endswith(b"\n") for side in sides):
            raise self._wrong("a no-newline mark follows no line", line, "put it after the line it is about")
        for side in sides:
            side[-1] = side[-1][:-1]
        self.last = b"\\"

    def finish(self, line: int) -> PatchHunk:
        if not self.full:
            raise self._wrong(f"the diff ends within the hunk{self._missing()}", line, _COUNTS)
        if not self.changed:
            raise self._wrong("the hunk changes nothing", self.line, "leave it out")
        return PatchHunk(
            self.number, self.line, self.old_start, self.old_count, self.new_start, self.new_count,
            self.old, self.new, self.leading, self.trailing, self.context,
        )  # fmt: skip

    def _add(self, side: list[bytes], text: bytes, line: int) -> None:
        if side and not side[-1].endswith(b"\n"):
            raise self._wrong(
                "a line follows the one without a newline", line, "move the mark to the last line"
            )
        if len(side) >= (self.old_count if side is self.old else self.new_count):
            raise self._wrong("the hunk has more lines than its header says", line, _COUNTS)
        side.append(text)

    def _missing(self) -> str:
        old, new = self.old_count - len(self.old), self.new_count - len(self.new)
        return f"; {old} old and {new} new lines are still missing"

    def _wrong(self, what: str, line: int, fix: str) -> Exception:
        return malformed(what, line, fix, self.number)


def read_hunks(lines: list[bytes], at: int) -> tuple[tuple[PatchHunk, ...], int]:
    """All hunks from line index `at` on, and the index after them."""
    hunks: list[PatchHunk] = []
    while at < len(lines) and lines[at].startswith(b"@@"):
        body = Body(len(hunks) + 1, at + 1, lines[at])
        at += 1
        while not body.full and at < len(lines):
            body.take(lines[at], at + 1)
            at += 1
        if at < len(lines) and lines[at].startswith(b"\\"):
            body.take(lines[at], at + 1)
            at += 1
        hunk = body.finish(at)
        if hunks:
            _check_order(hunks[-1], hunk)
        hunks.append(hunk)
    if hunks:
        _check_rest(lines, at, len(hunks))
    return tuple(hunks), at


def _check_order(before: PatchHunk, hunk: PatchHunk) -> None:
    if hunk.old_start < before.old_start + before.old_count:
        raise malformed(
            f"it starts at line {hunk.old_start}, but hunk {before.number} reaches to line "
            f"{before.old_start + before.old_count - 1}",
            hunk.line, "put hunks in order, without overlap", hunk.number,
        )  # fmt: skip


def _check_rest(lines: list[bytes], at: int, number: int) -> None:
    """Lines left over after the last hunk would be dropped without a word, so they are an error."""
    start = at
    while at < len(lines) and lines[at] == b"\n":
        at += 1
    if at == len(lines) or not lines[at].startswith((b" ", b"+", b"-", b"\\")):
        return
    header = lines[at].startswith(b"--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ ")
    signature = lines[at] in (b"-- \n", b"--\n") and at == start  # how format-patch ends a mail
    if not header and not signature:
        raise malformed("the hunk has more lines than its header says", at + 1, _COUNTS, number)


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
    hunks: tuple[PatchHunk, ...] = ()
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
