"""`memory.audit`, `memory.rollup`, `memory.import`, `session.new`; and what `toolgate up` does by itself: sessions and roll-ups."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from typing import Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.errors import CallError
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.memory import audit, rollups
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.periods import day_of
from toolgate.features.memory.summarizing import Summarizer
from toolgate.features.memory.tools import refusing, takes_back, writer
from toolgate.features.memory.transfer import take_in

log = logging.getLogger("toolgate.memory")
EVERY_S = 300.0
Kind = Literal["junk", "duplicate", "near-duplicate", "echo", "contradiction", "expired", "never-recalled"]


def upkeep_tools(memory: Memory) -> list[Tool]:
    @tool("memory.audit", reads=["memory"], replays=False, timeout=120.0, summarize=_told)
    async def audit_(
        ctx: Context, kinds: Annotated[tuple[Kind, ...], Field(description="What to look for; absent: everything.")] = (),
        unused_days: Annotated[int, Field(ge=1, le=36_500, description="Days without a recall that count as never.")] = 180,
        limit: Annotated[int, Field(ge=1, le=500, description="How many proposals at most.")] = 50,
    ) -> dict[str, Any]:  # fmt: skip
        """What could be forgotten and why, or contradicts something: proposals, nothing is changed. Apply one with
        `memory.forget {memory_ids: forget}`; a human can undo that."""
        found = await audit.audit(memory, memory.scope_of(ctx.persona), kinds or audit.KINDS, unused_days)
        shown = [one.shown() for one in found.proposals[:limit]]
        return {"success": True, "examined": found.examined, "counts": found.counts(), "proposals": shown}

    @tool("memory.rollup", writes=["memory"], timeout=300.0, **takes_back(memory))
    async def rollup(ctx: Context) -> dict[str, Any]:
        """Sum up what is over and not summed up yet: conversations, days, weeks, months, quarters, years. Each summary
        names its sources, and its method: by the configured model within its budget, or of sentences of the sources."""
        summarizer = Summarizer(memory)
        done = await rollups.roll_up(memory, memory.scope_of(ctx.persona), writer(memory, ctx), summarizer)
        told = [
            {
                "id": one.id,
                "type": one.type,
                "period_key": one.period,
                "sources": len(one.sources),
                "method": one.method,
            }
            for one in done
        ]
        methods = dict(Counter(one.method for one in done))
        return {
            "success": True,
            "written": len(done),
            "methods": methods,
            "memories": told[:200],
            **await summarizer.told(),
        }

    @tool(
        "memory.import",
        writes=["memory"],
        human=True,
        timeout=300.0,
        unrecorded=("lines",),
        **takes_back(memory),
    )
    async def import_(
        ctx: Context, lines: Annotated[str, Field(max_length=4 << 20, description="Items as JSON, one in each line.")],
        user: Annotated[str, Field(max_length=64, pattern=r"^[a-z][a-z0-9_-]*$", description="Whose memory.")] = "me",
    ) -> dict[str, Any]:  # fmt: skip
        """Take in exported memories, as one that is undone as one. Ids, dates and links stay; what is there stays too."""
        with refusing():
            done = await take_in(memory, lines, f"user:{user}", writer(memory, ctx))
        return {"success": True, "imported": done.new, "there_already": done.old}

    async def taken_back(ctx: Context, **given: Any) -> None:
        await (await memory.sessions()).take_back(ctx.call_id)

    async def happened(ctx: Context, **given: Any) -> bool:
        return await (await memory.sessions()).happened(ctx.call_id)

    @tool(
        "session.new",
        writes=["memory"],
        undo=taken_back,
        reconcile=happened,
        also={"conversation": "chat_id"},
    )
    async def new_session(
        ctx: Context, name: Annotated[str, Field(max_length=200, description="What the session is called.")] = "",
        conversation: Annotated[str, Field(max_length=200, description="Which conversation; absent: the call's.")] = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Begin a new session of this conversation: the present one ends here and is summed up for itself."""
        chat = conversation or ctx.conversation
        made = await (await memory.sessions()).begin(
            memory.scope_of(ctx.persona), chat, name.strip(), writer(memory, ctx)
        )
        return {"success": True, "session": made.shown()}

    return [audit_, rollup, import_, new_session]


def _told(data: Any) -> str:
    counts = data.get("counts", {}) if isinstance(data, dict) else {}
    return ", ".join(f"{kind} {count}" for kind, count in counts.items()) or "nothing to propose"


def run(context: FeatureContext) -> Coroutine[Any, Any, None] | None:
    """Beside the server: roll-ups for the user of the persona that `rollups` names, and vectors for what lacks them."""
    wanted = context.config.rollups.persona or context.config.embeddings != "none"
    return _stand_by(context) if wanted else None


async def _stand_by(context: FeatureContext) -> None:
    memory: Memory = context.gate.feature("memory")
    while True:
        try:
            if memory.exists:
                await look_after(memory)
                await (await memory.index()).reembed()
        except CallError as error:
            log.warning("the memory is not looked after: %s", error.message)
        await asyncio.sleep(EVERY_S)


async def look_after(memory: Memory) -> bool:
    """End sessions whose time is over, and sum up what is due, by a call through the gate; whether one was made."""
    persona = memory.context.config.rollups.persona
    ended = await (await memory.sessions()).archive(memory.now)
    if not persona:
        return False
    scope = memory.scope_of(persona)
    seen = (day_of(memory.now, memory.zone).isoformat(), await (await memory.records()).newest(scope))
    if (not ended and seen == memory.looked_after) or not await rollups.is_due(memory, scope):
        memory.looked_after = seen
        return False
    done = await memory.context.call(
        "memory.rollup", {}, persona=persona, reason="a period is over", wait=False
    )
    if not done.ok and done.error is not None:
        log.warning("roll-ups: %s (%s)", done.error.message, done.error.fix)
    return done.ok
