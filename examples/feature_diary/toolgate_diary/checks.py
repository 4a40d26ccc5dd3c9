"""What `toolgate doctor` says of the diary."""

from __future__ import annotations

from collections.abc import AsyncIterator

from toolgate.kits.terminal.checkup import Diagnosis, Patient


async def diary(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is not None:
        entries = await patient.gate.feature("diary").read(limit=1)
        yield Diagnosis("ok", "diary", "it can be read" if entries else "nobody has written anything")


CHECKS = (diary,)
