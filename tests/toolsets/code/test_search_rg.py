"""How rg is asked and heard: what it is told, what it says in pieces, and what is read while it goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import ripgrep
from toolgate.workspace.search.concealed import MatchCounts, RgReport
from toolgate.workspace.search.content import search_content
from toolgate.workspace.search.query import SearchQuery
from toolgate.workspace.search.search import search

from .planted import stand_in

SAID = b"./a.py\x001\n./odd\nname\x0012\n./c\x003\n\n16 matches\n16 matched lines\n3 files contained matches\n7,000 bytes\n9 files searched\n"


@pytest.mark.parametrize("size", [1, 2, 5, 7, len(SAID)])
def test_counts_are_heard_wherever_the_pieces_are_cut(size: int) -> None:
    counts = MatchCounts()
    pieces = [SAID[at : at + size] for at in range(0, len(SAID), size)]
    found = [each for piece in pieces for each in counts.take(piece)]
    assert found == [("a.py", 1), ("odd\nname", 12), ("c", 3)]
    assert (counts.files, counts.searched) == (3, 9)


def test_what_was_heard_of_an_rg_that_was_stopped_is_at_least_what_matched() -> None:
    counts = MatchCounts()
    assert list(counts.take(b"./a\x001\n./b\x00")) == [("a", 1)]
    assert counts.searched == 1


@pytest.mark.parametrize("engine", ["local", "rg"])
def test_a_dot_directory_that_is_listed_is_searched_from_the_moment_it_is_there(
    project: Path, mounts: Mounts, engine: Any
) -> None:
    (project / "a.py").write_text("hit\n")
    assert search(mounts, SearchQuery("hit"), engine=engine).total_matches == 1
    for name in (
        ".github/w/ci.yml",
        ".github/.dotted/x",
        ".github/.env",
        ".vscode/settings.json",
        ".vscode/x",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")
    found = search(mounts, SearchQuery("hit"), engine=engine)
    shown = [".github/.dotted/x", ".github/w/ci.yml", ".vscode/settings.json", "a.py"]
    assert [match.file for match in found.matches] == shown


@pytest.mark.parametrize(
    "name", [".ENV", "Id_Rsa", "Secrets.JSON", "x.Pem", "My-Private-Key", ".Git/x", ".NPMRC"]
)
def test_rg_is_not_even_shown_a_blocked_name_in_whatever_case(
    project: Path, mounts: Mounts, name: str
) -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("hit\n")
    (project / "a.py").write_text("hit\n")
    found = search(mounts, SearchQuery("hit"), engine="rg")
    assert (found.total_matches, found.files_searched) == (1, 1)


def test_what_will_be_shown_is_read_while_rg_goes_on(
    project: Path, tmp_path: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An rg that goes on until its first file has been read."""
    read, slow = tmp_path / "read", tmp_path / "rg"
    os.mkfifo(read)
    slow.write_text(f"#!/bin/sh\nprintf './a.txt\\0001\\n'\nread word < {read}\nprintf './b.txt\\0001\\n'\n")
    slow.chmod(0o755)
    stand_in(monkeypatch, slow)

    def reading(matched: Any, data: bytes, file: str, *more: Any) -> Any:
        if file == "a.txt":
            read.write_text("enough\n")
        return search_content(matched, data, file, *more)

    monkeypatch.setattr(ripgrep, "search_content", reading)
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("hit\n")
    found = search(mounts, SearchQuery("hit"), engine="rg")
    assert [match.file for match in found.matches] == ["a.txt", "b.txt"]
    assert not found.truncated


def test_a_file_that_got_a_second_name_after_it_was_counted_is_not_shown(
    project: Path, tmp_path: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside.txt").write_text("hit outside\n")
    (project / "a.txt").write_text("hit\n")
    real = ripgrep._reached

    def reached(starts: Any, name: str) -> Any:
        answer = real(starts, name)
        (project / name).unlink()
        os.link(tmp_path / "outside.txt", project / name)
        return answer

    monkeypatch.setattr(ripgrep, "_reached", reached)
    found = search(mounts, SearchQuery("hit"), engine="rg")
    assert (found.matches, found.total_matches, found.files_matched) == ([], 0, 0)


@pytest.mark.parametrize("lingers", [0.05, 60])
def test_an_rg_that_has_said_all_and_lingers_is_waited_for_no_longer_than_the_search_may_take(
    project: Path, tmp_path: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch, lingers: float
) -> None:
    slow = tmp_path / "rg"
    slow.write_text(f"#!/bin/sh\nprintf './a.txt\\0001\\n'\nexec /bin/sleep {lingers} >&- 2>&-\n")
    slow.chmod(0o755)
    stand_in(monkeypatch, slow)
    (project / "a.txt").write_text("hit\n")
    begun = time.monotonic()
    found = search(mounts, SearchQuery("hit"), engine="rg", seconds=1.0)
    assert [match.file for match in found.matches] == ["a.txt"]
    assert time.monotonic() - begun < 10


def test_of_a_line_with_millions_of_matches_rg_is_heard_up_to_the_first() -> None:
    report = RgReport(SearchQuery("a", context_lines=0))
    report.expect(7, "f", "f")
    one = b'{"match":{"text":"a"},"start":2,"end":3},'
    line = (
        b'\\",\\"submatches\\":[{\\"match\\":{\\"text\\":\\"x\\"},\\"start\\":9,\\"end\\":9}' + b"a" * 100_000
    )
    head = (
        b'{"type":"match","data":{"path":{"text":"/proc/self/fd/7"},"lines":{"text":"%s\\n"},"line_number":1,'
        % line
    )
    parts = [head + b'"absolute_offset":0,"submatches":[', *([one * 2000] * 200), one[:-1] + b"]}}\n"]
    end = b'{"type":"end","data":{"path":{"text":"/proc/self/fd/7"},"binary_offset":null}}\n'
    for part in (*parts, end):
        assert report.take(part)
        assert len(report._rest) < 400_000
    (match,) = report.matches["f"]
    assert (match.line, match.column, match.matched_text) == (1, 3, '"')
