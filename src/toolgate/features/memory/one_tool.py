"""`memory.action`, called `memory`: the one tool of the document, with its arguments and its results. It does what `memory.*` do, no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.effects import Effects
from toolgate.core.errors import InvalidArgs
from toolgate.core.tool import Tool, tool
from toolgate.features.memory import answers, previews
from toolgate.features.memory.items import NewMemory, Store
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.previews import scope_for
from toolgate.features.memory.reader import RecallQuery, types_of
from toolgate.features.memory.store import ItemFilter
from toolgate.features.memory.tools import (
    Categories,
    Chat,
    Content,
    InScope,
    Key,
    Limit,
    OfCategory,
    OfSummary,
    OneId,
    OnlyStore,
    Prefix,
    Priority,
    Query,
    Since,
    SummaryTypes,
    Tags,
    Until,
    refusing,
    takes_back,
    type_given,
    writer,
)

Action = Literal["store", "recall", "list", "forget"]
_READS, _WRITES = Effects.of(("memory",)), Effects.of((), ("memory",))


def effects_of(args: Mapping[str, Any]) -> Effects:
    return _WRITES if args.get("action") in ("store", "forget") else _READS


def one_tool(memory: Memory) -> Tool:
    async def preview(ctx: Context, action: str, content: str = "", memory_id: str = "", **given: Any) -> str:
        if action == "forget":
            return await previews.of_forget(memory, ctx, [memory_id], given.get("scope") or "")
        return await previews.of_store(memory, ctx, content, given) if action == "store" else ""

    @tool(
        "memory.action", aliases=("memory",), reads=["memory"], writes=["memory"], effects_of=effects_of, unrecorded=("content",),
        replays=False, preview=preview, also={"since": "from", "until": "to"}, **takes_back(memory),
    )  # fmt: skip
    async def memory_(
        ctx: Context, action: Annotated[Action, Field(description="What to do.")],
        store: Annotated[Store | None, Field(description="What is known of the user, or summaries of periods.")] = None,
        content: Content = "", tags: Tags = (), category: OfCategory = None, pursuing_priority: Priority = None,
        summary_type: OfSummary = None, period_key: Key = "", chat_id: Chat = "", query: Query = "",
        store_filter: OnlyStore = None, categories: Categories = (), summary_types: SummaryTypes = (), since: Since = "",
        until: Until = "", period_key_prefix: Prefix = "", limit: Limit = 10, memory_id: OneId = "", scope: InScope = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Store and recall information at different time scales. `store`: `user_memory` (facts, goals, open loops) or
        `summaries` (by day `YYYY-MM-DD`, ISO week `YYYY-Www`, month, quarter `YYYY-Qn`, year). `from` and `to` are ISO times."""
        types = types_of(store_filter or store or "", categories, summary_types)
        with refusing():
            if action == "store":
                given = NewMemory(
                    content=content, store=store or "user_memory", tags=tuple(tags), priority=pursuing_priority,
                    type=type_given(store or "user_memory", category, summary_type), period=period_key,
                    conversation=chat_id or ctx.conversation,
                )  # fmt: skip
                return answers.stored(
                    await memory.store(given, memory.scope_of(ctx.persona, scope), writer(memory, ctx))
                )
            if action == "forget":
                if not memory_id:
                    raise InvalidArgs("which memory?", "give `memory_id`")
                where = await scope_for(memory, ctx, [memory_id], scope)
                done = await memory.forget([memory_id], where, writer(memory, ctx))
                return {"success": True, "memories": [{"id": one} for one in done]}
            scope = memory.scope_of(ctx.persona, scope)
            if action == "recall":
                wanted = RecallQuery(
                    query=query, types=types, tags=tuple(tags), since=since, until=until, period=period_key_prefix,
                    limit=limit,
                )  # fmt: skip
                return answers.found(await memory.recall(wanted, scope, ctx.conversation))
            chosen = ItemFilter(
                scope=scope, types=types, tags=tuple(tag.strip().casefold() for tag in tags), limit=limit,
                conversation=chat_id or None, since=memory.moment(since), until=memory.moment(until),
            )  # fmt: skip
            return answers.listed(await memory.listing(chosen, period=period_key_prefix))

    return memory_
