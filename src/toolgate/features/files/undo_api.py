"""Undo as programs and people ask for it: choose the calls, then make them calls of `ledger.undo`.

Calls are named one by one, or all of a conversation, or all since a moment. Named calls must be undoable, or nothing is
undone. In a conversation or a stretch of time, what cannot be taken back (a mail that was sent) is left out and said; and
undos are left alone, because they are a human's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgate.core import diff
from toolgate.core.change import Change
from toolgate.core.clock import SECOND, iso, span_of
from toolgate.core.errors import CallError, Conflict, InvalidArgs, Unavailable
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field
from toolgate.core.result import Meta, Result
from toolgate.features.files.undo import Planner, undone_already
from toolgate.ledger.effects import UNDO, Effect
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.facade import Gate


@dataclass
class Choice:
    """Calls to be undone, newest first, and those that are left out with the reason."""

    files: list[Effect] = field(default_factory=list)
    """What can be taken back as one Change."""
    others: list[Effect] = field(default_factory=list)
    """What their tools are asked to take back, one by one."""
    skipped: list[tuple[Effect, str]] = field(default_factory=list)
    cannot: list[tuple[Effect, str]] = field(default_factory=list)

    @property
    def effects(self) -> list[Effect]:
        return [*self.files, *self.others]

    @property
    def conversation(self) -> str:
        """The one they all belong to, if there is one: their undo belongs to it too."""
        found = {effect.started.conversation for effect in self.effects}
        return found.pop() if len(found) == 1 else ""


async def choose(
    planner: Planner, events: Sequence[int | str], conversation: str, since: str, now: int
) -> Choice:
    if bool(events) + bool(conversation) + bool(since) != 1 and not (conversation and since and not events):
        raise InvalidArgs(
            "say what to undo: events, or a conversation, or a time",
            "`toolgate undo EVENT…`, `--conversation ID`, `--since 10m`",
        )
    if events:
        found = {effect.event: effect for effect in [await planner.effects.of(event) for event in events]}
        effects = list(found.values())
    else:
        wanted = await _window(planner, since, now)
        wanted = Filter(after=wanted.after, since=wanted.since, conversation=conversation)
        effects = [effect for effect in await planner.effects.among(wanted) if effect.started.tool != UNDO]
    choice = await _sorted(planner, effects, named=bool(events))
    if not choice.effects:
        raise _nothing(choice, conversation, since)
    return choice


async def _sorted(planner: Planner, effects: Sequence[Effect], *, named: bool) -> Choice:
    choice = Choice()
    going = {effect.started.call for effect in effects} if named else set()
    undone = await planner.effects.undone(without=going)
    for bare in sorted(effects, key=lambda effect: -effect.event):
        effect = await planner.effects.with_args(bare)
        why = planner.hopeless(effect)
        if effect.event in undone:
            choice.skipped.append((effect, f"undone already, by event {undone[effect.event]}"))
        elif why and named:
            raise Conflict(f"event {effect.event} cannot be undone: {why}", "undo it by hand")
        elif why == "it changed no files":
            choice.skipped.append((effect, why))
        elif why:
            choice.cannot.append((effect, why))
        else:
            (choice.files if effect.manifest else choice.others).append(effect)
    return choice


def _nothing(choice: Choice, conversation: str, since: str) -> Conflict:
    for effect, why in choice.skipped:
        if len(choice.skipped) == 1 and not choice.cannot and why.startswith("undone already"):
            return Conflict(*undone_already(effect, int(why.rpartition(" ")[2])))
    left = [f"event {effect.event} ({effect.who}): {why}" for effect, why in choice.skipped + choice.cannot]
    where = (f" in the conversation {conversation!r}" if conversation else "") + (
        f" since {since}" if since else ""
    )
    return Conflict(
        f"there is nothing to undo{where}" + (": " + "; ".join(left[:5]) if left else ""),
        "`toolgate ledger tail` shows what was done",
        data={"left": left},
    )


async def _window(planner: Planner, since: str, now: int) -> Filter:
    """`10m`, an ISO time, or the event or call with which it begins."""
    if not since:
        return Filter()
    if (span := span_of(since)) is not None:
        return Filter(since=now - span)
    if since.isdigit() or since.startswith("c_"):
        return Filter(after=(await planner.effects.first(since)) - 1)
    try:
        return Filter(since=round(datetime.fromisoformat(since).timestamp() * SECOND))
    except ValueError:
        raise InvalidArgs(
            f"{since!r} is no moment", "write `10m`, `2h`, a time such as 2026-01-31T12:00:00Z, or an event"
        ) from None


async def preview_choice(planner: Planner, choice: Choice) -> dict[str, Any]:
    """What undoing would do, worked out as the call itself will. Raises where it would be refused."""
    change = await planner.taking_back(choice.files[::-1]) if choice.files else Change(())
    return {
        "events": [effect.event for effect in choice.effects],
        "calls": [_call(effect) for effect in choice.effects],
        "files": [{"path": str(file.path), "op": file.op, "kind": file.kind} for file in change.files],
        "diff": await asyncio.to_thread(diff.render, change),
        "skipped": [_left(*each) for each in choice.skipped],
        "cannot": [_left(*each) for each in choice.cannot],
    }


def _call(effect: Effect) -> dict[str, Any]:
    row = effect.started
    paths = [MountPath.parse(entry["path"]).shown for entry in effect.manifest]
    return {
        "event_id": effect.event, "call_id": row.call, "at": iso(effect.settled.at), "persona": row.persona,
        "tool": row.tool, "conversation": row.conversation, "files": paths,
    }  # fmt: skip


def _left(effect: Effect, why: str) -> dict[str, Any]:
    return {
        "event_id": effect.event,
        "persona": effect.started.persona,
        "tool": effect.started.tool,
        "why": why,
    }


@dataclass(frozen=True)
class Wanted:
    events: tuple[int | str, ...]
    conversation: str = ""
    since: str = ""
    reason: str = ""
    wait: bool = True


async def preview(gate: Gate, wanted: Wanted) -> Result:
    """What undoing would do. Nothing is touched and nothing recorded."""
    try:
        planner = _planner(gate)
        choice = await _choice(gate, planner, wanted)
        return Result(True, UNDO, await preview_choice(planner, choice))
    except CallError as error:
        return Result.refused(UNDO, error, Meta())


async def undo(gate: Gate, wanted: Wanted) -> Result:
    """Files first, as one call that may be refused with nothing touched; then what each tool takes back itself."""
    try:
        choice = await _choice(gate, _planner(gate), wanted)
    except CallError as error:
        return Result.refused(UNDO, error, Meta())
    groups = [[effect.event for effect in choice.files]] if choice.files else []
    groups += [[effect.event] for effect in choice.others]
    done: list[Result] = []
    for events in groups:
        done.append(
            await gate.call(
                UNDO, {"events": events}, persona=HUMAN, reason=wanted.reason, wait=wanted.wait,
                conversation=choice.conversation,
            )
        )  # fmt: skip
        if not done[-1].ok:
            break
    return _told(done, choice)


def _told(done: list[Result], choice: Choice) -> Result:
    """The result of the last call, with all that the calls before it undid."""
    last = done[-1]
    good = [result for result in done if result.ok and isinstance(result.data, dict)]
    data = dict(last.data) if isinstance(last.data, dict) else {}
    if len(done) > 1 or last.ok:
        data["events"] = [event for result in good for event in result.data.get("events", ())]
        data["files"] = [file for result in good for file in result.data.get("files", ())]
        if notes := [note for result in good for note in result.data.get("notes", ())]:
            data["notes"] = notes
        data["redo"] = [result.meta.event_id for result in good if result.data.get("files")]
        data["left"] = [
            {"event_id": effect.event, "tool": effect.started.tool, "why": why}
            for effect, why in choice.skipped + choice.cannot
        ]
    return Result(last.ok, UNDO, data or last.data, last.error, last.meta)


def _planner(gate: Gate) -> Planner:
    services = gate.services
    if services.files is None:
        raise Unavailable("this project is not trusted, so nothing of it is opened", "`toolgate trust`")
    return Planner(services.registry, services.ledger, services.files)


async def _choice(gate: Gate, planner: Planner, wanted: Wanted) -> Choice:
    now = gate.services.ledger.clock.now()
    return await choose(planner, wanted.events, wanted.conversation, wanted.since, now)
