"""Stage 6: only if policy asks. A durable question bound to the digest; wait, or hand back `pending`."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Mapping
from typing import Any

from toolgate.consent.desk import refusal
from toolgate.consent.grants import grant_for
from toolgate.consent.works import AskWork, approval_for
from toolgate.core import diff
from toolgate.core.apart import apart, large
from toolgate.core.canonical import canonical
from toolgate.core.change import Change
from toolgate.core.clock import SECOND, iso
from toolgate.core.decision import Verdict
from toolgate.core.errors import NotAllowed, Pending
from toolgate.core.records import replace
from toolgate.gate.authorize import refused
from toolgate.gate.flow import Flow, Services, Stage, maybe_in_thread
from toolgate.gate.plan import holder, plan
from toolgate.gate.scan import recorded_args
from toolgate.gate.stored import stored_result
from toolgate.ledger.ledger import all_questions
from toolgate.ledger.limits import blocked, used_up
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter


def consent(services: Services, flow: Flow) -> Coroutine[Any, Any, Stage | None] | None:
    assert flow.decision is not None
    return None if flow.decision.verdict is not Verdict.ASK else _consent(services, flow)


async def _consent(services: Services, flow: Flow) -> Stage | None:
    call, facts, decision, tool = flow.call, flow.facts, flow.decision, flow.tool
    assert call is not None
    assert facts is not None
    assert decision is not None
    assert tool is not None
    if await stored_result(services, flow):
        return None
    rights = services.rules().rights(flow.persona)
    windows = services.rules().windows(flow.persona, call.tool, facts.effects.writes)
    covered, paused, full = await services.ledger.look(
        lambda state, now: (
            bool(
                approval_for(state, call.digests, flow.persona, now, channels=decision.channels)
                or (not decision.singly and grant_for(state, call, facts, rights, now, decision.channels))
            ),
            dict(state.paused),
            blocked(state, windows, now),
        ),
        all_questions,
    )
    stopped = services.rules().decide(replace(facts, paused=paused)) if paused else decision
    if stopped.verdict is Verdict.DENY:
        raise refused(flow, facts, stopped)  # before a human is asked about what would be refused anyway
    if covered and not flow.asked_again:
        return None
    desk = services.desk
    if full is not None and full[0].most <= full[0].limit and full[1] > desk.settings.expires_s * SECOND:
        raise used_up(*full)  # nor about what could not run before the question expires
    if desk.settings.unattended:
        raise NotAllowed(
            f"{tool.name} needs a human's approval ({decision.reason}), and this gate runs unattended",
            "give a grant beforehand, or allow it by a rule",
        )
    if flow.question and not flow.asked_again:
        flow.asked_again = "what it would do has changed since it was approved"
    await _heed_refusal(services, flow)
    args, preview, shown, named = await _described(services, flow)
    if (change := call.change) is not None and services.files is not None:
        unread = await maybe_in_thread(change, lambda: diff.unread(change))
        await services.files.lay_out(unread, holder(flow))
    lasts, unkept = _stays(services, change) if change is not None else (False, "")
    flow.question = await desk.ask(
        AskWork(
            call, args, facts.effects, decision, rights, preview,
            tool.undoable and not lasts, desk.settings.expires_s, desk.settings.max_open, flow.asked_again,
            _repeats(flow), services.ledger.allowance, named, shown, unkept,
        )
    )  # fmt: skip
    flow.asked_again = ""
    if not flow.wait:
        raise await _pending(services, flow)
    await desk.wait(flow.question, flow.caller.channel if flow.caller is not None else None)
    # things may have moved on while the human was reading
    return plan if tool.plan is not None or tool.preview is not None else None


Described = tuple[Mapping[str, Any], str, dict[str, Any] | None, Mapping[str, str]]
"""Arguments and preview as they are recorded; as they are shown, where that differs; the secrets that are named there."""


async def _described(services: Services, flow: Flow) -> Described:
    """In a thread where there is much of it, or secrets are to be found in it."""
    call = flow.call
    assert call is not None
    if call.sealed_json or large((call.args_json, flow.preview)):
        return await apart(_describe, services, flow)
    return _describe(services, flow)


def _describe(services: Services, flow: Flow) -> Described:
    """All of it, for the human who decides. What cannot be shown is refused, and nobody is asked about it."""
    tool, call = flow.tool, flow.call
    assert tool is not None
    assert call is not None
    args = recorded_args(services, flow)
    preview = flow.preview if flow.recorded_preview is None else flow.recorded_preview
    paths = frozenset(map(str, flow.facts.paths)) if flow.facts is not None else frozenset()
    seen = services.redactor.show(tool, call.args, paths) if call.sealed_json else call.args
    shown = {"args": seen, "preview": flow.preview}
    named = services.redactor.named(canonical(shown))
    if shown == {"args": args, "preview": preview}:
        return args, preview, None, named
    # the number keeps a short secret from being guessed by the hash of what is kept of it
    return args, preview, shown | {"salt": os.urandom(16).hex()}, named


def _repeats(flow: Flow) -> tuple[str, ...]:
    """What need not be shown twice: a tool's own preview says all of it, a diff only where every byte of it is text."""
    assert flow.tool is not None
    change = flow.call.change if flow.call is not None else None
    return flow.tool.repeats if change is None or diff.is_all_text(change) else ()


async def _heed_refusal(services: Services, flow: Flow) -> None:
    """A refusal answers repeats of the same call until its question would have run out: no nagging."""
    assert flow.call is not None
    ledger = services.ledger
    since = ledger.clock.now() - round(services.desk.settings.expires_s * SECOND)
    recent = Filter(
        persona=flow.persona, tool=flow.call.tool, kinds=("refused",), since=since, newest_first=True
    )
    for row in await ledger.backend.rows(recent):
        if parsed(row)["digest"] in flow.call.digests:
            raise refusal(row)


def _stays(services: Services, change: Change) -> tuple[bool, str]:
    """Whether nothing of it could be undone, and why not, or why not all: no room for its images, or it creates what may
    not be deleted again. A copy of what it replaces takes nothing away by staying."""
    files = services.files
    if change.unkept or files is None or not change.files:
        return bool(change.unkept), change.unkept
    replaced = {file.before for file in change.files} - {None}
    real = [file for file in change.files if file.before is not None or file.after not in replaced]
    lasting = [file for file in real if file.before is None and not files.deletes(file.path.mount)]
    named = next((file for file in lasting if file.kind == "file"), None)
    if not lasting:
        return False, ""
    why = f"nothing is deleted in the mount {lasting[0].path.mount}"
    if all(file.before is None and not files.deletes(file.path.mount) for file in change.files):
        return True, why
    return False, f"{named.path.shown} stays, {why}" if named is not None else ""


async def _pending(services: Services, flow: Flow) -> Pending:
    question = await services.desk.question(flow.question)
    expires = iso(question.expires_at) if question else ""
    assert flow.decision is not None
    found = {"findings": list(question.findings)} if question and question.findings else {}
    again = f" (asked again: {question.again})" if question and question.again else ""
    return Pending(
        f"a human must approve this first: {flow.decision.reason}{again}",
        f"a human approves it in the console or with `toolgate approvals {flow.question} approve`; "
        "then make the same call again",
        data={"question": flow.question, "expires_at": expires, **found},
    )
