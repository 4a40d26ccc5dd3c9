"""Wiring of jobs to a gate: where they are kept, and who runs them."""

from __future__ import annotations

from toolgate.feature import FeatureContext
from toolgate.features.jobs.gate_port import GatePort
from toolgate.features.jobs.jobs import Jobs
from toolgate.features.jobs.place import JobsPlace
from toolgate.storage.sqlite import SqliteBackend


def open_jobs(context: FeatureContext) -> Jobs:
    """In the same PostgreSQL as the ledger, or beside its file; nowhere, if it is kept in memory."""
    gate, spec = context.gate, context.config
    backend = gate.services.ledger.backend
    dsn = getattr(backend, "dsn", "")
    place = JobsPlace(dsn=dsn) if dsn else None
    if isinstance(backend, SqliteBackend):
        place = JobsPlace(backend.path.parent)
    jobs = Jobs(place, GatePort(gate), spec)
    context.stack.push_async_callback(jobs.close)
    return jobs


async def run(context: FeatureContext) -> None:
    """Beside the server, where the owner wants it."""
    if context.config.run:
        await context.gate.jobs.stand_by()
