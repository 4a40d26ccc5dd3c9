"""MemoryReader: what is remembered for one user, found, listed and judged. It changes nothing but the index and the
statistics of use.

The truth is in the tables. The search index follows: a write marks its items, whoever comes next brings the index up
to date. So a process that dies between the two loses nothing and doubles nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolgate.core.apart import apart, large
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, InvalidArgs, NotAllowed, NotFound, ToolgateError
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.feature import FeatureContext
from toolgate.features.memory import periods, recalls, verdicts
from toolgate.features.memory.config import EmbeddingsSpec
from toolgate.features.memory.items import CATEGORIES, MemoryItem
from toolgate.features.memory.periods import SUMMARY_TYPES
from toolgate.features.memory.store import ItemFilter, MemoryStore
from toolgate.features.memory.verdicts import ItemVerdict
from toolgate.project.trust import state_dir
from toolgate.recall.engine import Embedder, Hit, Item, Recall, open_recall
from toolgate.recall.text import is_turn

log = logging.getLogger("toolgate.memory")

FILE = "file:"
SOMEWHERE = "(not told)"
MOST_COPIES = 100
"""Equal texts that are looked at for one that holds, where the first does not."""
MOST_LOOKED_AT = 4000
"""Hits that are looked at to fill an answer when most of them are superseded."""
SCANNED = 1000
"""Rows that are searched for secrets at a time."""


@dataclass(frozen=True, kw_only=True)
class RecallQuery:
    query: str
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    period: str = ""
    limit: int = 10
    hidden: bool = False
    """With what was superseded or has expired."""
    neighbours: bool = True


class JudgedItem(NamedTuple):
    item: MemoryItem
    verdict: ItemVerdict
    hit: Hit | None = None


class RecallAnswer(NamedTuple):
    found: list[JudgedItem]
    degraded: str = ""
    suppressed: int = 0
    """Hits that were left out because they are superseded or have expired."""


@dataclass
class Opened:
    store: MemoryStore
    recall: Recall
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class MemoryReader:
    def __init__(self, context: FeatureContext) -> None:
        self.context = context
        self._opened: Opened | None = None
        self._opening = asyncio.Lock()
        self.looked_after: tuple[str, int] | None = None
        """The day and the newest change that the last look for roll-ups saw: where both are the same, nothing is due."""
        self._concealed: dict[str, int] = {}
        """By table, the vault's version whose values are not in the index."""
        self.tokenizer: Any = None
        """A function that gives the model's own, where one is loaded from this machine."""

    async def _open(self) -> Opened:
        async with self._opening:
            if self._opened is None:
                tables = await self.context.tables()
                embedder = await asyncio.to_thread(self._embedder)
                recall = await open_recall(tables, self.context.directory / "recall", embedder)
                self.context.stack.push_async_callback(recall.close)
                self.tokenizer = getattr(embedder, "tokenizer", None)
                self._opened = Opened(MemoryStore(tables), recall)
                await self._sync(self._opened)
        return self._opened

    def _embedder(self) -> Embedder | None:
        """None where there is none: what is found by words says so."""
        wanted = self.context.config.embeddings
        try:
            if isinstance(wanted, EmbeddingsSpec):
                from toolgate.recall.http_embedder import HttpEmbedder

                return HttpEmbedder(wanted.address, wanted.model, wanted.dimension, self._key(wanted))
            if wanted == "none":
                return None
            from toolgate.recall.embedding import best_embedder

            return best_embedder(wanted, state_dir())
        except ToolgateError as error:
            log.warning("no search by meaning: %s (%s)", error.message, error.fix)
            return None

    def _key(self, server: EmbeddingsSpec) -> str:
        vault = self.context.vault
        if not server.secret or vault is None:
            return ""
        host, secret = urlsplit(server.address).netloc, vault.need(server.secret)
        if secret.hosts and not secret.fits(host):
            raise NotAllowed(
                f"the secret {server.secret} may not be sent to {host}, where the embeddings are made",
                f"`toolgate secrets set {server.secret} --host {host}`",
            )
        return secret.value

    async def records(self) -> MemoryStore:
        return (await self._open()).store

    @property
    def exists(self) -> bool:
        """Whether anything was ever remembered here, as far as that is known without making tables."""
        on_server = getattr(self.context.services.ledger.backend, "dsn", "")
        return (
            self._opened is not None or bool(on_server) or (self.context.directory / "features.db").is_file()
        )

    async def index(self) -> Recall:
        return (await self._open()).recall

    @property
    def now(self) -> int:
        return self.context.services.ledger.clock.now()

    @property
    def zone(self) -> tzinfo:
        return periods.zone_of(self.context.config.zone)

    def scope_of(self, persona: str, scope: str = "") -> str:
        """Of the persona's user, or a part of it that `scope` names. A human's own words are for the user of the default
        persona, and a human may name anybody."""
        gate = self.context.gate
        user = gate.user_of(gate.config.default_persona or persona if persona == HUMAN else persona)
        name = scope.strip().removeprefix("user:").removeprefix(f"{user}/")
        if name in ("", user):
            return f"user:{user}"
        if persona == HUMAN:
            return f"user:{name}"
        if name.partition("/")[0] in {gate.user_of(one) for one in gate.policy.personas} - {user}:
            raise NotAllowed(
                f"the scope {name[:80]!r} belongs to another user than {persona}'s",
                f"leave it out for the memory of {user}, or name a part of it that is no user",
                data={"rule": "memory:scope"},
            )
        return f"user:{user}/{name}"

    async def one(self, ident: str, scope: str = "") -> MemoryItem:
        found = await (await self.records()).get([ident], scope)
        if not found:
            raise no_memory(ident)
        return found[0]

    async def recall(self, wanted: RecallQuery, scope: str, conversation: str = "") -> RecallAnswer:
        opened = await self._open()
        if not wanted.query.strip():
            raise InvalidArgs("there is nothing to look for", "give a `query`; memory.list shows the newest")
        await self.conceal(opened)
        await self._sync(opened)
        since, until, within = self._window(wanted)
        now, fetch = self.now, wanted.limit * 2 + 10
        while True:
            found = await opened.recall.search(
                wanted.query, scope=scope, limit=fetch, kinds=wanted.types, tags=tags_of(wanted.tags), since=since,
                until=until, period="" if within else wanted.period, neighbours=wanted.neighbours,
            )  # fmt: skip
            ranked = await self._kept(opened.store, found.hits, scope, within, now)
            shown = [
                one for one in ranked if wanted.hidden or not verdicts.is_hidden(one.item, one.verdict, now)
            ]
            if len(shown) >= wanted.limit or len(found.hits) < fetch or fetch >= MOST_LOOKED_AT:
                break
            fetch = min(fetch * 4, MOST_LOOKED_AT)
        best = shown[: wanted.limit]
        with suppress(CallError):  # statistics; what was found is found
            await recalls.note(opened.store.tables, [one.item.id for one in best], conversation, now)
        return RecallAnswer(best, found.degraded, len(ranked) - len(shown))

    async def _kept(
        self,
        store: MemoryStore,
        hits: Sequence[Hit],
        scope: str,
        within: periods.CalendarPeriod | None,
        now: int,
    ) -> list[JudgedItem]:
        """The items of the hits, judged. Of equal texts the index names one: if that is superseded and another is not,
        the other stands for it."""
        judged = await self._judged_of(store, [hit.id for hit in hits], scope, within, now)
        doubtful = [hit for hit in hits if hit.copies and not _shows(judged, hit.id, now)]
        copies = [one for hit in doubtful for one in hit.copies[:MOST_COPIES]]
        judged |= await self._judged_of(store, copies, scope, within, now)
        found: list[JudgedItem] = []
        for hit in hits:
            among = [one for one in (hit.id, *hit.copies[:MOST_COPIES]) if one in judged]
            best = next((one for one in among if _shows(judged, one, now)), among[0] if among else None)
            if best is not None:
                found.append(judged[best]._replace(hit=hit))
        return found

    async def _judged_of(
        self, store: MemoryStore, ids: list[str], scope: str, within: periods.CalendarPeriod | None, now: int
    ) -> dict[str, JudgedItem]:
        items = [one for one in await store.get(list(dict.fromkeys(ids)), scope) if one.state == "kept"]
        if within is not None:
            items = [one for one in items if not one.period or within.contains(periods.parse(one.period))]
        return {one.item.id: one for one in await self.judged(items, now)}

    def _window(
        self, wanted: RecallQuery
    ) -> tuple[datetime | None, datetime | None, periods.CalendarPeriod | None]:
        since, until = self.moment(wanted.since), self.moment(wanted.until)
        within = periods.as_prefix(wanted.period) if wanted.period else None
        if within is not None:
            begin, end = periods.moments(within, self.zone)
            since = begin if since is None else max(begin, since)
            until = end if until is None else min(end, until)
        if since is not None and until is not None and since > until:
            raise InvalidArgs("`from` is after `to`", "turn them around")
        return _datetime(since), _datetime(until), within

    async def listing(
        self, wanted: ItemFilter, *, period: str = "", hidden: bool = False
    ) -> list[JudgedItem]:
        """The newest first."""
        store, now = await self.records(), self.now
        within = periods.as_prefix(period) if period else None
        if within is not None:
            begin, end = periods.moments(within, self.zone)
            wanted = replace(
                wanted, since=max(begin, wanted.since or begin), until=min(end, wanted.until or end)
            )
        elif period:
            wanted = replace(wanted, period=period)
        found: list[JudgedItem] = []
        while True:
            page = await store.find(wanted)
            for one in await self.judged(page, now):
                outside = (
                    within is not None
                    and one.item.period
                    and not within.contains(periods.parse(one.item.period))
                )
                if not outside and (hidden or not verdicts.is_hidden(one.item, one.verdict, now)):
                    found.append(one)
            if len(found) >= wanted.limit or len(page) < wanted.limit:
                return found[: wanted.limit]
            wanted = replace(wanted, after=(page[-1].at, page[-1].id))

    async def judged(self, items: Sequence[MemoryItem], now: int) -> list[JudgedItem]:
        if not items:
            return []
        links = await (await self.records()).links([one.id for one in items])
        changed = await self._hashes(
            {one["ref"] for item in items for one in item.evidence if "sha256" in one}
        )
        return [
            JudgedItem(item, verdicts.verdict_of(item, links[item.id], changed, now))
            for item in await self.known(items)
        ]

    async def known(self, items: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
        """Without what became a secret after it was kept: what is compared, cut or summed up later would tell a part of it."""
        redact, texts = self.context.services.redactor.redact, [item.content for item in items]

        def clean() -> list[Any]:
            return [redact(text) for text in texts]

        found = await apart(clean) if large(texts) else clean()
        return [
            item if item.content == text else replace(item, content=text)
            for item, text in zip(items, found, strict=True)
        ]

    # --- what is cited ------------------------------------------------------------------------------------

    async def _hashes(self, refs: set[str]) -> dict[str, str]:
        files = self.context.files
        if not refs or files is None:
            return {}
        ordered = sorted(refs)
        found = await files.hashes([cited(ref) for ref in ordered])
        return {ref: one or "" for ref, one in zip(ordered, found, strict=True)}

    def moment(self, text: str) -> int | None:
        return periods.moment(text, self.zone) if text else None

    async def conceal(self, opened: Opened) -> None:
        async for found in self.holding_secrets("memory_items", ("content", "tags")):
            await opened.store.to_index([row["id"] for row in found])

    async def holding_secrets(
        self, table: str, columns: tuple[str, ...]
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Rows kept before a part of their text became a secret: they are to be looked for by what may be shown of them, as
        whether a guess is found would tell the value bit by bit. Gone through once for each change of the vault."""
        redactor, vault = self.context.services.redactor, self.context.vault
        redactor.refresh()
        if vault is None or not redactor.searches or self._concealed.get(table) == redactor.version:
            return
        version, note = redactor.version, self.context.directory / f"{table}.concealed"
        stamp = redactor.fingerprint({name: vault.need(name).value for name in vault.names()})
        if not note.is_file() or note.read_text() != stamp:
            tables, last = (await self._open()).store.tables, ""
            while rows := await tables.fetch(
                f"SELECT * FROM {table} WHERE id > ? ORDER BY id LIMIT {SCANNED}", last
            ):
                last = rows[-1]["id"]
                texts = [[str(row[column]) for column in columns] for row in rows]
                clean = await asyncio.to_thread(lambda given: [redactor.redact(one) for one in given], texts)
                if found := [row for row, old, new in zip(rows, texts, clean, strict=True) if old != new]:
                    yield found
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(stamp)
        self._concealed[table] = version

    async def _sync(self, opened: Opened) -> None:
        async with opened.turn:
            while items := await opened.store.unindexed():
                await self._put(opened, items)

    async def _put(self, opened: Opened, items: Sequence[MemoryItem]) -> None:
        kept = [one for one in items if one.state == "kept"]
        if kept:
            clean = self.context.gate.redact
            await opened.recall.put([_indexed(one, clean) for one in kept])
        for scope in {one.scope for one in items if one.state != "kept"}:
            await opened.recall.remove(
                scope, [one.id for one in items if one.scope == scope and one.state != "kept"]
            )
        if any(one.state == "purged" for one in items):
            await opened.store.wipe()  # before they count as done: who is killed here leaves it to the next
        await opened.store.indexed(items)


def no_memory(ident: str) -> NotFound:
    return NotFound(f"there is no memory {ident[:80]!r}", "memory.list shows their ids")


def _shows(judged: dict[str, JudgedItem], ident: str, now: int) -> bool:
    return ident in judged and not verdicts.is_hidden(judged[ident].item, judged[ident].verdict, now)


def cited(ref: str) -> MountPath:
    return MountPath.parse(ref.removeprefix(FILE))


def types_of(store: str, categories: Sequence[str] = (), summaries: Sequence[str] = ()) -> tuple[str, ...]:
    """What a filter by store, categories and types of summaries comes to; empty means everything."""
    chosen = (*categories, *summaries)
    if store == "user_memory":
        return tuple(categories) or CATEGORIES
    if store == "summaries":
        return tuple(summaries) or SUMMARY_TYPES
    return chosen


def _indexed(item: MemoryItem, clean: Callable[[Any], Any]) -> Item:
    """What somebody says to somebody (`Name: …`) is a turn, also where nobody told of which conversation."""
    conversation = item.conversation or (SOMEWHERE if is_turn(item.content) else "")
    return Item(
        item.id, item.scope, clean(item.content), item.type, tuple(clean(list(item.tags))), _datetime(item.at), item.period, conversation,
        item.place,
    )  # fmt: skip


def _datetime(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / SECOND, UTC)


def tags_of(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip().casefold() for tag in tags if tag.strip()))
