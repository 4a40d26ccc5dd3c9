"""The content scan: what a whole Change adds, searched for secrets, malicious payloads and hidden characters, and where that
stands.

New is what stands on a line that was not there before, and that of which there is more now.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from toolgate.core.change import Change, FileChange
from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.core.ports import Scan, VaultValues
from toolgate.secrets.scan.rules import Scanned, SecretHit, plain

SHOWN = 20
"""Findings of one rule in one file."""
_SHORTEST = 6
_FAR = 10_000
_MASKED = "…"
_ORDER = ("payload", "secret", "hidden")


def look(content: bytes, vault: VaultValues | None, *, name: bool = False) -> Scanned:
    """Imported when something is scanned: the table of rules takes its time to compile."""
    from toolgate.secrets.scan.reading import look as found

    return found(content, vault, name=name)


class _Values:
    """The secrets that were seen."""

    def __init__(self) -> None:
        self.found: set[bytes] = set()

    def add(self, seen: Scanned) -> None:
        for hit in seen.hits:
            self.found.update(value for value in hit.values if len(value) >= _SHORTEST)


class ContentScanner:
    """Implements `core.ports.Scanner`. Works in time linear in the contents and keeps nothing."""

    def __init__(self, vault: VaultValues | None = None) -> None:
        self.vault = vault

    def scan(self, change: Change) -> Scan:
        findings: list[Finding] = []
        values = _Values()
        moved = _moved(change.files)
        for file in change.files:
            if file.after is None:
                if file.kind == "file" and file.before:
                    values.add(look(file.before, self.vault))
                continue
            if file.before is None:
                findings += self._name(file.path, values)
            if file.kind == "file" and file not in moved:
                findings += self._content(file, values)
        findings.sort(key=lambda finding: _ORDER.index(finding.kind))
        found = frozenset(value.decode("utf-8", "replace") for value in values.found)
        return Scan(tuple(findings), found)

    def hide(self, content: bytes) -> bytes:
        from toolgate.secrets.scan.reading import without_secrets

        return without_secrets(content, self.vault)

    def read(self, path: MountPath, content: bytes) -> list[Finding]:
        """All that is in a file as it is."""
        values = _Values()
        return [*self._name(path, values), *self._content(FileChange(path, None, content), values)]

    def _content(self, file: FileChange, values: _Values) -> list[Finding]:
        assert file.after is not None
        if file.before == file.after:
            return []
        seen = look(file.after, self.vault)
        old = look(file.before, self.vault) if file.before is not None else Scanned([])
        values.add(seen)
        values.add(old)
        after = plain(file.after)
        before = plain(file.before) if file.before is not None else None
        new = _limited(fresh(seen, after, old, before))
        secrets = [hit.span for hit in seen.hits if hit.kind == "secret"]
        return list(_placed(new, after, file.path, secrets))

    def _name(self, path: MountPath, values: _Values) -> Iterator[Finding]:
        """A name that holds a secret is not repeated in the finding."""
        name = path.relative.encode("utf-8", "surrogateescape")
        seen = look(name, self.vault, name=True)
        values.add(seen)
        shown = name
        for hit in seen.hits:
            for value in hit.values:
                shown = shown.replace(value, _MASKED.encode())
        where = MountPath(f"{path.mount}:{shown.decode('utf-8', 'replace')}")
        for hit in _limited(seen.hits):
            yield Finding(hit.kind, hit.rule, where, 0, 0, hit.excerpt)


def _moved(files: Sequence[FileChange]) -> set[FileChange]:
    """Files that come with the very content with which another of the same mount goes: renamed, nothing new."""
    gone = Counter(
        (file.path.mount, file.before_hash) for file in files if file.kind == "file" and file.after is None
    )
    found = set()
    for file in files:
        key = (file.path.mount, file.after_hash)
        if file.kind == "file" and file.before is None and gone[key] > 0:
            gone[key] -= 1
            found.add(file)
    return found


def _limited(hits: Iterable[SecretHit]) -> list[SecretHit]:
    counts: Counter[str] = Counter()
    kept = []
    for hit in hits:
        counts[hit.rule] += 1
        if counts[hit.rule] <= SHOWN:
            kept.append(hit)
    return kept


def _placed(
    hits: Sequence[SecretHit], content: bytes, path: MountPath, secrets: Sequence[tuple[int, int]]
) -> Iterator[Finding]:
    """With line and column, counted on from one hit to the next."""
    line, counted = 1, 0
    for hit in hits:
        line += content.count(b"\n", counted, hit.start)
        counted = hit.start
        begin = content.rfind(b"\n", max(0, hit.start - _FAR), hit.start) + 1
        near = begin > 0 or hit.start <= _FAR
        before = content[begin : hit.start] if near else b""
        column = len(before.decode("utf-8", "replace")) + 1 if near else 0
        first, last = hit.span
        covered = hit.kind != "secret" and any(first < end and start < last for start, end in secrets)
        yield Finding(hit.kind, hit.rule, path, line, column, _MASKED if covered else hit.excerpt)


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
