"""Roll-ups: conversation → day → week, month → quarter → year, each from the summaries below it, citing them.

A month is made of its days and not of its weeks, because ISO weeks cross months. A period is summed up when it is over.
Each summary has an id that follows from what it sums up, so that whoever is interrupted goes on and writes nothing
twice; it is written anew when what it cites has changed. `method` says whether a model wrote it, and which.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from toolgate.core.names import HUMAN
from toolgate.features.memory import periods, verdicts
from toolgate.features.memory.extracts import extract
from toolgate.features.memory.items import MemoryItem, has_instructions
from toolgate.features.memory.memory import EDITED, Memory
from toolgate.features.memory.periods import CONVERSATION, DAILY, MONTHLY, QUARTERLY, WEEKLY, YEARLY
from toolgate.features.memory.store import ItemFilter, Writer
from toolgate.features.memory.summarizing import Summarizer

_CHAIN = ((WEEKLY, DAILY), (MONTHLY, DAILY), (QUARTERLY, MONTHLY), (YEARLY, QUARTERLY))
_SENTENCES = {CONVERSATION: 5, DAILY: 7, WEEKLY: 9, MONTHLY: 10, QUARTERLY: 10, YEARLY: 12}
_PAGE = 1000


class Due(NamedTuple):
    """A summary that is to be written, and of what."""

    type: str
    period: str
    conversation: str
    at: int
    sources: tuple[MemoryItem, ...]

    def id_in(self, scope: str) -> str:
        what = "\0".join((scope, self.type, self.period, self.conversation))
        return "m_r" + hashlib.sha256(what.encode()).hexdigest()[:24]


async def roll_up(memory: Memory, scope: str, by: Writer, summarizer: Summarizer) -> list[MemoryItem]:
    """Level by level, because each is made of the one below."""
    await (await memory.sessions()).archive(by.now)
    done: list[MemoryItem] = []
    for level in (CONVERSATION, DAILY, *(kind for kind, _ in _CHAIN)):
        for due in await _due(memory, scope, level, by.now):
            if summarizer.tired:
                return done
            written = await _write(memory, scope, due, by, summarizer)
            done += [written] if written is not None else []
    return done


async def is_due(memory: Memory, scope: str) -> bool:
    """Whether there is anything to write: looks at the lowest levels, on which all others rest."""
    now = memory.now
    for level in (CONVERSATION, DAILY):
        for due in await _due(memory, scope, level, now):
            if await _standing(memory, scope, due) is not False and extract(_texts(due.sources), 1):
                return True
    return False


async def _due(memory: Memory, scope: str, level: str, now: int) -> list[Due]:
    if level == CONVERSATION:
        return await _conversations(memory, scope)
    if level == DAILY:
        lower = await _items(memory, ItemFilter(scope=scope, types=(CONVERSATION,)))
        facts = await _items(memory, ItemFilter(scope=scope, store="user_memory", conversation=""))
        return _grouped(memory, level, [*lower, *facts], now)
    below = next(low for kind, low in _CHAIN if kind == level)
    return _grouped(memory, level, await _items(memory, ItemFilter(scope=scope, types=(below,))), now)


async def _conversations(memory: Memory, scope: str) -> list[Due]:
    found: list[Due] = []
    for session in await (await memory.sessions()).ended(scope):
        wanted = ItemFilter(
            scope=scope, store="user_memory", conversation=session.conversation, since=session.began_at,
            until=session.ended_at,
        )  # fmt: skip
        if items := await _items(memory, wanted):
            day = periods.day_of(session.began_at, memory.zone)
            found.append(Due(CONVERSATION, day.isoformat(), session.id, session.began_at, tuple(items)))
    return found


def _grouped(memory: Memory, level: str, items: Iterable[MemoryItem], now: int) -> list[Due]:
    zone, groups = memory.zone, defaultdict[periods.CalendarPeriod, list[MemoryItem]](list)
    for one in items:
        day = periods.parse(one.period).first if one.period else periods.day_of(one.at, zone)
        groups[periods.period_of(level, day)].append(one)
    over = {period: found for period, found in groups.items() if periods.moments(period, zone)[1] <= now}
    return [
        Due(level, period.key, "", periods.begin_of(period.first, zone), tuple(found))
        for period, found in sorted(over.items(), key=lambda pair: pair[0].first)
    ]


async def _items(memory: Memory, wanted: ItemFilter) -> list[MemoryItem]:
    """Oldest first, without what is superseded or expired."""
    store, now, found = await memory.records(), memory.now, list[MemoryItem]()
    wanted = replace(wanted, oldest_first=True, limit=_PAGE)
    while page := await store.find(wanted):
        found += [
            one.item
            for one in await memory.judged(page, now)
            if not verdicts.is_hidden(one.item, one.verdict, now)
        ]
        if len(page) < _PAGE:
            break
        wanted = replace(wanted, after=(page[-1].at, page[-1].id))
    return found


async def _standing(memory: Memory, scope: str, due: Due) -> MemoryItem | bool:
    """The summary that is there and cites something else; True if there is none, False if nothing is to be done. What a
    human wrote into it stays, and what a human took away stays so until there is more to sum up."""
    found = await (await memory.records()).get([due.id_in(scope)], scope)
    if not found:
        return True
    same = found[0].sources == tuple(one.id for one in due.sources)
    theirs = found[0].method == EDITED and found[0].persona == HUMAN and found[0].state == "kept"
    return False if same or theirs else found[0]


async def _write(
    memory: Memory, scope: str, due: Due, by: Writer, summarizer: Summarizer
) -> MemoryItem | None:
    standing = await _standing(memory, scope, due)
    if standing is False:
        return None
    summary = await summarizer.sum_up(due.sources, _SENTENCES[due.type])
    if summary is None:
        return None
    bad = has_instructions(summary.content)
    levels = [*(one.trust for one in due.sources), *(["low"] if bad else [])]
    trust = verdicts.least([*levels, *(["medium"] if summary.modelled else [])])
    made = MemoryItem(
        id=due.id_in(scope), scope=scope, store="summaries", type=due.type, content=summary.content, period=due.period,
        digest=due.id_in(scope), conversation=due.conversation, at=due.at, created_at=by.now, changed_at=by.now,
        persona=by.persona, call=by.call, op="store", reason=by.reason, trust=trust, method=summary.method,
        flags=("instructions",) if bad else (), sources=tuple(one.id for one in due.sources),
    )  # fmt: skip
    return await memory.put_summary(made, standing if isinstance(standing, MemoryItem) else None)


def _texts(sources: Sequence[MemoryItem]) -> list[str]:
    return [one.content for one in sources]
