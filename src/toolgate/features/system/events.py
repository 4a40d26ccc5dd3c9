"""`events.log` and `events.query`: annotate the ledger and read it. An annotation never poses as a gate event."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from toolgate.core.annotations import AfterValidator, Field
from toolgate.core.bounds import Bounds, measure
from toolgate.core.clock import SECOND, iso
from toolgate.core.context import Context
from toolgate.core.errors import InvalidArgs
from toolgate.core.event import BY_KIND, Noted
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.port import Filter, Row

# The arguments of `events.*`, and what a model is told of each.

_SMALL = Bounds(size=256 << 10, values=5000, depth=32)


def _small(value: dict[str, Any]) -> dict[str, Any]:
    """It stays in the journal for good."""
    measure(value, _SMALL)
    return value


_Anything = Annotated[dict[str, Any], Field(max_length=1000), AfterValidator(_small)]

# --- what is noted: recorded as it is given, and never trusted

Type = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[a-z][a-z0-9_.-]*$",
        description="A word of your own for it, such as `observation`; not an event kind of the gate.",
    ),
]
Op = Annotated[str, Field(max_length=64, description="What was done, in a word, such as `edit`.")]
FilePath = Annotated[str, Field(max_length=4096, description="The file that it is about.")]
Anchor = Annotated[str, Field(max_length=256, description="The part of that file, such as a heading.")]
BeforeHash = Annotated[str, Field(max_length=128, description="The file's hash before.")]
AfterHash = Annotated[str, Field(max_length=128, description="The file's hash after.")]
Rationale = Annotated[str, Field(max_length=4000, description="Why.")]
Evidence = Annotated[
    list[Annotated[str, Field(max_length=4096)]],
    Field(max_length=100, description="What it rests on: paths, addresses, ids of calls or events."),
]
Lint = Annotated[_Anything, Field(description="What a linter said, in any shape.")]
Transaction = Annotated[str, Field(max_length=256, description="Your id for the work it belongs to.")]
Action = Annotated[str, Field(max_length=256, description="Your id for the action it belongs to.")]
OfNoted = Annotated[str, Field(max_length=256, description="The id of the call that it is about.")]
Data = Annotated[_Anything, Field(description="Whatever else is worth keeping.")]

# --- what is looked for: each that is given must be met

Kinds = Annotated[
    str,
    Field(
        max_length=1000,
        description="Kinds of events, such as `denied`; several with commas: `denied,failed`.",
    ),
]
OfType = Annotated[str, Field(max_length=256, description="Only annotations of this type.")]
OfOp = Annotated[str, Field(max_length=256, description="Only events with this `op`.")]
OfPersona = Annotated[str, Field(max_length=256, description="Only events of this persona.")]
OfTool = Annotated[
    str, Field(max_length=256, description="Only events of this tool, by its canonical name: `fs.write`.")
]
OfCall = Annotated[
    str, Field(max_length=256, description="Only events of this call: `c_…`, as `meta.call_id` has it.")
]
OfConversation = Annotated[
    str, Field(max_length=256, description="Only events of this conversation, by its id.")
]
OfFile = Annotated[
    str, Field(max_length=4096, description="Only annotations about this `file_path`, spelled the same.")
]
Since = Annotated[
    str, Field(max_length=64, description="Only events from this time on: ISO 8601, `2026-01-31T12:00:00Z`.")
]
Until = Annotated[
    str, Field(max_length=64, description="Only events before this time, written like `since`.")
]
After = Annotated[int, Field(ge=0, description="Only events with a higher `event_id`.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="Events to give at most.")]
NewestFirst = Annotated[bool, Field(description="Whether the newest come first, or the oldest.")]


_RESERVED = frozenset(BY_KIND) - {"noted"}


def tools(context: FeatureContext) -> list[Tool]:
    @tool("events.log", writes=["ledger"], scoped=True, around="input")
    async def log_event(
        ctx: Context,
        type: Type,  # noqa: A002
        op: Op = "",
        file_path: FilePath = "",
        section_anchor: Anchor = "",
        before_hash: BeforeHash = "",
        after_hash: AfterHash = "",
        rationale: Rationale = "",
        evidence_refs: Evidence = [],  # noqa: B006 - pydantic copies it
        lint: Lint = {},  # noqa: B006
        transaction_id: Transaction = "",
        agent_action_id: Action = "",
        tool_call_id: OfNoted = "",
        data: Data = {},  # noqa: B006
    ) -> dict[str, int]:
        """Note something in the ledger: what was observed or decided, why, and on what evidence."""
        if type in _RESERVED:
            raise InvalidArgs(
                f"{type!r} is what the gate itself records",
                "choose a type of your own, such as `observation`",
            )
        ids = {"transaction": transaction_id, "action": agent_action_id, "tool_call": tool_call_id}
        event = Noted(
            call=ctx.call_id, persona=ctx.persona, tool="events.log", conversation=ctx.conversation, type=type,
            op=op, file_path=file_path, section_anchor=section_anchor, before_hash=before_hash,
            after_hash=after_hash, rationale=rationale, evidence_refs=evidence_refs, lint=lint,
            trail={name: value for name, value in ids.items() if value}, data=data,
        )  # fmt: skip

        def decide(view: View) -> None:
            view.emit(event)

        work = Work(decide)
        await context.services.ledger.do(work)
        return {"event_id": work.rows[0].seq, "eventId": work.rows[0].seq}

    @tool("events.query", reads=["ledger"], around="filters")
    async def query(
        ctx: Context,
        kind: Kinds = "",
        type: OfType = "",  # noqa: A002
        op: OfOp = "",
        persona: OfPersona = "",
        tool: OfTool = "",
        call: OfCall = "",
        conversation: OfConversation = "",
        file_path: OfFile = "",
        since: Since = "",
        until: Until = "",
        after: After = 0,
        limit: Limit = 50,
        newest_first: NewestFirst = True,
    ) -> dict[str, Any]:
        """Read recorded events, newest first. `kind` is the gate's word, `type` the annotation's own."""
        kinds = tuple(part for part in kind.split(",") if part)
        unknown = [part for part in kinds if part not in BY_KIND]
        if unknown:
            raise InvalidArgs(
                f"there are no events of kind {unknown[0]!r}", f"use one of: {', '.join(BY_KIND)}"
            )
        body = {
            name: value for name, value in (("type", type), ("op", op), ("file_path", file_path)) if value
        }
        wanted = Filter(
            after=after, since=_moment(since), until=_moment(until), call=call, persona=persona, tool=tool,
            conversation=conversation, kinds=kinds, body=body, newest_first=newest_first, limit=limit + 1,
        )  # fmt: skip
        hides = context.gate.policy.foreign(ctx.persona)  # what is another user's
        rows = await _seen(context.services.ledger, wanted, hides)
        return {"rows": [as_event(row) for row in rows[:limit]], "more": len(rows) > limit}

    return [log_event, query]


async def _seen(ledger: Ledger, wanted: Filter, hides: Callable[[str, str], bool] | None) -> list[Row]:
    """As many rows as are wanted, of those that may be seen."""
    found: list[Row] = []
    while page := await ledger.backend.rows(wanted):
        found += page if hides is None else [row for row in page if not hides(row.persona, row.body)]
        if hides is None or len(page) < wanted.limit or len(found) >= wanted.limit:
            break
        last = page[-1].seq
        wanted = replace(wanted, before=last) if wanted.newest_first else replace(wanted, after=last)
    return found[: wanted.limit]


def as_event(row: Row) -> dict[str, Any]:
    """A row as readers see it."""
    envelope = {
        "event_id": row.seq, "at": iso(row.at), "kind": row.kind, "call_id": row.call, "persona": row.persona,
        "tool": row.tool, "conversation": row.conversation, "ref": row.ref,
    }  # fmt: skip
    body: dict[str, Any] = json.loads(row.body)
    return {name: value for name, value in envelope.items() if value} | body


def _moment(text: str) -> int:
    if not text:
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgs(f"{text!r} is not a time", "use ISO 8601, such as 2026-01-31T12:00:00Z") from None
    return round(moment.timestamp() * SECOND)
