"""A process that edits one profile, line by line, for some seconds or until it is killed: root, name, seconds, database."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from plot import PROFILE, plot


async def main(root: str, name: str, seconds: float, database: str) -> None:
    async with plot(Path(root), None if database == "-" else database) as at:
        await at.data(
            "propose_change", path=PROFILE, section_anchor="concerns v1", append="- it is all loaded"
        )
        print("open", flush=True)
        end, number, conflicts = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            while True:
                found = await at.data("md.list_sections", path=PROFILE)
                now = next(one["hash"] for one in found["sections"] if one["anchor"] == "concerns v1")
                made = await at.call(
                    "md.patch_section", path=PROFILE, section_anchor="concerns v1", append=f"- {name} {number}",
                    if_match=now, rationale=f"{name} says {number}", override_rationale="a long race",
                )  # fmt: skip
                if made.ok:
                    break
                assert made.error is not None
                assert made.error.code == "conflict", made.error
                conflicts += 1
            number += 1
        print(number, conflicts, flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]))
