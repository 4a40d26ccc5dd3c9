"""Lint of a whole garden: what was found in each file is kept, and found anew only where the file has changed.

A file is known again by its status, where that is old enough to tell, and else by its hash. What is kept has a seal, so that
nobody hides a finding in the database, and holds for one state of the rules. What depends on other files is never kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgate.core import lookalikes
from toolgate.core.change import content_hash
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.features.garden import grammar, layout, lint
from toolgate.features.garden.layout import Place
from toolgate.features.garden.lint import LintFinding, Reference
from toolgate.features.garden.rows import common_start, genuine, sealed
from toolgate.workspace.reading import identity

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext
    from toolgate.workspace.files import WorkspaceFiles

PURPOSE = "garden lint"
_RULES = (grammar, layout, lint, lookalikes)
_AT_ONCE = 200
_FIRST = 20
"""Files of the first batch: something is to be seen soon."""
_YOUNG_NS = 2_000_000_000
"""Stamps are as coarse as this on the coarsest file systems."""
_COLUMNS = ("path", "user_id", "status", "hash", "findings")
_KEEP = f"INSERT INTO garden_lint ({', '.join(_COLUMNS)}, seal) VALUES "
_OVER = " ON CONFLICT (path) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in (*_COLUMNS[1:], "seal")
)


class ScannedFile(NamedTuple):
    """A file that a walk came past."""

    path: MountPath
    place: Place
    status: str
    """What it is known again by; empty while it is too young to tell."""


class LintBatch(NamedTuple):
    done: int
    total: int
    found: dict[str, list[LintFinding]]


class FileLint(NamedTuple):
    findings: list[LintFinding]
    references: list[Reference]

    def text(self) -> str:
        plain = [[one.rule, one.line, one.message, one.severity, one.fixable] for one in self.findings]
        return json.dumps([plain, self.references])

    @classmethod
    def of(cls, text: str) -> FileLint:
        found, references = json.loads(text)
        return cls([LintFinding(*one) for one in found], [Reference(*one) for one in references])


class LintCache:
    def __init__(self, context: FeatureContext, files: WorkspaceFiles) -> None:
        self._context, self._files = context, files
        self._keys = context.services.ledger.keys

    async def all_of(
        self, files: Sequence[ScannedFile], there: frozenset[tuple[str, str, str]]
    ) -> AsyncIterator[LintBatch]:
        """What lint says of each file, in the order of their paths; `there` are the user, kind and id of all that a line may name."""
        known, start = await self._load(files), 0
        while start < len(files):
            some = files[start : start + (_AT_ONCE if start else _FIRST)]
            start += len(some)
            linted = await self._linted(some, known)
            found = {
                str(file.path): lint.with_dangling(
                    linted[file.path].findings,
                    linted[file.path].references,
                    lambda kind, ident, user=file.place.user: (user, kind, ident) in there,  # type: ignore[misc]
                )
                for file in some
            }
            yield LintBatch(start, len(files), found)

    async def _linted(
        self, files: Sequence[ScannedFile], known: Mapping[str, Mapping[str, Any]]
    ) -> dict[MountPath, FileLint]:
        found, unknown = {}, []
        for file in files:
            row = known.get(str(file.path))
            if row is not None and file.status and row["status"] == file.status and self._is_ours(row):
                found[file.path] = FileLint.of(row["findings"])
            else:
                unknown.append(file)
        contents = await self._files.read_many([file.path for file in unknown]) if unknown else []
        fresh = []
        for file, content in zip(unknown, contents, strict=True):
            row, digest = known.get(str(file.path)), content_hash(content) or ""
            if row is not None and content is not None and row["hash"] == digest and self._is_ours(row):
                found[file.path] = FileLint.of(row["findings"])
            else:
                found[file.path] = _lint(file, content)
            if content is not None and (row is None or (row["status"], row["hash"]) != (file.status, digest)):
                fresh.append((file, digest, found[file.path]))
        await self._keep(fresh)
        return found

    async def _load(self, files: Sequence[ScannedFile]) -> dict[str, dict[str, Any]]:
        tables = await self._context.tables()
        below = common_start([file.path for file in files])
        rows = await tables.fetch("SELECT * FROM garden_lint WHERE substr(path, 1, ?) = ?", len(below), below)
        return {row["path"]: row for row in rows}

    def _is_ours(self, row: Mapping[str, Any]) -> bool:
        return genuine(self._keys, PURPOSE, [rules(), *(row[name] for name in _COLUMNS)], row["seal"])

    async def _keep(self, fresh: Sequence[tuple[ScannedFile, str, FileLint]]) -> None:
        if not fresh:
            return
        values: list[Any] = []
        for file, digest, found in fresh:
            row = [str(file.path), file.place.user, file.status, digest, found.text()]
            values += [*row, sealed(self._keys, PURPOSE, [rules(), *row])]
        tables = await self._context.tables()
        places = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(fresh))
        await tables.execute(_KEEP + places + _OVER, *values)


def known_by(status: os.stat_result | None) -> str:
    """A file's status as one word. A young one says nothing: a second write may leave it as it is."""
    young = time.time_ns() - _YOUNG_NS
    if status is None or max(status.st_mtime_ns, status.st_ctime_ns) > young:
        return ""
    return ".".join(map(str, identity(status) or ()))


def _lint(file: ScannedFile, content: bytes | None) -> FileLint:
    try:
        if content is not None:
            document = grammar.read(content, file.path.shown)
            return FileLint(lint.alone(document, file.place), lint.references(document))
        told = "it cannot be read"
    except CallError as error:  # too large, or no text
        told = error.message
    return FileLint([LintFinding("unreadable", 0, told, "blocked")], [])


@lru_cache(maxsize=1)
def rules() -> str:
    """What lint is made of: what other rules found is not believed."""
    from importlib.metadata import version

    own = b"".join(Path(module.__file__ or "").read_bytes() for module in _RULES)
    return hashlib.sha256(own + version("markdown-it-py").encode()).hexdigest()
