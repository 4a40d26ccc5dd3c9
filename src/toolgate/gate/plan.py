"""Stage 4: what would happen, worked out without touching anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.core.apart import apart
from toolgate.core.change import Change
from toolgate.core.decision import Verdict
from toolgate.core.errors import CallError, Failed, NotAllowed, TimedOut
from toolgate.core.ports import Facts, Holder
from toolgate.core.records import replace
from toolgate.gate.authorize import refused, with_paths
from toolgate.gate.deadline import Deadline, Late
from toolgate.gate.flow import LARGE, Flow, Services, arguments, invoke, maybe_in_thread, tell
from toolgate.gate.redact import shown_diff
from toolgate.gate.stored import stored_result

UNRECORDED = "[what was shown is not kept: it holds texts that may have to go]"


def plan(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    """Most tools plan nothing, and then there is nothing to wait for."""
    assert flow.tool is not None
    return None if flow.tool.plan is None and flow.tool.preview is None else _plan(services, flow)


async def _plan(services: Services, flow: Flow) -> None:
    tool, call, args = flow.tool, flow.call, flow.args
    assert tool is not None
    assert call is not None
    assert args is not None
    asks = flow.decision is not None and flow.decision.verdict is Verdict.ASK
    if tool.plan is not None:
        if await stored_result(services, flow):
            return  # it has been done: planning it again on the changed files would say something else
        change = await _run(services, flow, tool.plan)
        if not isinstance(change, Change):
            raise Failed(
                f"{tool.name} planned a {type(change).__name__}, not a Change", "report this to its author"
            )
        if (files := services.files) is not None:
            planned = change
            await maybe_in_thread(planned, lambda: files.guard(planned, holder(flow)))
            change = await files.completed(planned, tool.name)
            unkept = files.check(change, holder(flow))
            if unkept != change.unkept:  # said before anybody is asked, and part of what is approved
                change = replace(change, unkept=unkept)
        flow.call = call.planned(change)
        flow.preview = await _shown(services, change) if asks else ""
        await _recheck(services, flow, change)
    elif tool.preview is not None and asks:
        shown = str(await _run(services, flow, tool.preview))
        flow.preview = await _redacted(shown, services.redactor.shown)
        flow.recorded_preview = (
            await _redacted(flow.preview, services.redactor.redact, flow.hidden)
            if flow.hidden
            else flow.preview
        )
        if tool.unrecorded:
            flow.recorded_preview = UNRECORDED
        # what was shown is part of what is approved; where it quotes a secret, nobody can guess that from the digest
        same = flow.recorded_preview == flow.preview
        told = flow.preview if same else services.redactor.fingerprint(flow.preview)
        flow.call = call.planned(preview=told)


async def _redacted(shown: str, clean: Callable[..., Any], *hidden: tuple[str, ...]) -> str:
    return str(clean(shown, *hidden) if len(shown) <= LARGE else await apart(clean, shown, *hidden))


def holder(flow: Flow) -> Holder:
    """For whom the images of a call are kept."""
    asked = flow.decision is not None and flow.decision.verdict is Verdict.ASK
    return Holder(flow.call_id, flow.persona, asked, flow.tool.name if flow.tool is not None else "")


async def _shown(services: Services, change: Change) -> str:
    return await maybe_in_thread(change, lambda: shown_diff(services.redactor, change))


async def _recheck(services: Services, flow: Flow, change: Change) -> None:
    """The plan may touch files that no argument names: policy must have seen them too."""
    assert flow.facts is not None
    _check_effects(services, flow.facts, change)
    facts = with_paths(flow.facts, tuple(str(path) for path in change.paths))
    rules = services.rules()
    before = flow.facts.changed or ()
    same = facts is flow.facts and not rules.holds(change.paths) and not rules.holds(before)
    flow.facts = replace(facts, changed=change.paths)
    if same:
        return
    facts, flow.rules = flow.facts, rules
    flow.decision = flow.rules.decide(facts)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow, facts, flow.decision)
    if flow.decision.verdict is Verdict.ASK and not flow.preview:
        flow.preview = await _shown(services, change)


def _check_effects(services: Services, facts: Facts, change: Change) -> None:
    """A tool writes where it declares that it writes: policy judged it by that."""
    for file in change.files if services.files is not None else ():
        assert services.files is not None
        word = services.files.effect_word(file.path.mount)
        if word and word not in facts.effects.writes:
            raise NotAllowed(
                f"{facts.tool.name} does not declare that it writes the {word}, but would change {file.path.shown}",
                "declare the effect, or name a path in a mount that it may write",
                data={"rule": "hard:undeclared-effect"},
            )


async def _run(services: Services, flow: Flow, function: object) -> object:
    assert flow.args is not None
    assert flow.tool is not None
    try:
        with Deadline(services.timeouts.of(flow.tool)):
            return await invoke(flow, function, **arguments(flow.args))  # type: ignore[arg-type]
    except CallError:
        raise
    except Late:
        raise TimedOut(
            f"{flow.tool.name} took too long to plan", "ask for less, or allow more time"
        ) from None
    except Exception as error:
        tell(flow, services, "%s could not plan", flow.tool.name)
        raise Failed(
            f"{flow.tool.name} could not plan: {type(error).__name__}: {error}", "check the arguments"
        ) from error
