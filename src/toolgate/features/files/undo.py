"""`ledger.undo`: take back what recorded calls did to files, or what a tool knows how to take back.

It is a call like any other: planned, shown, recorded, and undoable itself. Only a human makes it. `undo_api.py`
says which calls are meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import AliasChoices, BeforeValidator, Field
from toolgate.core.canonical import canonical
from toolgate.core.change import DIRECTORY, Change, FileChange, Gap, combine, place_of
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Conflict, NotFound
from toolgate.core.names import Registry
from toolgate.core.paths import MountPath
from toolgate.core.ports import Files
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.ledger.effects import UNDO, Effect, Effects
from toolgate.ledger.ledger import Ledger
from toolgate.secrets.mask import MASK
from toolgate.storage.port import Filter

# The one Change that takes several calls back, newest first, or why there is none.

_NAMED = 5
"""So many moved files are named; more are counted."""


class Planner:
    def __init__(self, registry: Registry, ledger: Ledger, files: Files) -> None:
        self.effects = Effects(ledger)
        self._registry = registry
        self._files = files

    async def plan(self, events: Sequence[int]) -> Change:
        found = {effect.event: effect for effect in [await self.effects.of(event) for event in events]}
        effects = sorted(found.values(), key=lambda effect: effect.event)
        undone = await self.effects.undone(without={effect.started.call for effect in effects})
        for effect in effects:
            if effect.event in undone:
                raise Conflict(*undone_already(effect, undone[effect.event]))
        return await self.taking_back(effects)

    async def taking_back(self, effects: Sequence[Effect]) -> Change:
        """Of calls in the order in which they happened, none of them undone."""
        for effect in effects:
            why = self.hopeless(effect)
            if why:
                raise Conflict(f"event {effect.event} cannot be undone: {why}", "undo it by hand")
        events = tuple(effect.event for effect in reversed(effects))
        if not any(effect.manifest for effect in effects):
            return Change((), self._asking(effects), events)
        if not all(effect.manifest for effect in effects):
            raise Conflict("files and other effects cannot be taken back as one", "undo them one by one")
        whole = await self._combined(effects)
        await self._check_still_there(effects, whole)
        named = ", ".join(map(str, events))
        try:
            back = (await self._files.load(whole)).inverse()
        except NotFound as error:
            raise NotFound(f"event {named} can no longer be undone: {error.message}", error.fix) from None
        return Change(self._kept(back), f"undo event{'s' * (len(events) > 1)} {named}", events)

    def hopeless(self, effect: Effect) -> str:
        """Why an effect can never be taken back; empty if it can."""
        if effect.manifest:
            return ""
        name = effect.started.tool
        if name == UNDO:
            return "it brought back no file, so there is none to change again"
        try:
            tool = self._registry.resolve(name)
        except CallError:
            return f"{name} is not among the tools any more"
        if tool.undo is None:
            if not tool.effects.writes:
                return "it only read"
            return "it changed no files" if tool.plan else f"{name} has no way to take back what it did"
        if "args" in effect.body.get("cut", {}).get("fields", ()):
            return f"its arguments were too long to be kept for ever, so {name} cannot be asked"
        if MASK in canonical(effect.body["args"]):
            return f"its arguments were masked, so {name} cannot be asked"
        return ""

    def _asking(self, effects: Sequence[Effect]) -> str:
        if len(effects) > 1:  # each may fail for itself, so each is a call of its own
            raise Conflict("these effects cannot be taken back as one", "undo them one by one")
        return f"take back {effects[0].started.tool} {canonical(effects[0].body['args'])}"

    async def _combined(self, effects: Sequence[Effect]) -> list[Mapping[str, Any]]:
        try:
            return combine([effect.manifest for effect in effects])
        except Gap as gap:
            earlier, later = effects[gap.earlier], effects[gap.later]
            between = await self._changers(gap.path, earlier.event, later.event)
            raise _moved(
                f"{_shown(gap.path)} was changed between event {earlier.event} and event {later.event}",
                gap.path, between,
            ) from None  # fmt: skip

    async def _check_still_there(self, effects: Sequence[Effect], whole: Sequence[Mapping[str, Any]]) -> None:
        paths = [MountPath.parse(entry["path"]) for entry in whole]
        now = await self._files.hashes(paths)
        places = {place_of(entry) for entry in whole}
        moved = [entry for entry, found in zip(whole, now, strict=True) if _has_moved(entry, found, places)]
        if not moved:
            return
        path = moved[0]["path"]
        last = max(effect.event for effect in effects if any(one["path"] == path for one in effect.manifest))
        later = await self._changers(path, last)
        names = [_shown(entry["path"]) for entry in moved]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        listed = ", ".join(names[:_NAMED]) + more
        are = "is" if len(names) == 1 else "are"
        raise _moved(f"{listed} {are} no longer as event {last} left it", path, later)

    def _kept(self, back: Change) -> tuple[FileChange, ...]:
        """Without what would be deleted where nothing is, such as the copy of an earlier version that an edit made."""
        kept = tuple(
            one for one in back.files if one.after is not None or self._files.deletes(one.path.mount)
        )
        if not kept and back.files:
            path = back.files[0].path
            where = (
                f"{path.shown} was created in the {path.mount}, where nothing is deleted (rule hard:deletes)"
            )
            raise Conflict(where, "edit it instead", data={"rule": "hard:deletes", "path": path.shown})
        return kept

    async def _changers(self, path: str, after: int, before: int = 0) -> list[Effect]:
        """Other calls through the gate that changed this file since."""
        try:
            found = await self.effects.among(Filter(after=after, before=before))
        except CallError:
            return []  # too many to tell; it is only for the message
        return [effect for effect in found if any(one["path"] == path for one in effect.manifest)]


def undone_already(effect: Effect, by: int) -> tuple[str, str]:
    return f"event {effect.event} is undone already, by event {by}", f"`toolgate undo {by}` brings it back"


def _has_moved(entry: Mapping[str, Any], found: str | None, places: set[tuple[str, bool]]) -> bool:
    """A directory has no content to move on from; only something else in its place stands in the way.

    Where the calls made a directory of a file, or a file of a directory, both have an entry for the path.
    """
    path, of_directory = place_of(entry)
    if (path, not of_directory) in places and entry["after"] is None and found is not None:
        return False  # what stands there is the other entry's affair
    if of_directory:
        return found not in (None, DIRECTORY)
    return bool(found != entry["after"])


def _moved(what: str, path: str, by: Sequence[Effect]) -> Conflict:
    if not by:
        return Conflict(
            f"{what}, and not by a call through the gate; nothing was touched",
            "look at the file; put it back as it was, or edit it by hand",
            data={"path": path},
        )
    last = by[-1]
    return Conflict(
        f"{what}: event {last.event} ({last.who}) changed it; nothing was touched",
        f"undo that too: `toolgate undo {' '.join(str(effect.event) for effect in reversed(by))} …`",
        data={"path": path, "event": last.event},
    )


def _shown(path: str) -> str:
    return MountPath.parse(path).shown


class Restored(TypedDict):
    path: str
    op: str
    kind: str


class Undone(TypedDict):
    events: list[int]
    files: list[Restored]
    notes: NotRequired[list[str]]
    """What tools could not bring back of what they took back."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, int | str) else value


Events = Annotated[
    list[Annotated[int, Field(ge=1)]],
    BeforeValidator(_listed),
    Field(
        min_length=1,
        max_length=10_000,
        validation_alias=AliasChoices("events", "event"),
        description="The `event_id` of each call to take back.",
    ),
]


def tools(context: FeatureContext) -> list[Tool]:
    registry, ledger, files = context.services.registry, context.services.ledger, context.files
    assert files is not None
    planner = Planner(registry, ledger, files)

    async def plan(events: Events) -> Change:
        """Take back the effects of recorded events, as one. Refuses, touching nothing, where things have moved on."""
        return await planner.plan(events)

    @tool(
        "ledger.undo", reads=["ledger"], writes=["project", "garden", "scratch"], plan=plan, human=True,
        risk="medium", timeout=120.0, summarize=_in_words,
    )  # fmt: skip
    async def undo(change: Change) -> Undone:
        if change.files:
            await files.apply(change)
        notes: list[str] = []
        for event in change.undoes if not change.files else ():
            effect = await Effects(ledger).of(event)
            if not effect.manifest:
                told = await _ask_tool(registry.resolve(effect.started.tool), effect)
                notes += [told] if told else []
        done = [Restored(path=str(file.path), op=file.op, kind=file.kind) for file in change.files]
        undone = Undone(events=list(change.undoes), files=done)
        return Undone(**undone, notes=notes) if notes else undone

    return [undo]


def _in_words(data: Any) -> str:
    events, files = data["events"], len(data["files"])
    return f"Took back event{'s' * (len(events) != 1)} {', '.join(map(str, events))}: {files} file{'s' * (files != 1)}"


async def _ask_tool(subject: Tool, effect: Effect) -> str:
    """With the original arguments and the original call's Context; what the tool has to say about it."""
    assert subject.undo is not None
    args = subject.validate(effect.body["args"])
    named: dict[str, Any] = dict(vars(args))
    wanted = subject.wants.get(subject.undo)
    if wanted:
        row = effect.started
        named[wanted] = Context(row.call, row.persona, row.tool, row.conversation)
    answer = subject.undo(**named)
    if inspect.isawaitable(answer):
        answer = await answer
    return answer if isinstance(answer, str) else ""
