"""Where a hunk belongs: the rule of `git apply` without fuzz.

All lines of the hunk's old side must be there, exactly. It starts at the line its header says, and is looked for
elsewhere nearest first, at equal distance downwards first. A hunk from line 1 belongs at the beginning; one
without context after its changes belongs at the end. Lines that another hunk has written are out of bounds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from toolgate.core.errors import TooLarge
from toolgate.workspace.patch.model import Hunk

Region = tuple[int, int]
_FIRST_REACH = 100
WORK = 30_000_000
"""Lines that one diff may make us look through, hunk by hunk: whoever writes it chooses where its hunks say they are."""
_MOVED_AT_ONCE = 64
"""Lines that are moved up or down in the time in which one is looked at."""


class Work:
    """What a diff may still cost, all its files together."""

    def __init__(self) -> None:
        self.left = WORK

    def spend(self, lines: int) -> None:
        self.left -= lines
        if self.left < 0:
            raise TooLarge(
                "the hunks of this diff are too many, too far from where their headers put them",
                "make the diff anew from the files as they are, or in parts",
            )

    def move(self, lines: int) -> None:
        self.spend(lines // _MOVED_AT_ONCE)


def find(image: list[bytes], hunk: Hunk, taken: list[Region], work: Work) -> int | None:
    """The index of the line where the hunk applies, or None."""
    at_start, at_end = hunk.old_start <= 1, not hunk.trailing
    expected = expected_line(hunk)
    if at_start or at_end:
        fixed = 0 if at_start else len(image) - len(hunk.old)
        if at_end and fixed + len(hunk.old) != len(image):
            return None
        # Stricter than git: with no context around it, only the line number says where it belongs.
        if not hunk.context and fixed != expected:
            return None
        return fixed if fits(image, hunk, fixed, taken) else None
    expected = min(expected, len(image))
    return expected if fits(image, hunk, expected, taken) else _nearest(image, hunk, expected, taken, work)


def expected_line(hunk: Hunk) -> int:
    if hunk.new_count:
        return hunk.new_start - 1
    return hunk.new_start  # a side without lines names the line before it


def fits(image: list[bytes], hunk: Hunk, at: int, taken: list[Region]) -> bool:
    end = at + len(hunk.old)
    return at >= 0 and image[at:end] == hunk.old and not _overlaps(at, end, taken)


def _nearest(image: list[bytes], hunk: Hunk, expected: int, taken: list[Region], work: Work) -> int | None:
    if not hunk.old[-1].endswith(b"\n"):  # the last line of a file is nowhere but at its end
        end = len(image) - len(hunk.old)
        return end if fits(image, hunk, end, taken) else None
    reach = _FIRST_REACH
    while True:  # the window holds every place within reach, so the nearest of these is the nearest of all
        low, high = max(0, expected - reach), min(len(image), expected + reach + len(hunk.old))
        work.spend(high - low)
        at = _nearest_in(image, (low, high), hunk, expected, taken)
        if (low, high) == (0, len(image)) or (at is not None and abs(at - expected) <= reach):
            return at
        reach *= 16


def _nearest_in(
    image: list[bytes], window: Region, hunk: Hunk, expected: int, taken: list[Region]
) -> int | None:
    low, high = window
    lines = image[low:high]
    text = b"\n" + b"".join(lines)
    needle = b"\n" + b"".join(hunk.old)
    starts = list(accumulate(map(len, lines), initial=0))  # of each line, in `text`, with the LF before it
    size, middle = len(hunk.old), starts[expected - low]

    def line(offset: int) -> int:
        return low + bisect_left(starts, offset)

    after = text.find(needle, middle)
    while after >= 0 and _overlaps(line(after), line(after) + size, taken):
        after = text.find(needle, after + 1)
    # Backwards as `find` in the reversed text: `rfind` takes time quadratic in a long needle, and holds everybody up.
    back, mirrored = text[middle + len(needle) - 2 :: -1], needle[::-1]
    last = len(back) - len(needle)
    before = back.find(mirrored)
    while before >= 0 and _overlaps(line(last - before), line(last - before) + size, taken):
        before = back.find(mirrored, before + 1)
    found = [line(offset) for offset in (after, last - before if before >= 0 else -1) if offset >= 0]
    return min(found, key=lambda at: abs(at - expected), default=None)


def _overlaps(start: int, end: int, taken: list[Region]) -> bool:
    """The regions stand in order and apart, so that the first one that ends later tells."""
    first = bisect_right(taken, start, key=_end)
    return first < len(taken) and taken[first][0] < end


def _end(region: Region) -> int:
    return region[1]
