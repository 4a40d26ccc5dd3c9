"""A Change as a person reads it: a unified diff made from the bytes that will be written.

The work is bounded, because an agent chooses both sides: what is equal at both ends is left out, and a middle that
is too different for its length is shown as one block replaced by another. The longer it is, the fewer edits are found.
Many files share one bound: where it is used up, the rest are shown as blocks too.

A Change knows no renames, it says what is there before and after. People look for the lines that differ, so of one file
that goes and one that comes, with the same content or most of it, a diff says that it moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolgate.core.change import Change, FileChange
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.paths import MountPath

CONTEXT = 3
MAX_EDITS = 500
MAX_WORK = 3_000_000
"""Lines times edits."""
MAX_EFFORT = 10_000_000
"""Steps of the search for the fewest edits, in all files of a Change together; one diagonal counts as four."""
MAX_HEX = 64 << 10
"""Bytes of a binary file that are shown; nobody reads more of them in this form."""
SIMILAR = 0.5
"""The share of bytes in equal lines from which on a file is said to have moved, as git has it."""
MAX_PAIRS = 400
"""Of a file that goes and one that comes: of more, none are compared."""
MAX_BYTES = 1 << 20
"""Of a file that is compared."""
MAX_COMPARED = 32 << 20
"""Bytes, counted once for each comparison that they are part of."""
_ROW = 16
HEX = "hex "
"""How a line of bytes begins."""
_CONTROLS = frozenset({*range(0x20), *range(0x7F, 0xA0)}) - frozenset(b"\t\n\f\r")
"""Bytes that no Latin-1 text has; what has them is shown as binary."""


class Edit(NamedTuple):
    """Lines `old:old_end` of the one side become lines `new:new_end` of the other."""

    old: int
    old_end: int
    new: int
    new_end: int


class _Effort:
    """What may still be spent on finding the fewest edits."""

    def __init__(self) -> None:
        self.left = MAX_EFFORT


def render(change: Change) -> str:
    effort = _Effort()
    return "\n".join(_render_file(file, effort) for file in moved(change.files))


def is_all_text(change: Change) -> bool:
    """Whether every file is shown as the text that it is: none as binary, none in another encoding."""
    sides = ((side, name) for file in change.files for side, name in ((file.before, "a"), (file.after, "b")))
    return all(_text(content, name) != (None, "") and not _text(content, name)[1] for content, name in sides)


def _render_file(each: RenamedFile, effort: _Effort) -> str:
    file = each.file
    if each.old_path is not None:
        names = f"rename from {each.old_path.shown}\nrename to {file.path.shown}\n"
        return names + _mode(file) + _render_content(file, each.old_path, effort)
    if file.kind == "directory":
        return f"{'remove' if file.after is None else 'create'} directory {file.path.shown}/"
    return _mode(file) + _render_content(file, None, effort)


def _mode(file: FileChange) -> str:
    """Said where the bits change, or a new file can be run."""
    old, new = file.before_mode, file.after_mode
    if new is None or old == new:
        return ""
    if file.before is None:
        return f"new file mode {new:o}\n" if new & 0o111 else ""
    return f"old mode {old:o}\nnew mode {new:o}\n" if old is not None else f"new mode {new:o}\n"


def _render_content(file: FileChange, old_path: MountPath | None, effort: _Effort) -> str:
    old = "/dev/null" if file.before is None else f"a/{(old_path or file.path).shown}"
    new = "/dev/null" if file.after is None else f"b/{file.path.shown}"
    return f"--- {old}\n+++ {new}\n" + "\n".join(_body(file, old_path, effort)).rstrip("\n")


def _body(file: FileChange, old_path: MountPath | None, effort: _Effort) -> Iterator[str]:
    if old_path is not None and file.before == file.after:
        yield f"(content unchanged, {_size(file.after)})"
        return
    before, old_note = _text(file.before, "before")
    after, new_note = _text(file.after, "after")
    yield from (note for note in (old_note, new_note) if note)
    if not before and not after and None in (before, after):  # no text on either side
        yield f"binary: {_size(file.before)} → {_size(file.after)}, {file.after_hash or 'removed'}"
        yield from _hexadecimal(file)
        return
    if before is None:
        yield f"before is binary: {_size(file.before)}, {file.before_hash}"
    if after is None:
        yield f"after is binary: {_size(file.after)}, {file.after_hash}"
        yield from _hexadecimal(file)
    hunks = "".join(_hunks(_lines(before or ""), _lines(after or ""), effort))
    if hunks:
        yield hunks
    elif file.before == file.after:
        yield "(no change)"
    else:
        yield "(empty file)" if not (before or after) else "(the text is the same, its bytes are not)"


def unread(change: Change) -> list[bytes]:
    """Contents that are too long to be shown as bytes: a human looks at them by themselves."""
    texts = (
        (file.after or b"", _text(file.after, "after")[0]) for file in change.files if file.kind == "file"
    )
    return [content for content, text in texts if text is None and len(content) > MAX_HEX]


def _hexadecimal(file: FileChange) -> Iterator[str]:
    """The bytes that a binary file would have, as `hexdump -C` shows them: what is approved has been shown, or can be."""
    content = file.after or b""
    for at in range(0, min(len(content), MAX_HEX), _ROW):
        row = content[at : at + _ROW]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{HEX}{at:08x}  {row.hex(' '):<{3 * _ROW - 1}}  |{letters}|"
    if len(content) > MAX_HEX:
        yield (
            f"{HEX}…         {len(content) - MAX_HEX:,} more bytes are not shown: "
            f"`toolgate approvals QUESTION --file {file.path.shown}` gives all of them"
        )


def _text(content: bytes | None, side: str) -> tuple[str | None, str]:
    """The text of a file, None if it is binary, and what has to be said about its encoding."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        assert content is not None
        if not _CONTROLS.isdisjoint(content):
            return None, ""
        return content.decode("latin-1"), f"{side} is not UTF-8; it is shown as Latin-1"
    return (None if "\0" in text else text), ""


def _lines(text: str) -> list[str]:
    """Only a newline ends a line, as for `patch`; `splitlines` knows others."""
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def _hunks(old: list[str], new: list[str], effort: _Effort) -> Iterator[str]:
    group: list[Edit] = []
    for edit in _edits(old, new, effort):
        if group and edit.old - group[-1].old_end > 2 * CONTEXT:
            yield from _hunk(old, new, group)
            group = []
        group.append(edit)
    if group:
        yield from _hunk(old, new, group)


def _hunk(old: list[str], new: list[str], edits: list[Edit]) -> Iterator[str]:
    lead = min(CONTEXT, edits[0].old)
    at, new_at = edits[0].old - lead, edits[0].new - lead
    trail = min(CONTEXT, len(old) - edits[-1].old_end)
    end, new_end = edits[-1].old_end + trail, edits[-1].new_end + trail
    yield f"@@ -{_span(at, end)} +{_span(new_at, new_end)} @@\n"
    for edit in edits:
        yield from (_line(" ", line) for line in old[at : edit.old])
        yield from (_line("-", line) for line in old[edit.old : edit.old_end])
        yield from (_line("+", line) for line in new[edit.new : edit.new_end])
        at = edit.old_end
    yield from (_line(" ", line) for line in old[at:end])


def _span(start: int, end: int) -> str:
    """As unified diffs count: from 1, and an empty span by the line before it."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _edits(old: list[str], new: list[str], effort: _Effort) -> list[Edit]:
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if not left and not right:
        return []
    whole = Edit(head, head + len(left), head, head + len(right))
    if not left or not right:
        return [whole]
    steps = _steps(left, right, effort)
    return [whole] if steps is None else _joined(steps, head)


def _steps(old: list[str], new: list[str], effort: _Effort) -> list[tuple[int, int, bool]] | None:
    """The fewest lines to remove and insert (Myers), last first: where, and whether it inserts.

    None beyond MAX_EDITS, MAX_WORK or what is left of MAX_EFFORT, which bounds the time whatever the lines are.
    """
    most = min(len(old) + len(new), MAX_EDITS, MAX_WORK // max(len(old), len(new)))
    reach = {1: 0}
    """How far into `old` each diagonal has come."""
    trace: list[dict[int, int]] = []
    for edits in range(most + 1):
        effort.left -= 4 * (edits + 1)
        if effort.left < 0:
            return None
        trace.append(reach.copy())
        for diagonal in range(-edits, edits + 1, 2):
            x = reach[diagonal + 1] if _goes_down(reach, diagonal, edits) else reach[diagonal - 1] + 1
            start = x
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            effort.left -= x - start
            reach[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _back(trace, len(old), len(new))
    return None


def _goes_down(reach: dict[int, int], diagonal: int, edits: int) -> bool:
    """Whether the diagonal is best reached by an insertion."""
    return diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])


def _back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int, bool]]:
    steps = []
    for edits in range(len(trace) - 1, 0, -1):
        down = _goes_down(trace[edits], x - y, edits)
        before = x - y + (1 if down else -1)
        x = trace[edits][before]
        y = x - before
        steps.append((x, y, down))
    return steps


def _joined(steps: list[tuple[int, int, bool]], head: int) -> list[Edit]:
    """Neighbouring steps as one edit."""
    found: list[Edit] = []
    for x, y, inserts in reversed(steps):
        edit = Edit(head + x, head + x + (not inserts), head + y, head + y + inserts)
        if found and (found[-1].old_end, found[-1].new_end) == (edit.old, edit.new):
            edit = Edit(found[-1].old, edit.old_end, found[-1].new, edit.new_end)
            found.pop()
        found.append(edit)
    return found


def _size(content: bytes | None) -> str:
    return "no file" if content is None else f"{len(content):,} bytes"


@dataclass(frozen=True, slots=True)
class RenamedFile:
    """One file as a person reads it, and where it was before if it was elsewhere."""

    file: FileChange
    old_path: MountPath | None = None


def moved(files: Sequence[FileChange]) -> Iterator[RenamedFile]:
    """All files in their order; what moves stands where it comes to be."""
    gone = [file for file in files if file.kind == "file" and file.before and file.after is None]
    come = [file for file in files if file.kind == "file" and file.after and file.before is None]
    pairs = _same(gone, come)
    used = {file.path for file in pairs.values()}
    pairs |= _similar(
        [file for file in gone if file.path not in used], [file for file in come if file.path not in pairs]
    )
    left = {file.path for file in pairs.values()}
    for file in files:
        old = pairs.get(file.path)
        if old is not None and file.kind == "file":
            made = FileChange(file.path, old.before, file.after, old.before_mode, file.after_mode)
            yield RenamedFile(made, old.path)
        elif file.kind == "directory" or file.path not in left:
            yield RenamedFile(file)


def _same(gone: Sequence[FileChange], come: Sequence[FileChange]) -> dict[MountPath, FileChange]:
    """By where they come to be."""
    waiting: dict[bytes | None, list[FileChange]] = {}
    for file in reversed(gone):
        waiting.setdefault(file.before, []).append(file)
    return {file.path: waiting[file.after].pop() for file in come if waiting.get(file.after)}


def _similar(gone: Sequence[FileChange], come: Sequence[FileChange]) -> dict[MountPath, FileChange]:
    """The most alike first. Where there are too many to compare, nothing is said to have moved."""
    if not gone or not come or len(gone) * len(come) > MAX_PAIRS:
        return {}
    compared = sum(_counted(file.before) for file in gone) * len(come)
    if compared + sum(_counted(file.after) for file in come) * len(gone) > MAX_COMPARED:
        return {}
    before = {file.path: _line_counts(file.before or b"") for file in gone}
    after = {file.path: _line_counts(file.after or b"") for file in come}
    found = [(_alike(before[old.path], after[new.path]), old, new) for old in gone for new in come]
    pairs: dict[MountPath, FileChange] = {}
    taken: set[MountPath] = set()
    for share, old, new in sorted(found, key=lambda each: -each[0]):
        if share >= SIMILAR and old.path not in taken and new.path not in pairs:
            pairs[new.path] = old
            taken.add(old.path)
    return pairs


def _counted(content: bytes | None) -> int:
    return len(content) if content is not None and len(content) <= MAX_BYTES else 0


def _line_counts(content: bytes) -> Counter[bytes]:
    return Counter(content.split(b"\n")) if len(content) <= MAX_BYTES else Counter()


def _alike(one: Counter[bytes], other: Counter[bytes]) -> float:
    larger = max(_bytes_in(one), _bytes_in(other))
    return _bytes_in(one & other) / larger if larger else 0.0


def _bytes_in(lines: Counter[bytes]) -> int:
    return sum(len(line) * count for line, count in lines.items())
