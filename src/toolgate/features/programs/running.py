"""One program, from the arguments of its call to the result: given what it asked for, run, and read back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolgate.core import diff
from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.errors import BlockedContent, CallError, Code
from toolgate.features.programs.arguments import MARGIN, ProgramRequest
from toolgate.features.programs.proposing import CACHES, proposed
from toolgate.features.programs.results import ProgramResult, ran, save, signal_of, stopped
from toolgate.features.programs.services import ProgramServices
from toolgate.features.programs.viewing import ProjectSeen, look_over, view_of
from toolgate.sandbox.job import Altered, Job, Left, Outcome
from toolgate.secrets.advice import advise

log = logging.getLogger("toolgate.exec")


async def run_program(services: ProgramServices, wanted: ProgramRequest, context: Context) -> ProgramResult:
    try:
        network = services.network(wanted.grant, context)
        sandbox = services.sandbox()
        job, seen = await _job(services, wanted, context.tool)
    except CallError as error:
        error.certain = True  # nothing has run
        raise
    try:
        outcome = await sandbox.run(job, egress=network.egress, broker=network.broker)
    finally:
        await network.recorded()
    if network.exhausted() and outcome.limit is None:
        outcome = replace(outcome, limit="requests")
    found = await _found(services, wanted, context, outcome)
    await _trace(services, wanted, context, found)
    failure = stopped(outcome, wanted.language, job.limits.wall_s, found)
    if failure is not None:
        raise failure
    if seen is not None and outcome.delta:
        await _propose(services, context, seen, outcome.delta, found)
    return found


async def _job(
    services: ProgramServices, wanted: ProgramRequest, tool: str
) -> tuple[Job, ProjectSeen | None]:
    seconds = min(wanted.seconds, max(services.longest_s(tool) - MARGIN, 1.0))
    seen = view = None
    if wanted.project != "none":
        seen = await services.files.run(
            lambda: look_over(services.files.mounts, services.environment().environment)
        )
        view = view_of(services.files.mounts, seen, writable=wanted.project == "overlay")
    given = tuple(Left(name, text.encode()) for name, text in (wanted.files or {}).items())
    limits = services.limits(wanted.language, seconds)
    job = Job(
        wanted.language, wanted.code, wanted.argv, wanted.stdin.encode(), limits, wanted.grant.secrets, view,
        files=given, packages=services.packages(wanted.packages) if wanted.packages else (),
        # a shell is where a project's own commands are run; other programs leave files where they start
        in_project=wanted.language == "shell" and view is not None and not given,
    )  # fmt: skip
    return job, seen


async def _found(
    services: ProgramServices, wanted: ProgramRequest, context: Context, outcome: Outcome
) -> ProgramResult:
    warnings, killed = advise(wanted.language, wanted.code), signal_of(outcome, wanted.language)
    if (wanted.language, wanted.project, outcome.exit_code) == (
        "shell",
        "none",
        127,
    ):  # a command was not found
        warnings.append("the project and its programs are not there: `project: read` shows them")
    given = {name: text.encode() for name, text in (wanted.files or {}).items()}
    left = [
        each
        for each in outcome.left
        if given.get(each.path) != each.content and CACHES.isdisjoint(each.path.split("/"))
    ]
    if not left:
        return ran(outcome, killed, [], warnings)
    if not services.may_save(context.persona):
        refused = f"{len(left)} files were not saved: {context.persona} has no scratch mount"
        return ran(outcome, killed, [], [*warnings, refused])
    # what is saved is read by others later, when nobody knows any more what the program was given
    # in a thread: it may be megabytes of what takes longest, and others want to be served meanwhile
    clean = await asyncio.to_thread(_clean, services, left)
    if len(clean) < len(left):
        warnings.append(f"{len(left) - len(clean)} files were not saved: their names hold a secret")
    kept, why = await save(services.files, context.call_id, clean)
    return ran(outcome, killed, kept, [*warnings, *why])


def _clean(services: ProgramServices, left: Sequence[Left]) -> list[Left]:
    return [
        Left(each.path, services.redact(each.content), each.mode)
        for each in left
        if services.redact(each.path) == each.path
    ]


async def _trace(
    services: ProgramServices, wanted: ProgramRequest, context: Context, found: ProgramResult
) -> None:
    """For people who want to know what fails most. That it cannot be kept is no reason to fail the call."""
    from toolgate.ledger.traces import TracedProgram  # loaded with the first program

    said = [_text(wanted), found["stdout"], found["stderr"]]
    code, out, err = await asyncio.to_thread(services.redact, said)
    try:
        await services.trace(
            TracedProgram(
                call=context.call_id, persona=context.persona, tool=context.tool, language=wanted.language,
                code=code, stdout=out, stderr=err, exit_code=found["exit_code"],
                duration_ms=found["duration_ms"], limit=found["limit"] or "", session=context.conversation,
                llm_reasoning=context.reason,
            )
        )  # fmt: skip
    except Exception:
        log.exception("the trace of %s could not be kept", context.call_id)


def _text(wanted: ProgramRequest) -> str:
    return wanted.code or "\n".join(wanted.argv)


def _check_no_secrets(services: ProgramServices, change: Change) -> None:
    """Before anything of it is kept: a proposal waits on disk until it is approved."""
    for part in change.files:
        name, content = part.path.relative.encode(), part.after or b""
        new = services.secrets_in(name + b"\n" + content) - services.secrets_in(part.before or b"")
        if new:
            raise BlockedContent(
                f"{part.path.shown} would hold the secret {', '.join(sorted(new))}",
                "let the program write the secret's name, not its value",
            )


async def _propose(
    services: ProgramServices,
    context: Context,
    seen: ProjectSeen,
    delta: tuple[Altered, ...],
    found: ProgramResult,
) -> None:
    """Kept now, and put to the gate by the call that follows; what cannot be proposed is said instead."""
    told: dict[str, Any] = {
        "execution": None, "files": [], "diff": "", "state": "none", "event_id": None, "error": None,
    }  # fmt: skip
    try:
        made = await proposed(services.files, seen, delta)
        found["warnings"] += made.left_out
        if not made.change.files:
            return
        await asyncio.to_thread(_check_no_secrets, services, made.change)
        ident = await services.proposals.keep(made.change, context.persona)
    except CallError as error:
        state = "conflict" if error.code is Code.CONFLICT else "refused"
        problem = {"code": error.code.value, "message": error.message, "fix": error.fix}
        found["proposal"] = told | {"state": state, "error": problem}
        return
    entries = [
        {
            "path": part.path.shown,
            "op": part.op,
            "kind": part.kind,
            "size": None if part.after is None else len(part.after),
        }
        for part in made.change.files
    ]
    shown = await asyncio.to_thread(diff.render, made.change)
    found["proposal"] = told | {"execution": ident, "files": entries, "diff": shown}
