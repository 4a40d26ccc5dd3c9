"""Check of the diary for `toolgate doctor`."""

from collections.abc import AsyncIterator

from toolgate.kits.terminal.checkup import Diagnosis, Patient


async def diary(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is not None:
        entries = await patient.gate.feature("diary").read(limit=100)
        yield Diagnosis("ok", "diary", f"{len(entries)} entries")


CHECKS = (diary,)
