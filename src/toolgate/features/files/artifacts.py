"""`events.artifacts`: the files that calls changed, with the hashes and sizes that the ledger holds of them.

The list is made from the ledger alone. The file system is asked one thing only, whether a file still has the
content that the ledger says it should have.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.change import DIRECTORY, Place, place_of
from toolgate.core.clock import iso
from toolgate.core.context import Context
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.core.ports import Files
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.ledger.effects import UNDO, Effect, Effects
from toolgate.ledger.ledger import Ledger
from toolgate.storage.port import Filter

MOST_LISTED = 1000
Conversation = Annotated[
    str, Field(max_length=256, description="Only what calls of this conversation changed, by its id.")
]
Limit = Annotated[int, Field(ge=1, le=MOST_LISTED, description="Files to give at most, those changed last.")]
Now = Literal["intact", "moved on", "gone", "not looked at"]


class Step(TypedDict):
    """One call's part in it."""

    event_id: int
    call_id: str
    at: str
    persona: str
    tool: str
    conversation: NotRequired[str]
    op: str
    origin: NotRequired[str]
    """Where a renamed file came from."""
    before: str | None
    after: str | None
    size: int | None
    undone_by: NotRequired[int]
    undoes: NotRequired[list[int]]


class Artifact(TypedDict):
    path: str
    kind: str
    op: str
    """create, modify, delete; `undone` where every change of it was taken back."""
    before: str | None
    after: str | None
    size: int | None
    now: Now
    changes: list[Step]


class Listed(TypedDict):
    conversation: str
    artifacts: list[Artifact]
    more: bool


Hides = Callable[[str, str], bool]


def tools(context: FeatureContext) -> list[Tool]:
    @tool("events.artifacts", reads=["ledger", "project"])
    async def artifacts(
        ctx: Context,
        conversation: Conversation = "",
        limit: Limit = 200,
    ) -> Listed:
        """The files that calls changed, of one conversation or of all: hashes before and after, size, which call, whether it was undone, and whether the file still is so."""
        hides = context.gate.policy.foreign(ctx.persona)
        return await listed(context.services.ledger, context.files, conversation, limit, hides)

    return [artifacts]


async def listed(
    ledger: Ledger, files: Files | None, conversation: str, limit: int, hides: Hides | None = None
) -> Listed:
    effects = Effects(ledger)
    found, all_of_it = await effects.latest(Filter(conversation=conversation))
    undone = await effects.undone()
    steps: dict[Place, list[Step]] = {}
    for effect in found:
        if hides is None or not hides(effect.started.persona, effect.started.body):
            for entry in effect.manifest:
                steps.setdefault(place_of(entry), []).append(_step(effect, entry, undone))
    newest = sorted(steps.items(), key=lambda item: -item[1][-1]["event_id"])
    made = [_artifact(place, each) for place, each in newest[:limit]]
    await _look(files, made, steps.keys())
    return Listed(conversation=conversation, artifacts=made, more=not all_of_it or len(newest) > limit)


def _step(effect: Effect, entry: Mapping[str, Any], undone: Mapping[int, int]) -> Step:
    row = effect.started
    step = Step(
        event_id=effect.event, call_id=row.call, at=iso(effect.settled.at), persona=row.persona, tool=row.tool,
        op=entry["op"], before=entry["before"], after=entry["after"], size=entry["size"],
    )  # fmt: skip
    origin = _origin(entry, effect.manifest)
    if origin:
        step["op"], step["origin"] = "rename", origin
    if row.conversation:
        step["conversation"] = row.conversation
    if effect.event in undone:
        step["undone_by"] = undone[effect.event]
    if effect.undoes:
        step["undoes"] = list(effect.undoes)
    return step


def _origin(entry: Mapping[str, Any], manifest: Iterable[Mapping[str, Any]]) -> str:
    """The same call removed the same content elsewhere: a file of the same name, if there are several."""
    if entry["before"] is not None or entry["after"] in (None, DIRECTORY):
        return ""
    gone = [one["path"] for one in manifest if one["after"] is None and one["before"] == entry["after"]]
    name = entry["path"].rpartition("/")[2]
    return str(min(gone, key=lambda path: path.rpartition("/")[2] != name, default=""))


def _artifact(place: Place, steps: Sequence[Step]) -> Artifact:
    """What is left of all changes: undone ones and the undos themselves cancel out."""
    path, of_directory = place
    kept = [step for step in steps if "undone_by" not in step and step["tool"] != UNDO]
    first, last = (kept[0], kept[-1]) if kept else (steps[0], None)
    before = first["before"]
    after = last["after"] if last else before
    size = next((step["size"] for step in reversed(steps) if step["after"] == after), None)
    op = "undone" if last is None else _op(before, after)
    return Artifact(
        path=path, kind=DIRECTORY if of_directory else "file", op=op, before=before, after=after, size=size,
        now="not looked at", changes=list(steps),
    )  # fmt: skip


def _op(before: str | None, after: str | None) -> str:
    if before is None:
        return "create" if after is not None else "none"
    return "delete" if after is None else "modify"


async def _look(files: Files | None, made: Sequence[Artifact], places: Container[Place]) -> None:
    if files is None:
        return
    for one in made:
        try:
            (found,) = await files.hashes([MountPath.parse(one["path"])])
        except CallError:  # its mount is gone, or no file stands there: then it is not looked at
            continue
        other = (one["path"], one["kind"] != DIRECTORY) in places  # a directory where a file was, or a file
        if found == one["after"] or (other and one["after"] is None):
            one["now"] = "intact"
        else:
            one["now"] = "gone" if found is None else "moved on"
