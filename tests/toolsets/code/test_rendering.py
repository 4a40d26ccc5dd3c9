"""What a person sees of `code.*` in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.faces.cli import rendering

from .test_search import call


async def _drawn(project: Path, tool: str, **args: object) -> list[str]:
    return [line.plain for line in rendering.DRAWINGS[tool]((await call(project, tool, **args)).data)]


async def test_a_search_is_drawn_by_file_with_numbers_and_each_line_once(project: Path) -> None:
    (project / "a.py").write_text(
        "".join(f"{'hit' if number in (2, 4, 12) else 'no'} {number}\n" for number in range(1, 15))
    )
    (project / "b.py").write_text("hit \x1b[31m\n")
    assert await _drawn(project, "code.search", pattern="hit") == [
        "a.py", "1-no 1", "2:hit 2", "3-no 3", "4:hit 4", "5-no 5", "6-no 6", "--", "10-no 10", "11-no 11", "12:hit 12",
        "13-no 13", "14-no 14", "", "b.py", "1:hit ⟨U+001B⟩[31m", "", "4 matches, 2 files searched",
    ]  # fmt: skip
    (line,) = [
        line
        for line in rendering.draw_search((await call(project, "code.search", pattern="it 12")).data)
        if line.plain.startswith("12:")
    ]
    assert [line.plain[span.start : span.end] for span in line.spans if "red" in str(span.style)] == ["it 12"]


async def test_reading_listing_and_outlines_are_drawn_too(project: Path) -> None:
    (project / "a.py").write_text("class A:\n    def m(self): pass\n")
    assert await _drawn(project, "code.read", path="a.py") == ["1 class A:", "2     def m(self): pass"]
    assert await _drawn(project, "code.list") == [f"{31:>12}  a.py"]
    assert await _drawn(project, "code.outline", path="a.py") == [
        "a.py", "     1-2      class A", "     2-2        method m",
    ]  # fmt: skip


def test_what_was_shortened_or_goes_into_a_pipe_is_shown_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not rendering.show("code.read", {"content": "x", "truncated": False})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert not rendering.show("code.search", {"matches": ["… [3 more items]"]})
    assert not rendering.show("system.ping", {})
