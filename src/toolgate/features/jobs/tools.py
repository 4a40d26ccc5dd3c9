"""`jobs.list` and `jobs.status`: what became of a persona's own jobs. Submitting them is for people and programs."""

from __future__ import annotations

from typing import Annotated, Any

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext

Limit = Annotated[int, Field(ge=1, le=200, description="Jobs to give at most.")]
OpenOnly = Annotated[bool, Field(description="Leave out those that have ended.")]
Ident = Annotated[str, Field(min_length=1, max_length=200, description="The job's id: `j_…`.")]


def tools(context: FeatureContext) -> list[Tool]:
    @tool("jobs.list", reads=["ledger"])
    async def list_jobs(ctx: Context, limit: Limit = 20, open_only: OpenOnly = False) -> list[dict[str, Any]]:
        """Your own jobs, newest first: what, state, progress. `open_only` leaves out those that have ended."""
        found = await context.gate.jobs.find(ctx.persona, limit, open_only)
        return [job.shown(whole=False) for job in found]

    @tool("jobs.status", reads=["ledger"])
    async def status(ctx: Context, job: Ident) -> dict[str, Any]:
        """How one of your own jobs stands, and once it has ended its result or error."""
        return (await context.gate.jobs.get(job, ctx.persona)).shown()

    return [list_jobs, status]
