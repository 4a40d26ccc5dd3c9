"""Programs that run as jobs: they outlive the call that asked for them, are watched, cancelled and taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolgate.core.context import Context
from toolgate.toolsets.exec.results import Ran

if TYPE_CHECKING:
    from toolgate.jobs.jobs import Jobs


async def submit(jobs: Jobs, context: Context, given: Mapping[str, Any]) -> Ran:
    """The job makes the same call in the foreground, which passes the gate then: policy, consent, limits, ledger."""
    args = {name: _plain(value) for name, value in given.items() if value not in (None, "")}
    job = await jobs.submit(
        "call", {"tool": context.tool, "args": args}, context.persona, context.conversation, reason=context.reason
    )  # fmt: skip
    return Ran(
        stdout="", stderr="", exit_code=None, limit=None, output=None, outputs=[], files=[], requests=[],
        proposal=None, warnings=[], duration_ms=0.0, memory=0, job_id=job,
    )  # fmt: skip


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value
