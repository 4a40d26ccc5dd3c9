"""The scan of a whole Change: what it adds, and where that stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from toolgate.core.change import Change, FileChange
from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.core.ports import Scan, Vault
from toolgate.secrets.scan.fresh import fresh
from toolgate.secrets.scan.rules import Hit, plain

SHOWN = 20
"""Findings of one rule in one file."""
MAX_VALUES = 300
"""Beyond so many secrets, what is recorded is left out altogether instead of masked one by one."""
_SHORTEST = 6
_FAR = 10_000
_MASKED = "…"


def look(content: bytes, vault: Vault | None, *, name: bool = False) -> list[Hit]:
    """Imported when something is scanned: the table of rules takes its time to compile."""
    from toolgate.secrets.scan.reading import look as found

    return found(content, vault, name=name)


class ContentScanner:
    """Implements `core.ports.Scanner`. Works in time linear in the contents and keeps nothing."""

    def __init__(self, vault: Vault | None = None) -> None:
        self.vault = vault

    def scan(self, change: Change) -> Scan:
        findings: list[Finding] = []
        values: set[bytes] = set()
        moved = _moved(change.files)
        for file in change.files:
            if file.after is None:
                _add(values, self._values(file.before))
                continue
            if file.before is None:
                findings += self._name(file.path, values)
            if file.kind == "file" and file not in moved:
                findings += self._content(file, values)
        order = {kind: index for index, kind in enumerate(("payload", "secret", "hidden"))}
        findings.sort(key=lambda finding: order[finding.kind])
        return Scan(tuple(findings), tuple(value.decode("utf-8", "replace") for value in values))

    def read(self, path: MountPath, content: bytes) -> list[Finding]:
        """All that is in a file as it is."""
        return [*self._name(path, set()), *self._content(FileChange(path, None, content), set())]

    def _content(self, file: FileChange, values: set[bytes]) -> list[Finding]:
        assert file.after is not None
        if file.before == file.after:
            return []
        hits = look(file.after, self.vault)
        old = look(file.before, self.vault) if file.before is not None else []
        for hit in (*hits, *old):
            _add(values, hit.values)
        after = plain(file.after)
        before = plain(file.before) if file.before is not None else None
        new = _limited(fresh(hits, after, old, before))
        return list(_placed(new, after, file.path, _secret_spans(hits)))

    def _name(self, path: MountPath, values: set[bytes]) -> Iterator[Finding]:
        """A name that holds a secret is not repeated in the finding."""
        name = path.relative.encode("utf-8", "surrogateescape")
        for hit in _limited(look(name, self.vault, name=True)):
            _add(values, hit.values)
            shown = name
            for value in hit.values:
                shown = shown.replace(value, _MASKED.encode())
            where = MountPath(f"{path.mount}:{shown.decode('utf-8', 'replace')}")
            yield Finding(hit.kind, hit.rule, where, 0, 0, hit.excerpt)

    def _values(self, content: bytes | None) -> Iterator[bytes]:
        for hit in look(content, self.vault) if content else ():
            yield from hit.values


def _add(values: set[bytes], more: Iterable[bytes]) -> None:
    for value in more:
        if len(value) >= _SHORTEST and len(values) <= MAX_VALUES:
            values.add(value)


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


def _limited(hits: Iterable[Hit]) -> list[Hit]:
    counts: Counter[str] = Counter()
    kept = []
    for hit in hits:
        counts[hit.rule] += 1
        if counts[hit.rule] <= SHOWN:
            kept.append(hit)
    return kept


def _secret_spans(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    return [hit.span for hit in hits if hit.kind == "secret"]


def _placed(
    hits: Sequence[Hit], content: bytes, path: MountPath, secrets: Sequence[tuple[int, int]]
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
