"""Memory: what is remembered for one user, stored, corrected and forgotten. The tools, commands and pages use it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolgate.core.call import new_id
from toolgate.core.clock import SECOND
from toolgate.core.errors import (
    BlockedContent,
    CallError,
    Conflict,
    InvalidArgs,
    NotAllowed,
    NotFound,
    TooLarge,
)
from toolgate.core.names import HUMAN
from toolgate.feature import FeatureContext
from toolgate.features.memory import periods, recalls, verdicts
from toolgate.features.memory.items import (
    ImportCount,
    MemoryItem,
    NewMemory,
    PurgedMemories,
    StoredMemory,
    dated,
    digest_of,
    has_instructions,
    likeness,
    words_of,
)
from toolgate.features.memory.reader import FILE, MemoryReader, Opened, tags_of
from toolgate.features.memory.sessions import MemorySession, Sessions
from toolgate.features.memory.spending import written_since
from toolgate.features.memory.store import ItemFilter, MemoryStore, Writer
from toolgate.ledger.state import MINUTE

log = logging.getLogger("toolgate.memory")
MAX_CONTENT = 100_000
"""Characters of one item; longer texts are documents, and belong into the knowledge."""
_ARRANGING = frozenset({"tags", "priority", "subject", "type", "contradicts"})
"""What a persona may change of what a human said: how it is found, and that something disagrees with it."""
EDITED = "edited"
"""The method of a summary whose text somebody changed."""
_DATES = ("valid_from", "valid_to", "expires_at")
ECHO_LIKENESS, ECHO_WITHIN, ECHO_CHARACTERS = 0.8, 24 * 3600 * SECOND, 500_000


class Memory(MemoryReader):
    async def store(self, given: NewMemory, scope: str, by: Writer, op: str = "store") -> StoredMemory:
        opened = await self._open()
        await self._check_room(opened.store, by)
        item = await self._made(opened.store, given, scope, by, op)
        alike = await self.on_subject(item.subject, item.store, scope, by.now)
        if alike and given.same_subject != "keep":
            if given.same_subject == "supersede":
                item = replace(item, supersedes=_joined(item.supersedes, alike))
            else:
                item = replace(item, contradicts=_joined(item.contradicts, alike))
            alike = []
        if item.conversation and item.store == "user_memory":
            await (await self.sessions()).touch(scope, item.conversation, by.now)
        while not (new := await opened.store.insert([item])):
            equal = await self._equal(opened.store, item)
            (judged,) = await self.judged([equal], by.now)
            if not verdicts.is_hidden(equal, judged.verdict, by.now):
                return StoredMemory(equal, False, [])
            item = replace(item, digest=digest_of(f"{equal.id} {item.digest}"))  # it is so again
        await self._follow(opened, new)
        return StoredMemory(
            new[0], True, [one for one in alike if one not in (*item.supersedes, *item.contradicts)]
        )

    async def _made(
        self, store: MemoryStore, given: NewMemory, scope: str, by: Writer, op: str
    ) -> MemoryItem:
        content = self.checked(given.content)
        period, at = self._period(given, by.now)
        named = [*given.supersedes, *given.contradicts, *given.sources]
        known = {one.id: one for one in await self._named(store, named, scope)}
        trust, flags, sources = _trust(given, by), [], given.sources
        if has_instructions(content):
            flags.append("instructions")
            trust = "low"
        if (echo := await self._echo(store, content, given, scope, by)) is not None:
            flags.append("echo")
            sources = _joined(sources, [echo.id])
            known[echo.id] = echo
        trust = verdicts.least([trust, *(known[one].trust for one in sources)])
        return dated(MemoryItem(
            id=new_id("m"), scope=scope, store=given.store, type=given.type, content=content,
            digest=digest_of(content, given.place), subject=given.subject.strip().casefold(), tags=tags_of(given.tags),
            priority=given.priority, period=period, conversation=given.conversation, place=given.place, at=at,
            created_at=by.now, changed_at=by.now, persona=by.persona, call=by.call, op=op, reason=by.reason,
            evidence=await self._evidence(given.evidence), trust=trust, method=given.method, flags=tuple(flags),
            valid_from=self.moment(given.valid_from), valid_to=self.moment(given.valid_to),
            expires_at=self.moment(given.expires_at), supersedes=given.supersedes, contradicts=given.contradicts,
            sources=sources,
        ))  # fmt: skip

    async def _check_room(self, store: MemoryStore, by: Writer) -> None:
        """Texts are in no journal row, so they are counted here; each version is one more copy. A human is not bounded."""
        if by.persona != HUMAN:
            allowance = self.context.services.ledger.allowance
            allowance.check_kept(by.persona, await written_since(store.tables, by.persona, by.now - MINUTE))

    def checked(self, content: str) -> str:
        text = content.strip()
        if not text:
            raise InvalidArgs("there is nothing to remember: the content is empty", "say what to remember")
        if len(text) > MAX_CONTENT:
            raise TooLarge(
                f"the content has {len(text):,} characters, the limit is {MAX_CONTENT:,}",
                "remember what matters of it; documents are indexed with `toolgate knowledge add`",
            )
        raw = text.encode("utf-8", "surrogatepass")
        if self.context.services.scanner.hide(raw) != raw or self.context.gate.redact(text) != text:
            raise BlockedContent(
                "the content holds what looks like a secret, and a memory is read by models",
                "leave the secret out; a human keeps it with `toolgate secrets set`",
                data={"rule": "memory:secret"},
            )
        return text

    def _period(self, given: NewMemory, now: int) -> tuple[str, int]:
        """The period key, and when it counts as said."""
        if given.store == "user_memory":
            if given.period:
                raise InvalidArgs(
                    "only summaries have a period_key", "leave it out, or store into `summaries`"
                )
            return "", self.moment(given.said_at) or now
        if not given.period and given.type != periods.CONVERSATION:
            key = periods.period_of(given.type, periods.day_of(now, self.zone)).key
            raise InvalidArgs(f"a {given.type} needs its period_key", f"give it, such as `{key}`")
        if not given.period:
            return periods.day_of(now, self.zone).isoformat(), now
        found = periods.parse(given.period, given.type)
        return found.key, periods.begin_of(found.first, self.zone)

    async def _named(self, store: MemoryStore, ids: Sequence[str], scope: str) -> list[MemoryItem]:
        found = [one for one in await store.get(ids, scope) if one.state == "kept"]
        missing = set(ids) - {one.id for one in found}
        if missing:
            raise NotFound(f"there is no memory {sorted(missing)[0][:80]!r}", "memory.list shows their ids")
        return found

    async def _echo(
        self, store: MemoryStore, content: str, given: NewMemory, scope: str, by: Writer
    ) -> MemoryItem | None:
        """What was recalled in this conversation a while ago and comes back as if it were news: a memory that feeds itself."""
        if not given.conversation or given.sources or by.persona == HUMAN:
            return None
        words = words_of(content)
        since = by.now - ECHO_WITHIN
        recalled = await self.known(
            await recalls.recalled_in(store.tables, given.conversation, scope, since, ECHO_CHARACTERS)
        )
        linked = {*given.supersedes, *given.contradicts}
        return next(
            (
                one for one in recalled
                if one.id not in linked and likeness(words, words_of(one.content)) >= ECHO_LIKENESS
            ),
            None,
        )  # fmt: skip

    async def on_subject(self, subject: str, store: str, scope: str, now: int) -> list[str]:
        """The current ones on a subject."""
        subject = subject.strip().casefold()
        if not subject:
            return []
        found = await (await self.records()).find(ItemFilter(scope=scope, subject=subject, store=store))
        judged = await self.judged(found, now)
        return [one.item.id for one in judged if not verdicts.is_hidden(one.item, one.verdict, now)]

    async def _equal(self, store: MemoryStore, item: MemoryItem) -> MemoryItem:
        if found := await store.get([await store.equal_to(item)], item.scope):
            return found[0]
        raise Conflict("an equal one was stored and changed at the same moment", "try again")

    async def update(
        self, ident: str, expected: int | None, changes: dict[str, Any], scope: str, by: Writer
    ) -> MemoryItem:
        """A new version; the one before stays in the history. Trust never rises by it. What a human said is not rewritten by
        a persona: its text stands beside it, as something that would supersede it and is trusted less."""
        opened = await self._open()
        await self._check_room(opened.store, by)
        old = await self.one(ident, scope)
        if old.state != "kept":
            raise Conflict(f"{ident} is {old.state}", "store it anew, or undo what removed it")
        if expected is not None and old.version != expected:
            raise _changed(old, expected)
        if by.persona != HUMAN and not changes.keys() <= _ARRANGING and await self.is_humans(old):
            return await self._beside(old, changes, by)
        new = await self._changed(opened.store, old, changes, by)
        if twin := await opened.store.equal_to(new):
            raise Conflict(f"{twin} says the same already", f"forget {ident} or {twin} instead")
        if not await opened.store.replace(new, old.version):
            raise _changed(await self.one(ident, scope), old.version)
        await self._follow(opened, [new])
        return new

    async def is_humans(self, item: MemoryItem) -> bool:
        """Whether its text is a human's, however often personas arranged it since."""
        before = await (await self.records()).history(item.id)
        return any(
            one.trust == "high" or (one.persona == HUMAN and one.op in ("store", "update"))
            for one in (item, *before)
            if one.content == item.content and one.method in ("", EDITED)  # a roll-up is nobody's words
        )

    async def _beside(self, old: MemoryItem, changes: dict[str, Any], by: Writer) -> MemoryItem:
        """A persona's own item on what a human said; both are shown, and disputed, until a human forgets one of them."""
        if "content" not in changes or changes["content"].strip() == old.content:
            raise NotAllowed(
                f"{old.id} is what a human said: a persona changes neither its dates nor what it rests on or replaces",
                "store what you know, with `contradicts` or `supersedes`; a human decides between the two",
            )
        given = {name: changes.get(name, getattr(old, name)) for name in _ARRANGING - {"contradicts"}}
        dates = {name: changes.get(name, "") for name in _DATES}
        supersedes = _joined((old.id,), changes.get("supersedes", ()))
        made = NewMemory(
            content=changes["content"], store=old.store, period=old.period, conversation=old.conversation, supersedes=supersedes,
            contradicts=tuple(changes.get("contradicts", ())), evidence=tuple(changes.get("evidence", ())), **given, **dates,
        )  # fmt: skip
        return (await self.store(made, old.scope, by)).item

    async def _changed(
        self, store: MemoryStore, old: MemoryItem, changes: dict[str, Any], by: Writer
    ) -> MemoryItem:
        found = dict(changes)
        for name in _DATES:
            if name in found:
                found[name] = self.moment(found[name])
        if "content" in found:
            found["content"] = self.checked(found["content"])
            found["method"] = EDITED if old.method else ""
            found["digest"] = digest_of(
                found["content"], old.place if old.digest == digest_of(old.content, old.place) else None
            )
        if "tags" in found:
            found["tags"] = tags_of(found["tags"])
        if "subject" in found:
            found["subject"] = found["subject"].strip().casefold()
        if "evidence" in found:
            found["evidence"] = await self._evidence(found["evidence"])
        new = dated(replace(
            old, **found, version=old.version + 1, changed_at=by.now, persona=by.persona, call=by.call, op="update",
            reason=by.reason,
        ))  # fmt: skip
        await self._named(store, [*new.supersedes, *new.contradicts], old.scope)
        if new.id in {*new.supersedes, *new.contradicts} or await _reaches(store, new.id, new.supersedes):
            raise Conflict(f"{new.id} would supersede itself, by way of others", "name another one")
        bad = has_instructions(new.content)
        flags = tuple(dict.fromkeys((*old.flags, "instructions"))) if bad else old.flags
        own = "high" if by.persona == HUMAN or changes.keys() <= _ARRANGING else "medium"
        return replace(new, flags=flags, trust=verdicts.least([old.trust, "low" if bad else own]))

    async def put_summary(self, made: MemoryItem, old: MemoryItem | None) -> MemoryItem | None:
        """Write a roll-up, in the place of the one that cited something else; None if somebody was faster."""
        opened = await self._open()
        if old is None:
            new = await opened.store.insert([made])
        else:
            made = replace(made, version=old.version + 1, created_at=old.created_at, op="update")
            new = [made] if await opened.store.replace(made, old.version) else []
        await self._follow(opened, new)
        return new[0] if new else None

    async def put_imported(self, items: Sequence[MemoryItem]) -> ImportCount:
        """As one; an id or an equal text that is there stays as it is."""
        opened = await self._open()
        new = await opened.store.insert(items)
        await self._follow(opened, new)
        return ImportCount(len(new), len(items) - len(new))

    async def forget(
        self, ids: Sequence[str], scope: str, by: Writer, versions: Sequence[int] = ()
    ) -> list[str]:
        """Out of every answer, and undoable until it is purged. With versions, all of them as they were seen, or none."""
        opened = await self._open()
        found = await opened.store.get(ids, scope)
        missing = set(ids) - {one.id for one in found if one.state != "purged"}
        if missing:
            raise NotFound(f"there is no memory {sorted(missing)[0][:80]!r}", "memory.list shows their ids")
        done = await opened.store.set_state(ids, "forgotten", ("kept",), "forget", by, versions)
        if versions and not done:
            raise _moved_on(await opened.store.get(ids, scope), dict(zip(ids, versions, strict=True)))
        await self._follow(opened, await opened.store.get(done))
        return done

    async def purge(self, ids: Sequence[str], by: Writer) -> PurgedMemories:
        """The text goes for good: out of the tables with all versions, out of the index, out of the pages of the file, and
        with it whatever was made of it. Others that hold the same words are named, not touched."""
        opened = await self._open()
        found = await opened.store.get(ids)
        kept = [one.id for one in found if one.state == "kept"]
        if kept:
            raise Conflict(f"{kept[0]} is still remembered", "forget it first; then it can be purged")
        if missing := set(ids) - {one.id for one in found}:
            raise NotFound(
                f"there is no memory {sorted(missing)[0][:80]!r}", "`toolgate memory list --forgotten`"
            )
        derived = await opened.store.derived(ids)  # they say in their own words what they were made of
        quoting = await opened.store.quoting([*ids, *derived])
        done = await opened.store.purge([*ids, *derived], by)
        await self._put(opened, await opened.store.get(done))
        return PurgedMemories(done, [one for one in derived if one in done], quoting)

    async def sessions(self) -> Sessions:
        return Sessions((await self.records()).tables, self.context.config.sessions, self.zone)

    async def session_of(self, persona: str, conversation: str) -> MemorySession:
        """The session that is under way now in a conversation with the persona's user. It looks into no index."""
        sessions = Sessions(await self.context.tables(), self.context.config.sessions, self.zone)
        scope = self.scope_of(persona)
        await sessions.touch(scope, conversation, self.now)
        found = await sessions.open(scope, conversation)
        assert found is not None
        return found

    async def take_back(self, call: str, named: Sequence[str] = ()) -> str:
        """Undo what a call did; which of those that it named are purged meanwhile and stay so, in words."""
        opened = await self._open()
        gone = [one.id for one in await opened.store.get(named) if one.state == "purged"]
        note = f"not restored, because purged meanwhile: {', '.join(gone)}" if gone else ""
        done = await opened.store.restore(call, self.now, note)
        if not done:
            raise Conflict(f"{call} left nothing behind that could be taken back", "there is nothing to undo")
        await self._follow(opened, await opened.store.get(done))
        return note

    async def _follow(self, opened: Opened, items: Sequence[MemoryItem]) -> None:
        """The index after the tables. What fails here is mended by whoever comes next."""
        try:
            await self._put(opened, items)
        except CallError as error:
            log.warning("the search index could not follow: %s", error.message)

    async def _evidence(self, refs: Sequence[str]) -> tuple[dict[str, str], ...]:
        """A file of the project with its hash: if it changes, what rests on it is stale."""
        hashes = await self._hashes({ref for ref in refs if ref.startswith(FILE)})
        gone = next((ref for ref in refs if ref.startswith(FILE) and not hashes.get(ref)), None)
        if gone is not None:
            raise NotFound(
                f"there is no file {gone.removeprefix(FILE)[:200]!r}", "cite a file of the project"
            )
        return tuple({"ref": ref, "sha256": hashes[ref]} if ref in hashes else {"ref": ref} for ref in refs)


def open_memory(context: FeatureContext) -> Memory:
    return Memory(context)


def _trust(given: NewMemory, by: Writer) -> str:
    """Writer who says so; a caller may say that it is less, never that it is more."""
    most = "high" if by.persona == HUMAN else "medium"
    return verdicts.least([most, given.trust]) if given.trust else most


def _joined(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


async def _reaches(store: MemoryStore, ident: str, start: Sequence[str]) -> bool:
    """Whether what it supersedes supersedes it, however many steps away."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        found = await store.get(waiting)
        seen.update(waiting)
        waiting = sorted({one for item in found for one in item.supersedes} - seen)
        if ident in waiting:
            return True
    return False


def _changed(now: MemoryItem, expected: int) -> Conflict:
    return Conflict(
        f"{now.id} is at version {now.version}, and you changed version {expected}; nothing was touched",
        "look at `current` in the error's data, then update with its version",
        data={"current": now.shown(), "expected_version": expected},
    )


def _moved_on(items: Sequence[MemoryItem], versions: Mapping[str, int]) -> Conflict:
    moved = [one.id for one in items if one.state != "kept" or one.version != versions[one.id]]
    return Conflict(
        f"{len(moved)} of {len(versions)} were changed or forgotten since they were looked at, such as {moved[0] if moved else items[0].id}; nothing was touched",
        "look again, then forget what is there now",
    )
