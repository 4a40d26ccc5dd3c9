"""Citations in a garden: lines that name an event, a file or a line of one, checked when they are read."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from toolgate.core.change import content_hash
from toolgate.core.decision import Verdict
from toolgate.core.errors import CallError, NotFound
from toolgate.core.paths import MountPath
from toolgate.features.garden.grammar import MarkdownFile
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext
    from toolgate.workspace.files import WorkspaceFiles

_CITED = re.compile(
    r"(?<![\w`/])(?:event:(?P<event>\d{1,15})|(?P<path>[a-z][a-z0-9_-]{0,63}:[\w./-]*[\w/])(?::(?P<line>\d+))?(?:@(?P<hash>[0-9a-f]{8,64}))?)"
)


LONGEST = 1 << 20
"""Bytes of a file whose lines are looked at; of a longer one it is said whether it is there, and by its hash whether it changed."""


class Citations:
    def __init__(self, context: FeatureContext, files: WorkspaceFiles) -> None:
        self._context, self._files = context, files

    async def stale(self, document: MarkdownFile, persona: str) -> list[dict[str, Any]]:
        """Lines that cite a file, a line of it or an event that is gone or, where a hash was given, changed. Nothing is said of
        what this persona may not read."""
        found = []
        for number, line in enumerate(document.lines[document.front :], document.front + 1):
            if number % 1000 == 0:
                await asyncio.sleep(0)
            for cited in _CITED.finditer(line) if ":" in line else ():
                problem = await self._cited(cited, persona)
                if problem:
                    found.append({"line": number, "cites": cited[0], "problem": problem})
        return found

    async def _cited(self, cited: re.Match[str], persona: str) -> str:
        if cited["event"]:
            seq = int(cited["event"])
            rows = await self._context.services.ledger.backend.rows(Filter(after=seq - 1, before=seq + 1))
            return "" if rows else f"there is no event {seq}"
        path = cited["path"]
        if path.partition(":")[0] not in {mount.name for mount in self._files.mounts}:
            return ""  # a word with a colon
        try:
            if not await self._may_read(path, persona):
                return ""
            content = await self._files.read(MountPath.parse(path))
        except NotFound:
            content = None
        except CallError:
            return ""  # it is there, and not to be read
        if content is None:
            return f"{path} is gone"
        line = int(cited["line"] or 0)
        if line and len(content) > LONGEST:
            return ""
        lines = content.splitlines() if line else []
        if line > len(lines):
            return f"{path} has {len(lines)} lines"
        part = lines[line - 1] if line else content
        if cited["hash"] and not (content_hash(part) or "").removeprefix("sha256:").startswith(cited["hash"]):
            return f"{path}{f':{line}' if line else ''} has changed"
        return ""

    async def _may_read(self, path: str, persona: str) -> bool:
        """Whoever can guess a line and its hash would learn it from what is said here: so only what a call would show anyway."""
        gate = self._context.gate
        decision = gate.policy.decide(await gate.facts("fs.read", {"path": path}, persona))
        return decision.verdict is Verdict.ALLOW
