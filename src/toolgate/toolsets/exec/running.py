"""One program, from the arguments of its call to the result: given what it asked for, run, and read back."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from toolgate.core import diff
from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.errors import BlockedContent, CallError, Code
from toolgate.sandbox.job import Altered, Job, Language, Left, Limits, Outcome
from toolgate.sandbox.program import LIMITS as SHELL
from toolgate.toolsets.exec.given import MARGIN, Wanted
from toolgate.toolsets.exec.leaving import save
from toolgate.toolsets.exec.means import Means
from toolgate.toolsets.exec.proposing import proposed
from toolgate.toolsets.exec.results import Ran, ended, ran, stopped
from toolgate.toolsets.exec.viewing import Seen, look_over, view_of

if TYPE_CHECKING:
    from toolgate.ledger.traces import Execution

_PROCESSES: dict[Language, int] = {"python": 1, "javascript": 1, "shell": SHELL.processes}


async def run_program(means: Means, wanted: Wanted, context: Context) -> Ran:
    try:
        job, seen = await _job(means, wanted, context.tool)
        reach = means.reach(wanted.grant, context)
        sandbox = means.sandbox()
    except CallError as error:
        error.certain = True  # nothing has run
        raise
    try:
        outcome = await sandbox.run(job, egress=reach.egress, broker=reach.broker)
    finally:
        await reach.close()
    if reach.exhausted and outcome.limit is None:
        outcome = replace(outcome, limit="requests")
    found = await _found(means, wanted, context, outcome)
    await means.trace(_execution(means, wanted, context, found))
    if ended(outcome):
        raise stopped(outcome, wanted.language, job.limits.wall_s, found)
    if seen is not None and outcome.delta:
        await _propose(means, context, seen, outcome.delta, found)
    return found


async def _job(means: Means, wanted: Wanted, tool: str) -> tuple[Job, Seen | None]:
    seconds = min(wanted.seconds, max(means.most(tool) - MARGIN, 1.0))
    seen = view = None
    if wanted.project != "none":
        seen = await means.files.run(lambda: look_over(means.files.mounts))
        view = view_of(means.files.mounts, seen, writable=wanted.project == "overlay")
    given = tuple(Left(name, text.encode()) for name, text in (wanted.files or {}).items())
    limits = Limits(wall_s=seconds, cpu_s=max(1, round(seconds + 0.5)), processes=_PROCESSES[wanted.language])
    job = Job(
        wanted.language, wanted.code, wanted.argv, wanted.stdin.encode(), limits, wanted.grant.secrets, view,
        files=given,
    )  # fmt: skip
    return job, seen


async def _found(means: Means, wanted: Wanted, context: Context, outcome: Outcome) -> Ran:
    warnings = means.advise(wanted.language, wanted.code, wanted.grant.secrets)
    given = {name: text.encode() for name, text in (wanted.files or {}).items()}
    new = [each for each in outcome.left if given.get(each.path) != each.content]
    left = [each for each in new if not means.held(each.path.encode() + b"\n" + each.content)]
    if len(left) < len(new):
        warnings = [*warnings, f"{len(new) - len(left)} files were not saved: they hold secrets"]
    if not left:
        return ran(outcome, [], warnings)
    if not means.may_save(context.persona):
        refused = f"{len(left)} files were not saved: {context.persona} has no scratch mount"
        return ran(outcome, [], [*warnings, refused])
    kept, why = await save(means.files, context.call_id, left)
    return ran(outcome, kept, [*warnings, *why])


def _without_secrets(means: Means, change: Change) -> None:
    """Before anything of it is kept: a proposal waits on disk until it is approved."""
    for part in change.files:
        name, content = part.path.relative.encode(), part.after or b""
        new = set(means.held(name + b"\n" + content)) - set(means.held(part.before or b""))
        if new:
            raise BlockedContent(
                f"{part.path.shown} would hold the secret {', '.join(sorted(new))}",
                "let the program write the secret's name, not its value",
            )


def _execution(means: Means, wanted: Wanted, context: Context, found: Ran) -> Execution:
    from toolgate.ledger.traces import Execution  # loaded with the first program

    code = wanted.code or shlex.join(wanted.argv)
    code, stdout, stderr, why = means.clean([code, found["stdout"], found["stderr"], context.reason])
    return Execution(
        call=context.call_id, persona=context.persona, tool=context.tool, language=wanted.language, code=code,
        stdout=stdout, stderr=stderr, exit_code=found["exit_code"], duration_ms=found["duration_ms"],
        limit=found["limit"] or "", session=context.conversation, llm_reasoning=why,
    )  # fmt: skip


async def _propose(
    means: Means, context: Context, seen: Seen, delta: tuple[Altered, ...], found: Ran
) -> None:
    """Kept now, and put to the gate by the call that follows; what cannot be proposed is said instead."""
    try:
        made = await proposed(means.files, seen, delta)
        found["warnings"] += made.left_out
        if not made.change.files:
            return
        _without_secrets(means, made.change)
        ident = await means.kept.keep(made.change, context.persona)
    except CallError as error:
        state = "conflict" if error.code is Code.CONFLICT else "refused"
        problem = {"code": error.code.value, "message": error.message, "fix": error.fix}
        found["proposal"] = {"execution": None, "files": [], "diff": "", "state": state, "event_id": None, "error": problem}  # fmt: skip
        return
    entries = [
        {"path": part.path.shown, "op": part.op, "kind": part.kind, "size": None if part.after is None else len(part.after)}
        for part in made.change.files
    ]  # fmt: skip
    shown = await asyncio.to_thread(diff.render, made.change)
    found["proposal"] = {"execution": ident, "files": entries, "diff": shown, "state": "none", "event_id": None, "error": None}  # fmt: skip
