"""Which hits are new: those that stand on a line which was not there before, and those of which there are more now."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence

from toolgate.secrets.scan.rules import Scanned, SecretHit


def fresh(seen: Scanned, after: bytes, old: Scanned, before: bytes | None) -> list[SecretHit]:
    """A line counts as old if it stood there as often before: moving it about makes nothing new."""
    hits = seen.hits
    if before is None or not hits:
        return hits
    spans = _spans(hits, after)
    wanted = {line for lines in spans for line in lines}
    now, then = _count(after, wanted), _count(before, wanted)
    room = Counter(map(_identity, old.hits))
    found = []
    for hit, lines in zip(hits, spans, strict=True):
        if hit.rule in seen.crowded or any(now[line] > then[line] for line in lines):
            found.append(hit)
            continue
        room[_identity(hit)] -= 1
        if room[_identity(hit)] < 0:
            found.append(hit)
    return found


def _identity(hit: SecretHit) -> tuple[str, tuple[bytes, ...]]:
    return hit.rule, hit.values


def _spans(hits: Sequence[SecretHit], content: bytes) -> list[tuple[bytes, ...]]:
    """The lines that belong to each hit. Hits on one long line share it, so that it is looked for once."""
    found: list[tuple[bytes, ...]] = []
    known: tuple[bytes, ...] = ()
    begin, end = 0, -1
    for hit in hits:
        first, last = hit.span
        if not begin <= first <= last <= end:
            begin = content.rfind(b"\n", 0, first) + 1
            end = content.find(b"\n", last)
            end = len(content) if end < 0 else end
            known = tuple(line.rstrip(b"\r") for line in content[begin:end].split(b"\n"))
        found.append(known)
    return found


def _count(content: bytes, wanted: set[bytes]) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for line in io.BytesIO(content):
        bare = line.rstrip(b"\r\n")
        if bare in wanted:
            found[bare] += 1
    return found
