"""Undo as programs and people ask for it: choose the calls, then make them calls of `ledger.undo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolgate.core.errors import CallError, Unavailable
from toolgate.core.names import HUMAN
from toolgate.core.result import Meta, Result
from toolgate.features.files.undo import choose
from toolgate.features.files.undo.choose import Choice
from toolgate.features.files.undo.plan import Planner
from toolgate.ledger.effects import UNDO

if TYPE_CHECKING:
    from toolgate.facade import Gate


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
        return Result(True, UNDO, await choose.preview(planner, choice))
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
    left = [(effect, why) for effect, why in choice.skipped + choice.cannot]
    data = dict(last.data) if isinstance(last.data, dict) else {}
    if len(done) > 1 or last.ok:
        data["events"] = [event for result in good for event in result.data.get("events", ())]
        data["files"] = [file for result in good for file in result.data.get("files", ())]
        data["redo"] = [result.meta.event_id for result in good if result.data.get("files")]
        data["left"] = [
            {"event_id": effect.event, "tool": effect.started.tool, "why": why} for effect, why in left
        ]
    return Result(last.ok, UNDO, data or last.data, last.error, last.meta)


def _planner(gate: Gate) -> Planner:
    services = gate.services
    if services.files is None:
        raise Unavailable("this project is not trusted, so nothing of it is opened", "`toolgate trust`")
    return Planner(services.registry, services.ledger, services.files)


async def _choice(gate: Gate, planner: Planner, wanted: Wanted) -> Choice:
    now = gate.services.ledger.clock.now()
    return await choose.choose(planner, wanted.events, wanted.conversation, wanted.since, now)
