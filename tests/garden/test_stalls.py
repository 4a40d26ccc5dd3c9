"""A large garden file is read, edited and judged beside the event loop: nobody else waits for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from toolgate.features.garden import edits, grammar, lint

from .plot import PROFILE, plot

ANCHOR = "<!-- @anchor: concerns v1 -->\n"
AT = {"path": PROFILE, "section_anchor": "concerns v1"}
CALLS: dict[str, dict[str, Any]] = {
    "md.list_sections": {"path": PROFILE},
    "md.lint": {"path": PROFILE},
    "md.patch_section": AT | {"append": "- one more", "override_rationale": "a test"},
    "md.curate_list": AT | {"ops": ["append"], "items": ["one more"], "reason": "x", "override_rationale": "a test"},
    "md.propose_change": AT | {"replace": "all of it", "override_rationale": "a test"},
    "fs.write": {"path": PROFILE, "content": ""},
}  # fmt: skip


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("lines", ["```\n", "- dup word\n", "## x\n", "> > q\n"], ids=repr)
async def test_a_large_file_is_worked_on_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, lines: str
) -> None:
    loop, on_loop = threading.get_ident(), []

    def watched(name: str, work: Any, size: Any) -> Any:
        def watching(*given: Any, **more: Any) -> Any:
            if threading.get_ident() == loop and size(given[0]) > 40_000:
                on_loop.append(name)
            return work(*given, **more)

        return watching

    async with plot(tmp_path) as garden:
        text = garden.text().replace(ANCHOR, ANCHOR + lines * (50_000 // len(lines)), 1)
        garden.file().write_text(text)
        args = CALLS[tool] | ({"content": text + "- more\n"} if tool == "fs.write" else {})
        grammar._read.cache_clear()
        monkeypatch.setattr(grammar, "_read", watched("read", grammar._read.__wrapped__, len))
        of_text = watched("lint", lint.check, lambda document: sum(map(len, document.lines)))
        monkeypatch.setattr(lint, "check", of_text)
        await garden.call(tool, **args)
    assert on_loop == []


async def test_a_cited_line_of_a_huge_file_is_not_looked_for(tmp_path: Path) -> None:
    """Taking 16 MB of lines apart takes half a second, for each of them."""
    async with plot(tmp_path) as garden:
        (tmp_path / "huge.txt").write_bytes(b"\n" * (15 << 20))
        cited = "- see project:huge.txt:99999999 and project:huge.txt@deadbeef and project:gone.txt:1\n"
        garden.file().write_text(garden.text().replace(ANCHOR, ANCHOR + cited, 1))
        told = await garden.data("md.list_sections", path=PROFILE)
        said = [one["problem"] for one in told["stale"]]
        assert said == ["project:huge.txt has changed", "project:gone.txt is gone"]


async def test_many_items_of_one_call_are_worked_on_beside_the_loop_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item has the whole file read anew."""
    loop, on_loop, curate = threading.get_ident(), [], edits.curate

    def watched(*given: Any) -> bytes:
        on_loop.append(threading.get_ident() == loop)
        return curate(*given)

    monkeypatch.setattr(edits, "curate", watched)
    args = AT | {"ops": ["append"], "reason": "x", "override_rationale": "a test"}
    async with plot(tmp_path) as garden:
        await garden.data("md.curate_list", **args, items=[f"item {number}" for number in range(100)])
        assert on_loop == [False]
        many = {"from": [f"x{number}" for number in range(40_000)], "into": "y"}
        refused = await garden.call("md.curate_list", **args | {"ops": ["merge"]}, items=[many])
        assert "at most 100" in str(refused.error)
        garden.file().write_text(garden.text().replace(ANCHOR, ANCHOR + "- dup word\n" * 20_000, 1))
        refused = await garden.call("md.curate_list", **args, items=["one", "two", "three"] * 20)
        assert "at most 9" in str(refused.error)
    assert on_loop == [False]
