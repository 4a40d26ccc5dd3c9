"""Check of the memory for `toolgate doctor`: how much is remembered, whether the index has it all, and what the model that
writes summaries has used of its budget."""

from __future__ import annotations

from collections.abc import AsyncIterator

from toolgate.features.memory.memory import Memory
from toolgate.features.memory.spending import spent
from toolgate.features.memory.store import ItemFilter
from toolgate.kits.terminal.checkup import Diagnosis, Patient


async def memory(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is None:
        return
    found: Memory = patient.gate.feature("memory")
    if not found.exists:
        return  # nothing was ever remembered here, and a check makes no file
    store = await found.records()
    count = await store.count(ItemFilter())
    if not count:
        return
    left = len(await store.unindexed())
    if left:
        yield Diagnosis(
            "warn",
            "memory",
            f"{left} of {count:,} items are not in the index",
            "search once; it is mended then",
        )
    else:
        yield Diagnosis("ok", "memory", f"{count:,} items, all in the index")
    if name := found.context.config.rollups.model:
        yield await _summaries(found, name)


async def _summaries(memory: Memory, name: str) -> Diagnosis:
    from toolgate.features.memory.summarizing import Summarizer

    known = memory.context.section("models")
    if name not in known:
        fix = f"name one of `models:`: {', '.join(known) or 'there is none'}"
        return Diagnosis("warn", "memory", f"summaries are extractive: there is no model {name!r}", fix)
    told = (await Summarizer(memory).told())["budget"]
    return Diagnosis("ok", "memory", f"summaries by {name}: {spent(told)}")


CHECKS = (memory,)
