"""One persona cannot fill the disk with versions of a garden."""

from __future__ import annotations

from pathlib import Path

import toolgate
from toolgate.core.names import HUMAN

from .plot import CONFIG, KEYS, PROFILE, ROOM, plot

LIMITS = {"global": ROOM, "persona": ROOM, "journal_bytes": {"per_minute": 200_000}}
EDIT = {"path": PROFILE, "section_anchor": "summary v1", "rationale": "news"}


async def test_copies_of_earlier_versions_are_bounded_for_each_persona(tmp_path: Path) -> None:
    """A line of text copies a whole file into `history/`, where no tool deletes anything."""
    async with plot(tmp_path, None, limits=LIMITS) as made:
        made.file().write_text(made.text() + "\n## Attic\n\n" + "old words\n" * 4000)
        codes = []
        for number in range(6):
            result = await made.call("md.patch_section", append=f"- line {number}", **EDIT)
            codes.append("ok" if result.error is None else result.error.code)
        assert codes == ["ok"] * 3 + ["rate_limited"] * 3
        assert result.error is not None
        assert "limits.journal_bytes.per_minute allows 200,000" in result.error.message
        assert len(list(made.file().parent.glob("history/*.md"))) == 3
        read = await made.gate.call("fs.read", {"path": "garden:users/bob/profile.md"}, persona="stranger")
        assert read.error is None or read.error.code != "rate_limited"
        args = {**EDIT, "append": "- from a human"}
        assert (await made.gate.call("md.patch_section", args, persona=HUMAN)).ok
        assert (await made.gate.verify()).ok
    async with toolgate.open(tmp_path, CONFIG | {"limits": LIMITS}, None, keys=KEYS) as gate:
        again = await gate.call("md.patch_section", {**EDIT, "append": "- later"})
        assert again.error is not None
        assert again.error.code == "rate_limited"


async def test_usual_edits_are_not_limited_by_bytes(tmp_path: Path) -> None:
    async with plot(tmp_path, limits=LIMITS | {"journal_bytes": {"per_minute": 5000}}) as made:
        for number in range(10):
            assert (await made.call("md.patch_section", replace=f"line {number}", **EDIT)).ok
