"""`memory.store`, `memory.recall`, `memory.list`, `memory.forget`, `memory.update`, `memory.audit`, `memory.purge`.

A persona reads and writes what its own user remembers and nothing else. Each write names its call: it can be taken back,
and after a crash the tables say whether it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.errors import (
    BlockedContent,
    Conflict,
    InvalidArgs,
    NotAllowed,
    NotFound,
    RateLimited,
    TooLarge,
)
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.memory import answers, previews
from toolgate.features.memory.items import Category, NewMemory, Store, SummaryType, Trust
from toolgate.features.memory.memory import MAX_CONTENT, Memory
from toolgate.features.memory.previews import scope_for
from toolgate.features.memory.reader import FILE, RecallQuery, cited, no_memory, types_of
from toolgate.features.memory.store import ItemFilter, Writer

Content = Annotated[
    str, Field(max_length=MAX_CONTENT, description="What to remember, as a sentence that stands alone.")
]
Ident = Annotated[str, Field(min_length=3, max_length=80, description="The memory's id: `m_…`.")]
Ids = Annotated[
    tuple[Annotated[str, Field(max_length=80)], ...], Field(max_length=1000, description="Ids of memories.")
]
Versions = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    Field(
        max_length=1000,
        description="The version of each memory that was read; nothing is forgotten if one is another by now.",
    ),
]
Replaced = Annotated[
    Ids | None, Field(description="Memories that this one replaces: they are no longer current.")
]
Disputed = Annotated[Ids | None, Field(description="Memories that this one disagrees with; both are shown.")]
Tags = Annotated[
    tuple[Annotated[str, Field(max_length=80)], ...],
    Field(max_length=50, description="Words to find it by; for a search, all of them."),
]
Priority = Annotated[
    Annotated[int, Field(ge=0, le=100)] | None,
    Field(description="How actively the user pursues it, 0 to 100."),
]
Since = Annotated[str, Field(max_length=40, description="Not before this ISO time.")]
Until = Annotated[str, Field(max_length=40, description="Before this ISO time.")]
ValidFrom = Annotated[str, Field(max_length=40, description="From when it holds, an ISO time.")]
ValidTo = Annotated[str, Field(max_length=40, description="Until when it holds; stale afterwards.")]
Expiry = Annotated[str, Field(max_length=40, description="When it is to be left out altogether.")]
Key = Annotated[
    str,
    Field(
        max_length=20,
        description="The period of a summary: `2025-12-09`, `2025-W50`, `2025-12`, `2025-Q4`, `2025`.",
    ),
]
Prefix = Annotated[str, Field(max_length=20, description="How the period begins, such as `2025-12`.")]
Chat = Annotated[str, Field(max_length=200, description="The conversation it is from; absent: the call's.")]
InScope = Annotated[
    str,
    Field(
        max_length=200, pattern=r"^[^\x00-\x1f]*$",
        description="Whose: the persona's user (absent), or a part of their memory that is kept apart, by any name.",
    ),
]  # fmt: skip
SaidAt = Annotated[str, Field(max_length=40, description="When it was said, an ISO time; absent: now.")]
Subject = Annotated[str, Field(max_length=200, description="What it is about, such as `employer`.")]
OneId = Annotated[str, Field(max_length=80, description="The memory's id: `m_…`.")]
InStore = Annotated[Store, Field(description="What is known of the user, or summaries of periods.")]
OnlyStore = Annotated[Store | None, Field(description="Only this store.")]
OfCategory = Annotated[Category | None, Field(description="What kind of knowledge it is; absent: a fact.")]
OfSummary = Annotated[SummaryType | None, Field(description="What a summary sums up; for summaries only.")]
Categories = Annotated[tuple[Category, ...], Field(description="Only these categories.")]
SummaryTypes = Annotated[tuple[SummaryType, ...], Field(description="Only these kinds of summaries.")]
WithOld = Annotated[bool, Field(description="Also what was superseded or is over, marked so.")]
Refs = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=500)], ...],
    Field(
        max_length=20,
        description="What it rests on: `file:src/app.py` (watched for changes), a URL, an event.",
    ),
]
Query = Annotated[str, Field(max_length=4000, description="What to look for, in words.")]
Limit = Annotated[int, Field(ge=1, le=100, description="How many at most.")]
OnSubject = Annotated[
    Literal["keep", "supersede", "contradict"],
    Field(description="What becomes of current ones on its subject."),
]


def tools(context: FeatureContext) -> list[Tool]:
    memory: Memory = context.gate.feature("memory")
    from toolgate.features.memory.one_tool import one_tool
    from toolgate.features.memory.upkeep import upkeep_tools

    return [*_writers(memory), *_readers(memory), one_tool(memory), *upkeep_tools(memory)]


def writer(memory: Memory, ctx: Context) -> Writer:
    return Writer(ctx.call_id, ctx.persona, memory.now, ctx.reason)


def takes_back(memory: Memory) -> dict[str, Any]:
    """How a call of this memory is asked about and undone: by its id, which every row has."""

    async def undo(ctx: Context, **given: Any) -> str:
        named = [given.get("memory_id") or "", *(given.get("memory_ids") or ())]
        return await memory.take_back(ctx.call_id, [one for one in named if one])

    async def happened(ctx: Context, **given: Any) -> bool:
        return await (await memory.records()).happened(ctx.call_id)

    return {"undo": undo, "reconcile": happened, "summarize": answers.summary}


@contextmanager
def refusing() -> Iterator[None]:
    """What is refused for its arguments or a conflict has touched nothing: there is no doubt to settle."""
    try:
        yield
    except (BlockedContent, Conflict, InvalidArgs, NotAllowed, NotFound, RateLimited, TooLarge) as error:
        error.certain = True
        raise


def cited_paths(args: Any) -> list[MountPath]:
    return [cited(ref) for ref in getattr(args, "evidence", None) or () if ref.startswith(FILE)]


def type_given(store: str, category: str | None, summary_type: str | None) -> str:
    if store == "summaries":
        if category is not None:
            raise InvalidArgs("a summary has a summary_type, not a category", "give `summary_type`")
        return summary_type or "conversation-summary"
    if summary_type is not None:
        raise InvalidArgs("only summaries have a summary_type", "store into `summaries`, or give a category")
    return category or "fact"


def _writers(memory: Memory) -> list[Tool]:
    async def preview_store(ctx: Context, content: str, **given: Any) -> str:
        return await previews.of_store(memory, ctx, content, given)

    @tool(
        "memory.store", writes=["memory"], preview=preview_store, paths_of=cited_paths, unrecorded=("content",),
        also={"conversation": "chat_id"}, **takes_back(memory),
    )  # fmt: skip
    async def store(
        ctx: Context, content: Content, store: InStore = "user_memory", category: OfCategory = None,
        summary_type: OfSummary = None, tags: Tags = (), pursuing_priority: Priority = None, period_key: Key = "",
        conversation: Chat = "",
        place: Annotated[Annotated[int, Field(ge=0)] | None, Field(description="Its place in the conversation, from 0.")] = None,
        subject: Subject = "", same_subject: OnSubject = "keep",
        supersedes: Annotated[Ids, Field(description="Memories that this one replaces: they are no longer current.")] = (),
        contradicts: Annotated[Ids, Field(description="Memories that this one disagrees with; both are shown.")] = (),
        sources: Annotated[Ids, Field(description="Memories that this one is derived from.")] = (), evidence: Refs = (),
        trust: Annotated[Trust | None, Field(description="How far to trust it; it can only lower what its source deserves.")] = None,
        valid_from: ValidFrom = "", valid_to: ValidTo = "", expires_at: Expiry = "",
        said_at: SaidAt = "", scope: InScope = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Remember something for the user. `supersedes` names memories that this one replaces (they are no longer returned
        as current), `contradicts` those it disagrees with; `same_subject` does it for all current ones on its `subject`.
        `sources` names memories it is derived from; `trust` can only lower what the source deserves."""
        with refusing():
            type_ = type_given(store, category, summary_type)
        given = NewMemory(
            content=content, store=store, type=type_, tags=tuple(tags),
            subject=subject, same_subject=same_subject, priority=pursuing_priority, period=period_key,
            conversation=conversation or ctx.conversation, place=place, trust=trust or "", evidence=tuple(evidence),
            valid_from=valid_from, valid_to=valid_to, expires_at=expires_at, supersedes=tuple(supersedes),
            contradicts=tuple(contradicts), sources=tuple(sources), said_at=said_at,
        )  # fmt: skip
        with refusing():
            return answers.stored(
                await memory.store(given, memory.scope_of(ctx.persona, scope), writer(memory, ctx))
            )

    async def preview_update(ctx: Context, memory_id: str, **given: Any) -> str:
        return await previews.of_update(memory, ctx, memory_id, given)

    @tool(
        "memory.update", writes=["memory"], preview=preview_update, paths_of=cited_paths, unrecorded=("content",),
        **takes_back(memory),
    )  # fmt: skip
    async def update(
        ctx: Context, memory_id: Ident,
        expected_version: Annotated[Annotated[int, Field(ge=1)] | None, Field(description="The version that was read; refused if there is another by now.")] = None,
        content: Annotated[Content | None, Field(description="The new text.")] = None, category: OfCategory = None,
        tags: Annotated[Tags | None, Field(description="Its new tags.")] = None, pursuing_priority: Priority = None,
        subject: Annotated[Subject | None, Field(description="What it is about.")] = None, supersedes: Replaced = None,
        contradicts: Disputed = None, evidence: Annotated[Refs | None, Field(description="What it rests on now.")] = None,
        valid_from: Annotated[ValidFrom | None, Field(description="From when it holds, an ISO time.")] = None,
        valid_to: Annotated[ValidTo | None, Field(description="Until when it holds.")] = None,
        expires_at: Annotated[Expiry | None, Field(description="When it is to be left out altogether.")] = None,
        scope: InScope = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Change a memory; what is not given stays. With `expected_version` it is refused if somebody else changed it. The new
        text for what a human said becomes a memory of its own beside it, and both are disputed until a human decides."""
        given = {
            "content": content, "type": category, "tags": tags, "priority": pursuing_priority, "subject": subject,
            "supersedes": supersedes, "contradicts": contradicts, "evidence": evidence, "valid_from": valid_from,
            "valid_to": valid_to, "expires_at": expires_at,
        }  # fmt: skip
        changes = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }
        with refusing():
            if not changes:
                raise InvalidArgs("there is nothing to change", "give what shall be another")
            where = await scope_for(memory, ctx, [memory_id], scope)
            new = await memory.update(memory_id, expected_version, changes, where, writer(memory, ctx))
        return answers.updated(new, memory_id)

    async def preview_forget(
        ctx: Context, memory_id: str = "", memory_ids: tuple[str, ...] = (), **given: Any
    ) -> str:
        ids = [*([memory_id] if memory_id else []), *memory_ids]
        return await previews.of_forget(memory, ctx, ids, given.get("scope") or "")

    @tool(
        "memory.forget",
        writes=["memory"],
        preview=preview_forget,
        unrecorded=("preview",),
        **takes_back(memory),
    )
    async def forget(
        ctx: Context, memory_id: OneId = "", memory_ids: Ids = (), expected_versions: Versions = (), scope: InScope = ""
    ) -> dict[str, Any]:  # fmt: skip
        """Forget one memory or several. A human can undo it until it is purged. To correct something, store the new fact
        with `supersedes` instead."""
        ids = list(dict.fromkeys([*([memory_id] if memory_id else []), *memory_ids]))
        with refusing():
            if not ids:
                raise InvalidArgs("which memory?", "give `memory_id` or `memory_ids`")
            if expected_versions and len(expected_versions) != len(ids):
                raise InvalidArgs(
                    f"{len(expected_versions)} versions for {len(ids)} memories", "give one for each of them"
                )
            where = await scope_for(memory, ctx, ids, scope)
            done = await memory.forget(ids, where, writer(memory, ctx), expected_versions)
        return {"success": True, "forgotten": len(done), "memories": [{"id": one} for one in done[:100]]}

    async def purged(ctx: Context, **given: Any) -> bool:
        return await (await memory.records()).happened(ctx.call_id)

    @tool(
        "memory.purge",
        writes=["memory"],
        human=True,
        risk="high",
        reconcile=purged,
        summarize=answers.summary,
    )
    async def purge(ctx: Context, memory_ids: Ids) -> dict[str, Any]:
        """Remove the texts of forgotten memories for good, with whatever was made of them: tables, versions and index. The
        journal keeps a keyed hash. Others that hold the same words are named in `quoted_in`."""
        with refusing():
            return answers.purged(await memory.purge(memory_ids, writer(memory, ctx)))

    return [store, update, forget, purge]


def _readers(memory: Memory) -> list[Tool]:
    @tool(
        "memory.recall", reads=["memory"], summarize=answers.summary, replays=False,
        also={"since": "from", "until": "to"},
    )  # fmt: skip
    async def recall(
        ctx: Context, query: Query, store_filter: OnlyStore = None, categories: Categories = (),
        summary_types: SummaryTypes = (), tags: Tags = (), since: Since = "", until: Until = "",
        period_key_prefix: Prefix = "", limit: Limit = 10, include_superseded: WithOld = False,
        neighbours: Annotated[bool, Field(description="Also what stands beside a hit in its conversation.")] = True,
        scope: InScope = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Find what is remembered, best first, each with why it was found, whether it still holds (`verdict`) and how far to
        trust it. `since` and `until` (or `from`, `to`) are ISO times; `period_key_prefix` is such as `2025-12` or `2025-W50`."""
        wanted = RecallQuery(
            query=query, types=types_of(store_filter or "", categories, summary_types), tags=tuple(tags), since=since,
            until=until, period=period_key_prefix, limit=limit, hidden=include_superseded, neighbours=neighbours,
        )  # fmt: skip
        return answers.found(
            await memory.recall(wanted, memory.scope_of(ctx.persona, scope), ctx.conversation)
        )

    @tool(
        "memory.list", reads=["memory"], summarize=answers.summary, replays=False,
        also={"since": "from", "until": "to"},
    )  # fmt: skip
    async def list_(
        ctx: Context, store_filter: OnlyStore = None, categories: Categories = (), summary_types: SummaryTypes = (),
        tags: Tags = (), subject: Subject = "", since: Since = "", until: Until = "", period_key_prefix: Prefix = "",
        limit: Limit = 20, include_superseded: WithOld = False, memory_id: OneId = "", scope: InScope = "",
    ) -> dict[str, Any]:  # fmt: skip
        """What is remembered, the newest first. With `memory_id`, all of one memory with its history: who, when, by which call, why."""
        if memory_id:
            where = await scope_for(memory, ctx, [memory_id], scope)
            if ctx.persona != HUMAN and (await memory.one(memory_id, where)).state != "kept":
                raise no_memory(memory_id)  # what is forgotten is out of every answer to a persona
            return await details(memory, memory_id, where)
        wanted = ItemFilter(
            scope=memory.scope_of(ctx.persona, scope), types=types_of(store_filter or "", categories, summary_types), limit=limit,
            tags=tuple(tag.strip().casefold() for tag in tags), subject=subject.strip().casefold(),
            since=memory.moment(since), until=memory.moment(until),
        )  # fmt: skip
        return answers.listed(
            await memory.listing(wanted, period=period_key_prefix, hidden=include_superseded)
        )

    return [recall, list_]


async def details(memory: Memory, ident: str, scope: str) -> dict[str, Any]:
    """All of one memory, and what became of it."""
    item = await memory.one(ident, scope)
    told = answers.listed(await memory.judged([item], memory.now), whole=True)
    before = await (await memory.records()).history(ident)
    told["memories"][0]["provenance"] = [one.provenance() for one in (item, *before)]
    told["memories"][0]["versions"] = [{"version": one.version, "content": one.content} for one in before]
    return told
