"""Programs that run as jobs: they outlive the call that asked for them, are watched, cancelled and taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolgate.core.context import Context
from toolgate.core.errors import CallError, NotFound, RateLimited
from toolgate.features.programs.results import ProgramResult

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs

MOST_OPEN = 32
"""Jobs that one persona may have waiting or running: what is submitted is kept, and others want to be run too."""


async def submit(jobs: Jobs, context: Context, given: Mapping[str, Any]) -> ProgramResult:
    """The job makes the same call in the foreground, which passes the gate then: policy, consent, limits, ledger."""
    args = {name: _plain(value) for name, value in given.items() if value is not None}
    try:
        await _check_room(jobs, context.persona)
    except CallError as error:
        error.certain = True  # nothing was submitted
        raise
    job = await jobs.submit(
        "call", {"tool": context.tool, "args": args}, context.persona, context.conversation, reason=context.reason,
        ident=_job(context),
    )  # fmt: skip
    return ProgramResult(
        stdout="", stderr="", exit_code=None, limit=None, signal=None, output=None, outputs=[], files=[], requests=[],
        proposal=None, warnings=[], duration_ms=0.0, memory=0, job_id=job,
    )  # fmt: skip


async def _check_room(jobs: Jobs, persona: str) -> None:
    if len(await jobs.find(persona, MOST_OPEN, open_only=True)) >= MOST_OPEN:
        raise RateLimited(f"{persona} has {MOST_OPEN} jobs that have not ended", "wait for them: `jobs.list`")


async def submitted(jobs: Jobs, context: Context) -> tuple[str, str]:
    """Whether a call that was interrupted had handed its program over: then the job runs it, and nobody else may."""
    ident = _job(context)
    try:
        await jobs.get(ident)
    except NotFound:
        return "not", "no job was submitted"
    except CallError as error:
        return "unknown", error.message
    return "happened", f"it was handed to the job {ident}"


def _job(context: Context) -> str:
    """By the call's own id, so that it can be found again."""
    return "j_" + context.call_id.removeprefix("c_")


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value
