"""`code.read`, `code.list` and `code.outline` through the gate."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.workspace.outline.outline import LANGUAGES, Outliner, Symbol, language_of

from .test_search import CONFIG, call

SOURCE = 'import os\n\n\nclass Shop:\n    def open(self) -> None:\n        pass\n\n\ndef main() -> None:\n    """Go."""\n'


async def test_a_file_comes_with_its_metadata_and_an_outline(project: Path) -> None:
    (project / "shop.py").write_text(SOURCE)
    os.utime(project / "shop.py", (1_000_000_000, 1_000_000_000))
    data = (await call(project, "code.read", path="shop.py")).data
    assert data == {
        "path": "shop.py",
        "summary": "10 lines (10 total)",
        "line_range": "1-10",
        "imports": ["import os"],
        "content": SOURCE,
        "truncated": False,
        "metadata": {
            "total_lines": 10, "lines_returned": 10, "start_line": 1, "end_line": 10,
            "last_modified": "2001-09-09T01:46:40+00:00", "size": len(SOURCE), "encoding": "utf-8",
        },
        "outline": [
            {"name": "Shop", "kind": "class", "start_line": 4, "end_line": 6},
            {"name": "Shop.open", "kind": "method", "start_line": 5, "end_line": 6},
            {"name": "main", "kind": "function", "start_line": 9, "end_line": 10},
        ],
    }  # fmt: skip


async def test_lines_can_be_chosen_and_are_limited(project: Path) -> None:
    (project / "n.txt").write_text("".join(f"{number}\n" for number in range(1, 2001)))
    data = (await call(project, "code.read", path="n.txt")).data
    assert (data["metadata"]["lines_returned"], data["truncated"]) == (500, True)
    assert (data["summary"], data["line_range"]) == ("500 lines (2,000 total)", "1-500")
    assert data["next"] == "go on with start_line=501"
    chosen = await call(project, "code/read", path="n.txt", startLine=10, endLine=12, include_lines=True)
    assert (chosen.data["content"], chosen.data["lines"]) == ("10\n11\n12", ["10", "11", "12"])
    assert chosen.data["truncated"] is False
    few = (await call(project, "code.read", path="n.txt", start_line=1999, include_metadata=False)).data
    assert few == {
        "path": "n.txt", "summary": "2 lines (2,000 total)", "line_range": "1999-2000", "content": "1999\n2000",
        "truncated": False,
    }  # fmt: skip
    for wrong in ({"start_line": 5, "end_line": 4}, {"start_line": 2001}, {"start_line": 0}):
        refused = await call(project, "code.read", path="n.txt", **wrong)
        assert refused.error is not None
        assert refused.error.code == "invalid_args"


async def test_only_the_outline_of_what_was_read_is_given(project: Path) -> None:
    (project / "shop.py").write_text(SOURCE)
    data = (await call(project, "code.read", path="shop.py", start_line=9)).data
    assert [each["name"] for each in data["outline"]] == ["main"]


async def test_syntax_tokens_come_on_request(project: Path) -> None:
    (project / "a.py").write_text("x = 1\nreturn y\n")
    data = (await call(project, "code.read", path="a.py", start_line=2, syntax_highlight=True)).data
    assert data["syntax_tokens"] == [
        {"line": 2, "column": 1, "text": "return", "type": "Keyword"},
        {"line": 2, "column": 8, "text": "y", "type": "Name"},
    ]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("big.txt", b"x" * ((1 << 20) + 1), "too_large"), ("a.bin", b"MZ\x90\0\x03\0", "not_text"),
     ("nul.txt", b"a\0b", "not_text"), (".env", b"A=1", "blocked_path"), (".bashrc", b"x", "blocked_path")],
)  # fmt: skip
async def test_what_is_not_for_reading_is_refused(
    project: Path, name: str, content: bytes, code: str
) -> None:
    (project / name).write_bytes(content)
    result = await call(project, "code.read", path=name)
    assert result.error is not None
    assert result.error.code == code


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\nb", "a\nb\n", "a\n\n", "a\r\nb\r\n"])
async def test_a_whole_file_ends_as_it_does_and_a_part_without_a_line_end(project: Path, text: str) -> None:
    (project / "f.txt").write_bytes(text.encode())
    whole = (await call(project, "code.read", path="f.txt")).data
    assert whole["content"] == text.replace("\r\n", "\n")
    assert whole["metadata"]["lines_returned"] == len(text.splitlines())
    (project / "f.txt").write_bytes(b"first\n" + text.encode())
    rest = (await call(project, "code.read", path="f.txt", start_line=2 if text else 1, end_line=9)).data
    assert rest["content"] == ("\n".join(text.splitlines()) if text else "first\n")


async def test_a_link_is_read_by_what_it_leads_to(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (project / "a.txt").write_text("fine")
    (project / ".env").write_text("SECRET=1")
    for name, target in (("in", "a.txt"), ("env", ".env"), ("out", "../outside.txt")):
        (project / name).symlink_to(target)
    assert (await call(project, "code.read", path="in")).data["content"] == "fine"
    for name, code in (("env", "blocked_path"), ("out", "outside_mount")):
        for tool in ("code.read", "code.outline"):
            refused = await call(project, tool, path=name)
            assert refused.error is not None
            assert refused.error.code == code


async def test_a_read_after_a_write_is_never_old(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        for number in range(50):
            (project / "a.py").write_text(f"def f{number % 10}(): pass\n")
            data = (await gate.call("code.read", {"path": "a.py"})).data
            assert [each["name"] for each in data["outline"]] == [f"f{number % 10}"]
            found = (await gate.call("code.search", {"pattern": r"f\d"})).data["matches"]
            assert [match["matched_text"] for match in found] == [f"f{number % 10}"]


async def test_files_are_listed_by_glob_depth_and_order(project: Path) -> None:
    for size, name in enumerate(
        ["a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".hidden", ".env", "node_modules/x.py"]
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x" * size)
        os.utime(project / name, (1000 + size, 1000 + size))

    async def names(**args: Any) -> list[str]:
        return [each["path"] for each in (await call(project, "code.list", **args)).data["files"]]

    assert await names() == ["a.py", "src", "src/b.py", "src/d.txt", "src/deep", "src/deep/c.py"]
    assert await names(pattern="**/*.py") == ["a.py", "src/b.py", "src/deep/c.py"]
    assert await names(pattern="*.py", directory="src") == ["src/b.py", "src/deep/c.py"]
    assert await names(pattern="deep/*", directory="src") == ["src/deep/c.py"]
    assert await names(pattern="*.py", max_depth=1) == ["a.py"]
    assert await names(pattern="*.py", sort_by="modified") == ["src/deep/c.py", "src/b.py", "a.py"]
    assert await names(pattern="*.py", sortBy="size", limit=1) == ["src/deep/c.py"]
    assert await names(pattern=".*", include_hidden=True) == [".hidden"]
    data = (await call(project, "code.list", pattern="*.py", limit=2)).data
    assert (data["total_files"], data["truncated"], len(data["files"])) == (3, True, 2)
    assert data["files"][0] == {
        "path": "a.py", "name": "a.py", "size": 0, "last_modified": "1970-01-01T00:16:40+00:00",
        "is_directory": False,
    }  # fmt: skip


SAMPLES = {
    "a.py": ("class A:\n  def m(self): pass\n", "A class/m method"),
    "a.js": ("class A { m() {} }\nconst f = () => 1\nfunction g() {}\nconst x = 1", "A class/m method/f function/g function"),
    "a.ts": ("interface I {}\nenum E {}\ntype T = 1\nnamespace N { function f() {} }", "I interface/E enum/T type/N namespace/f function"),
    "a.tsx": ("function App() { return <p/> }\nabstract class B { abstract m(): void }", "App function/B class/m method"),
    "a.go": ("package p\ntype S struct{}\ntype I interface{}\nfunc (s S) M() {}\nfunc F() {}", "S struct/I interface/M method/F function"),
    "a.rs": ("struct S;\ntrait T { fn t(&self); }\nimpl T for S { fn t(&self) {} }\nmod m { fn f() {} }",
             "S struct/T trait/t method/T for S impl/t method/m module/f function"),
    "A.java": ("class A { A() {} void m() {} }\ninterface I {}\nenum E { X }", "A class/A constructor/m method/I interface/E enum"),
    "a.c": ("struct s { int x; };\nint *f(struct s *p) { return 0; }\ntypedef int num;", "s struct/f function/num type"),
    "a.cpp": ("namespace n { class C { void m() {} }; }\nint& C::r() {}", "n namespace/C class/m method/C::r function"),
    "a.rb": ("module M\n class A\n  def m; end\n  def self.s; end\n end\nend", "M module/A class/m method/s method"),
    "a.cs": ("namespace N { class A { void M() {} int P { get; } } }", "N namespace/A class/M method/P property"),
    "a.php": ("<?php\nnamespace N;\nclass A { function m() {} }\nfunction f() {}", "N namespace/A class/m method/f function"),
    "run": ("#!/usr/bin/env bash\nf() { :; }\nfunction g { :; }\n", "f function/g function"),
}  # fmt: skip


def _flat(symbols: list[Symbol]) -> list[str]:
    return [text for each in symbols for text in (f"{each.name} {each.kind}", *_flat(each.children))]


@pytest.mark.parametrize("name", SAMPLES)
def test_each_language_gives_its_definitions(name: str, outliner: Outliner) -> None:
    text, expected = SAMPLES[name]
    language = language_of(name, text.partition("\n")[0])
    assert language is not None
    made = outliner.outline(text, language)
    assert "/".join(_flat(made.symbols)) == expected


def test_there_is_a_sample_of_every_language() -> None:
    known = {language_of(name, text.partition("\n")[0]) for name, (text, _) in SAMPLES.items()}
    assert known == set(LANGUAGES)
    assert len(LANGUAGES) >= 12


async def test_a_file_cut_in_the_middle_still_has_an_outline(project: Path) -> None:
    (project / "cut.py").write_text(
        "def whole():\n    pass\n\ndef other():\n    pass\n\nclass Cut:\n    def first(self):\n        x = (1, [2,\n"
    )
    data = (await call(project, "code.outline", path="cut.py")).data
    names = {entry["name"] for entry in data["symbols"]}
    assert {"whole", "other"} <= names
    assert data["complete"] is False
    cut = await call(project, "code.outline", path="cut.py", limit=1)
    assert (cut.data["truncated"], len(cut.data["symbols"])) == (True, 1)


async def test_deep_nonsense_does_no_harm(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.workspace.outline.worker.CPU_SECONDS", 0.3)
    (project / "deep.py").write_text("(" * 200_000 + "def f(): pass\n")
    (project / "nest.py").write_text("".join(" " * depth + f"def f{depth}():\n" for depth in range(900)))
    for name, complete in (("deep.py", False), ("nest.py", True)):
        begun = time.monotonic()
        result = await call(project, "code.outline", path=name)
        assert result.ok, (name, result.error)
        assert time.monotonic() - begun < 10
        if not complete:
            assert (result.data["symbols"], result.data["complete"]) == ([], False)
            assert "takes longer" in result.data["note"]


HOSTILE = [("a.js", '"' * 100_000), ("b.py", "<a>" * 33_000), ("c.py", "(" * 200_000)]


@pytest.mark.parametrize(("name", "text"), HOSTILE)
async def test_a_hostile_file_holds_up_nobody_else(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """In process each of them would hold the interpreter for more than 20 seconds."""
    monkeypatch.setattr("toolgate.workspace.outline.worker.CPU_SECONDS", 0.3)
    (project / name).write_text(text)
    (project / "good.py").write_text("def good(): pass\n")
    async with toolgate.open(project, CONFIG, "memory") as gate:
        reading = asyncio.ensure_future(gate.call("code.read", {"path": name}))
        longest, last = 0.0, time.monotonic()
        while not reading.done():
            await asyncio.wait((reading,), timeout=0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        result = reading.result()
        assert longest < 2
        assert result.ok
        assert result.data["content"].startswith(text[:1000])
        assert "outline" not in result.data
        assert "takes longer" in result.data["outline_note"]
        with monkeypatch.context() as patch:  # that it takes too long is remembered: nobody is asked again
            patch.setattr("toolgate.workspace.outline.worker._start", lambda: pytest.fail("started again"))
            assert (await gate.call("code.read", {"path": name})).data["outline_note"]
        good = await gate.call("code.read", {"path": "good.py"})
        assert [each["name"] for each in good.data["outline"]] == ["good"]


async def test_a_language_without_a_grammar_is_refused_with_what_there_is(project: Path) -> None:
    (project / "a.txt").write_text("x")
    result = await call(project, "code.outline", path="a.txt")
    assert result.error is not None
    assert result.error.code == "invalid_args"
    assert "python" in result.error.fix
