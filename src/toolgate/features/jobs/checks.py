"""Check of the jobs for `toolgate doctor`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from toolgate.features.jobs.place import installed
from toolgate.kits.terminal.checkup import Diagnosis, Patient
from toolgate.project import config

NEARLY_FULL = 0.9


async def jobs(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Silent for those who have none."""
    if patient.setup is None or patient.gate is None:
        return
    wanted = patient.setup.config.jobs.run
    kept = (patient.root / config.STATE / "jobs.db").exists()
    if not wanted and not kept:
        return
    if not installed():
        what = "`jobs: {run: true}` is set" if wanted else "there are jobs"
        yield Diagnosis(
            "bad", "jobs", f"{what}, and the package dbos is not installed", "pip install 'toolgate[jobs]'"
        )
        return
    waiting = await patient.gate.jobs.find(limit=1000, open_only=True)
    used, most = await patient.gate.jobs.room()
    if used > NEARLY_FULL * most:
        fix = "cancel jobs that are not wanted, or raise `jobs: {max_bytes: …}`; without room no job is taken"
        yield Diagnosis("warn", "jobs", f"jobs.db holds {_megabytes(used)} of {_megabytes(most)}", fix)
    if waiting and not await patient.gate.jobs.attended():
        fix = "`toolgate jobs run`, or `jobs: {run: true}` in toolgate.yaml and `toolgate up`"
        yield Diagnosis("warn", "jobs", f"{len(waiting)} not ended, and no process runs them", fix)
    else:
        room = f", {_megabytes(used)} of {_megabytes(most)}" if used else ""
        yield Diagnosis("ok", "jobs", f"{len(waiting)} not ended{room}")


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


CHECKS = (jobs,)
