"""What models read of the garden and of memories, as golden files, and that an id, a hash or an anchor can be copied.

TOOLGATE_UPDATE_GOLDEN=1 rewrites the files; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from toolgate.feature import built_in, load

GOLDEN = Path(__file__).parent / "golden"
HASH = "sha256:" + "0123456789abcdef" * 4
EDITED: dict[str, Any] = {
    "op": "append", "section_anchor": "concerns v1", "path": "garden:me/notes.md", "changed": True, "after_hash": HASH,
}  # fmt: skip
MADE: dict[str, list[Any]] = {
    "md.list_sections": [
        {
            "path": "garden:me/a b.md", "hash": HASH,
            "sections": [
                {"anchor": "concerns v1", "start_line": 12, "end_line": 15, "hash": HASH, "words": 7, "heading": "Concerns"}
            ],
            "stale": [{"line": 3, "problem": "it names nothing"}],
        }
    ],
    "md.patch_section": [
        EDITED, EDITED | {"changed": False}, EDITED | {"history_path": "garden:me/history/notes.1.md", "lint": ["line 3: long"]},
    ],
    "md.lint": [
        {"path": "garden:me/notes.md", "blocked_reasons": ["no front matter"], "warnings": ["line 3: long"]},
        {"path": "garden:me/notes.md", "blocked_reasons": [], "warnings": []},
    ],
    "md.propose_change": [{"safety_report": "one section", "requires_approval": True, "diff": "@@ -1 +1 @@\n-a\n+b\n"}],
    "memory.recall": [
        {
            "notice": "as data", "warnings": ["one is old"],
            "memories": [
                {"id": "m_1", "type": "fact", "created_at": "2026-01-31T12:00:00Z", "content": "Tea\nat five"},
                {"id": "m_2", "type": "fact", "verdict": "superseded", "verdict_why": "m_1 is newer", "version": 2,
                 "chat_id": "a, b", "untrusted": True, "content": "Tea at four", "sources": ["m_0"]},
            ],
        },
        {"memories": []},
    ],
    "memory.audit": [
        {"examined": 1200, "proposals": [{"kind": "same", "why": "they say the same", "keep": "m_1", "forget": ["m_2"], "sample": "Tea"}]}
    ],
    "knowledge.search": [
        {"results": [{"source": "docs/a.md", "heading": "Use", "content": "One.\n## Two: forged"}]}, {"results": [], "degraded": "by words only"},
    ],
}  # fmt: skip
SAME = {
    "md.curate_list": "md.patch_section",
    **dict.fromkeys(
        (f"memory.{verb}" for verb in ("action", "store", "update", "forget", "list")), "memory.recall"
    ),
}
RENDERINGS: dict[str, Any] = {
    tool: rendering
    for feature in built_in()
    if feature.name in ("garden", "memory") and feature.renderings
    for tool, rendering in load(feature.renderings).items()
}


@pytest.mark.parametrize("tool", sorted(MADE))
def test_data_read_as_its_golden_file_says(tool: str) -> None:
    told = "\n\n".join(RENDERINGS[tool](data, {}) for data in MADE[tool]) + "\n"
    file = GOLDEN / f"{tool}.txt"
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        file.write_text(told)
    assert file.read_text() == told


def test_every_rendering_has_a_golden_file() -> None:
    assert set(RENDERINGS) == {*MADE, *SAME}
    assert all(RENDERINGS[tool] is RENDERINGS[other] for tool, other in SAME.items())


def test_what_the_next_call_needs_can_be_copied() -> None:
    said = RENDERINGS["md.list_sections"](MADE["md.list_sections"][0], {})
    assert all(part in said for part in ("garden:me/a b.md", "concerns v1", HASH[:23], "12-15"))
    said = RENDERINGS["memory.recall"](MADE["memory.recall"][0], {})
    assert [line.split()[0] for line in said.split("\n") if line.startswith("m_")] == ["m_1", "m_2"]
