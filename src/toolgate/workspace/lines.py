"""Lines out of a file of any size, without holding more of it than was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from toolgate.core.conceal import Secrets, conceal, reach
from toolgate.core.errors import TooLarge

Range = tuple[int, int]
"""First and last line, counted from 1, both included."""
_CHUNK = 1 << 20


def lines_of(
    handle: int,
    ranges: Sequence[Range],
    shown: str,
    *,
    keep: int,
    scan: int,
    secrets: Secrets | None = None,
) -> list[bytes]:
    """The bytes of each range. At most `keep` bytes are held and `scan` bytes looked at."""
    first, last = min(start for start, _ in ranges), max(end for _, end in ranges)
    kept: dict[int, bytearray] = {}
    at, held, seen = 1, 0, 0
    for chunk in _plain(handle) if secrets is None else _concealed(handle, first, secrets):
        if at > last:
            break
        seen += len(chunk)
        if seen > scan:
            raise TooLarge(
                f"line {first:,} of {shown!r} is beyond the first {scan:,} bytes", "ask for earlier lines"
            )
        breaks = chunk.count(b"\n")
        if at + breaks >= first:
            held += _collect(chunk, at, ranges, kept)
            if held > keep:
                raise TooLarge(
                    f"these lines of {shown!r} have more than {keep:,} bytes", "ask for fewer lines"
                )
        at += breaks
    return [b"".join(kept.get(number, b"") for number in _numbers(one, kept)) for one in ranges]


def _plain(handle: int) -> Iterator[bytes]:
    while chunk := os.read(handle, _CHUNK):
        yield chunk


def _concealed(handle: int, first: int, secrets: Secrets) -> Iterator[bytes]:
    """The same without secrets, from a little before the first line that is wanted: what is far above it is only
    counted. As much is held back as a secret may take, in case it goes on in the next chunk."""
    margin = reach(secrets)
    kept, at = b"", 1
    for chunk in _plain(handle):
        kept += chunk
        if len(kept) <= 2 * margin:
            continue
        breaks = kept.count(b"\n")
        if at + breaks < first:
            cut, given = len(kept) - margin, kept[: len(kept) - margin]
        else:
            cut = _outside(kept, len(kept) - margin, secrets)
            given = conceal(kept[:cut], secrets).text
        at += given.count(b"\n")
        yield given
        kept = kept[cut:]
    yield conceal(kept, secrets).text


def _outside(data: bytes, cut: int, secrets: Secrets) -> int:
    """The place, or if a secret stands there its end."""
    return next((span.end for span in secrets.spans(data) if span.start < cut < span.end), cut)


def _collect(chunk: bytes, at: int, ranges: Sequence[Range], kept: dict[int, bytearray]) -> int:
    """Keep what belongs to a range; a line that goes on in the next chunk is continued there."""
    held = 0
    for number, part in enumerate(_split(chunk), start=at):
        if part and any(start <= number <= end for start, end in ranges):
            kept.setdefault(number, bytearray()).extend(part)
            held += len(part)
    return held


def _split(chunk: bytes) -> list[bytes]:
    """At `\\n` only, which stays with its line."""
    parts = chunk.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + parts[-1:]


def _numbers(one: Range, kept: dict[int, bytearray]) -> list[int]:
    return sorted(number for number in kept if one[0] <= number <= one[1])
