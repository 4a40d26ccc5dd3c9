"""The feed: calls, newest first, grouped by conversation, filtered by what was typed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from toolgate.core.apart import apart
from toolgate.facade import Gate
from toolgate.faces.console.calls import CallLine, calls
from toolgate.storage.port import Filter

PAGE = 60
ROWS = 240
LOOKS = 8
"""How many stretches of the ledger one page looks through for lines that fit a filter."""
WORDS = ("persona", "outcome", "tool", "conversation", "kind")


@dataclass(frozen=True)
class Query:
    """`persona:builder outcome:refused tool:fs.* words`"""

    text: str = ""
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Query:
        fields: dict[str, tuple[str, ...]] = {}
        words: list[str] = []
        for part in text.split()[:20]:
            name, colon, value = part.partition(":")
            if colon and value and name in WORDS:
                fields[name] = (*fields.get(name, ()), value[:80])
            else:
                words.append(part[:80].lower())
        return cls(text[:400], fields, tuple(words))

    def fits(self, line: CallLine) -> bool:
        known = {
            "persona": [line.persona], "outcome": [line.outcome, line.kind], "tool": [line.tool],
            "conversation": [line.conversation], "kind": line.kinds,
        }  # fmt: skip
        for name, wanted in self.fields.items():
            if not any(fnmatchcase(value, glob) for value in known[name] for glob in wanted):
                return False
        text = f"{line.persona} {line.tool} {line.object} {line.detail} {line.conversation} {line.outcome}".lower()
        return all(word in text for word in self.words)

    @property
    def base(self) -> Filter:
        """What the database can narrow by itself."""
        persona, conversation = (self._plain(name) for name in ("persona", "conversation"))
        return Filter(
            persona=persona,
            conversation=conversation,
            tool=self._plain("tool"),
            newest_first=True,
            limit=ROWS,
        )

    def _plain(self, name: str) -> str:
        values = self.fields.get(name, ())
        return values[0] if len(values) == 1 and not set("*?[") & set(values[0]) else ""


@dataclass
class Group:
    conversation: str
    lines: list[CallLine] = field(default_factory=list)


@dataclass
class Feed:
    groups: list[Group]
    more: int
    """Where the next page begins; 0 on the last."""
    newest: int


async def feed(gate: Gate, query: Query, before: int = 0) -> Feed:
    found: list[CallLine] = []
    wanted, rows = replace(query.base, before=before), []
    for _ in range(LOOKS):
        part = await gate.events(wanted)
        rows += part
        found = [line for line in await apart(calls, rows) if query.fits(line)]
        if before:
            found = [line for line in found if not await _goes_on(gate, line, before)]
        if len(part) < ROWS or len(found) > PAGE:
            break
        wanted = replace(wanted, before=part[-1].seq)
    exhausted = len(rows) < ROWS or len(part) < ROWS
    more = found[PAGE - 1].seq if len(found) > PAGE else (0 if exhausted else rows[-1].seq)
    return Feed(grouped(found[:PAGE]), more, rows[0].seq if rows else 0)


async def _goes_on(gate: Gate, line: CallLine, before: int) -> bool:
    """Whether a call that looks unfinished here was told on an earlier page."""
    if line.kind not in ("asked", "approved", "started") or not line.call:
        return False
    newest = await gate.events(Filter(call=line.call, newest_first=True, limit=1))
    return bool(newest) and newest[0].seq >= before


def grouped(lines: list[CallLine]) -> list[Group]:
    """Conversations by their newest call; calls outside any stand by themselves where they are."""
    groups: list[Group] = []
    known: dict[str, Group] = {}
    for line in lines:
        group = (
            known.get(line.conversation)
            if line.conversation
            else (groups[-1] if groups and not groups[-1].conversation else None)
        )
        if group is None:
            group = Group(line.conversation)
            groups.append(group)
            known[line.conversation] = group
        group.lines.append(line)
    return groups
