"""The arguments of `events.*`, and what a model is told of each."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from toolgate.core.bounds import Bounds, measure

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
