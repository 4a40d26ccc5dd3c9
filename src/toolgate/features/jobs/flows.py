"""The two workflows that DBOS knows. Imported by the runner only, once in a process, because DBOS keeps one registry.

Change what they do in a way that old records do not fit, and `store.VERSION` must change with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from dbos import DBOS

from toolgate.features.jobs.store import JOB, TICK

Carry = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
carrier: list[Carry] = []
"""The runner of this process, while there is one."""


@DBOS.workflow(name=JOB)
async def job(spec: dict[str, Any]) -> dict[str, Any]:
    return await _carry(spec)


@DBOS.workflow(name=TICK)
async def tick(at: datetime, spec: dict[str, Any]) -> dict[str, Any]:
    """A schedule's: its id has the time in it, so that each is there once whoever submits it."""
    return await _carry(spec)


async def _carry(spec: dict[str, Any]) -> dict[str, Any]:
    ident = DBOS.workflow_id
    assert ident is not None
    return await carrier[0](ident, spec)
