"""Path tricks of every kind against every tool: nothing outside is read or written, no blocked name comes out.

Each trick is tried in each way that a tool takes a name: as a path, in a diff, as a glob, as a revision. What must
hold afterwards is the same for all: what is outside is as it was, none of its content was said, recorded, logged or
kept, no file with a blocked name was read, changed or made.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sampling import fewer, sampled
from toolgate.core.result import Result
from toolgate.policy.hard import is_blocked

from .attempts import HISTORY, attacked, attempt, let_in, neutral, silent, told
from .reach import DIFFS, GLOBS, REVISIONS, TEXTS, about_files, names_of, texts_of, ways
from .spellings import INNER_PATHS, ODD, OUTWARDS, SHUT, TRAPS
from .traps import INNER, Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("attacks"))


async def test_every_text_that_a_tool_about_files_takes_is_known_to_this_suite(place: Place) -> None:
    async with attacked(place) as gate:
        tools = [tool for tool in gate.services.registry if about_files(tool) and not tool.human]
        known = GLOBS | REVISIONS | DIFFS | TEXTS
        assert [
            (tool.name, text) for tool in tools for text in texts_of(tool) if (tool.name, text) not in known
        ] == []
        assert {tool.name for tool in tools if not names_of(tool)} == {
            "code.show",
            "events.artifacts",
            "fs.apply",
            "garden.add",
        }
        every = ways(gate.services.registry)
        assert len({way.tool for way in every}) >= 21


def test_no_spelling_is_counted_twice_and_there_are_hundreds() -> None:
    every = [*OUTWARDS, *ODD, *TRAPS, *SHUT, *INNER_PATHS]
    assert len(every) == len(set(every)) >= 300


async def test_a_path_that_is_not_plainly_inside_is_refused_by_every_tool(place: Place) -> None:
    async with attacked(place) as gate:
        every = ways(gate.services.registry)
        for path in map(place.spell, sampled(OUTWARDS, 24, "outwards")):
            found = await attempt(gate, place, path, every)
            assert let_in(path, found) == []


async def test_an_odd_spelling_leads_nowhere_else(place: Place) -> None:
    async with attacked(place) as gate:
        every = ways(gate.services.registry)
        for path in map(place.spell, sampled(ODD, 24, "odd")):
            await attempt(gate, place, path, every)


async def test_what_leads_out_is_refused_by_every_tool(place: Place) -> None:
    async with attacked(place) as gate:
        every = [way for way in ways(gate.services.registry) if way.tool not in HISTORY]
        past = [way for way in ways(gate.services.registry) if way.tool in HISTORY]
        for path in sampled(TRAPS, 16, "traps"):
            found = await attempt(gate, place, path, every)
            # a plain path means scratch for `fs.save`, where no trap lies
            assert [one for one in let_in(path, found) if ":" in path or not one.startswith("fs.save")] == []
            await attempt(gate, place, path, past)


async def test_a_shut_name_stays_shut_in_every_spelling(place: Place) -> None:
    async with attacked(place) as gate:
        every = ways(gate.services.registry)
        for path in (*sampled(SHUT, 20, "shut"), *sampled(INNER_PATHS, 8, "inner")):
            found = await attempt(gate, place, path, every)
            led = path.startswith(("alias", "chain", "hard", "sub/up", "link", "sub/link")) or "link_" in path
            ours = path in INNER_PATHS and not path.startswith("garden:")
            let = [
                one
                for one in let_in(path, found)
                if not ((led or ours) and one.startswith("fs.save"))  # its own mount
                and not (led and one.startswith(HISTORY))  # a name in history is not what it leads to now
            ]
            assert let == []


PAIRS = (
    ("../outside/page", "../outside/none"), ("link_dir/page", "link_dir/none"), ("/etc/passwd", "/etc/nobody"),
    ("link_up/outside/page", "link_up/outside/none"), ("garden:link_out/page", "garden:link_out/none"),
    ("link_file", "link_dangling_out"), ("alias_env", "alias_missing"), (".env", ".env.not"), ("secrets/token", "secrets/nobody"),
    ("garden/open.md", "garden/none.md"), ("garden:private/x", "garden:private/y"), ("keys/ledger.json", "keys/ledger.json."),
    ("../outside", "../nowhere"), ("~root", "~nobody7"), ("file:///etc/passwd", "file:///etc/nobody"), ("link_etc/passwd", "link_etc/nobody"),
)  # fmt: skip


async def test_nothing_tells_whether_something_exists_where_nobody_may_look(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with attacked(place) as gate:
        every = ways(gate.services.registry)
        for there, absent in sampled(PAIRS, 6, "pairs"):
            first = await attempt(gate, place, there, every)
            second = await attempt(gate, place, absent, every)
            for way in every:
                if way.tool == "fs.save" or (
                    way.kind == "revision" and not there.startswith((".", "/", "~"))
                ):
                    continue  # scratch has neither; history knows what was committed
                if way.tool in HISTORY and there.startswith(("link", "alias", "keys")):
                    continue
                assert neutral(first[way], there) == neutral(second[way], absent), (
                    f"{way} {there!r} {absent!r}"
                )


async def test_walks_and_searches_show_nothing_that_is_shut_or_in_another_mount(place: Place) -> None:
    patterns = (
        "*",
        "**",
        "**/*",
        ".*",
        "**/.*",
        "*env*",
        "**/*rsa*",
        "secrets/*",
        ".git/**",
        "../**",
        "garden/**",
        "*.md",
        "keys/*",
    )
    async with attacked(place) as gate:
        calls = [("fs.find", {"base": ".", "pattern": each}) for each in patterns]
        calls += [("fs.list", {"glob": each}) for each in patterns] + [("fs.list", {"details": True})]
        calls += [("code.list", {"pattern": each, "include_hidden": True}) for each in patterns]
        calls += [
            ("code.search", {"pattern": word, "exclude_patterns": []})
            for word in ("5d1e", "91b[c]", "7f3[a]", r"\p{L}+-5d1e")
        ]
        calls += [("fs.search", {"pattern": "5d1e", "file_pattern": each}) for each in patterns]
        calls += [
            ("code.diff", {"base": "HEAD~1", "compare": "HEAD"}),
            ("code.log", {"include_diff": True}),
            ("code.show", {"commit": "HEAD~1"}),
        ]
        shown = 0
        for tool, args in calls:
            for persona in ("thief", "poor"):
                result = await gate.call(tool, args, persona=persona)
                data = json.dumps(
                    {
                        key: value
                        for key, value in (result.data or {}).items()
                        if key not in ("pattern", "base")
                    }
                )
                silent(data, str((tool, args)))
                assert INNER not in data, (tool, args)
                names = [*_names(result.data)]
                shown += len(names)
                shut = [name for name in names if any(map(is_blocked, name.strip("/").split("/")))]
                assert shut == [], (tool, args)
                wrong = (
                    "link_dir/",
                    "link_root/",
                    "garden",
                    "keys/",
                    *([".unlisted"] if tool != "code.list" else []),
                )
                assert [name for name in names if name.startswith(wrong) and name != "keys/"] == [], (
                    tool,
                    args,
                )
        assert shown > 100
        found = await gate.call("code.search", {"pattern": INNER, "paths": ["garden:."]})
        assert [match["file"] for match in found.data["matches"]] == ["garden:open.md"]
        assert not (
            await gate.call("code.search", {"pattern": INNER, "paths": ["garden:."]}, persona="poor")
        ).ok


def _names(data: Any) -> Iterator[str]:
    """The names of files that an answer of any tool shows."""
    for row in (
        (data or {}).get("files", []) + (data or {}).get("entries", []) + (data or {}).get("matches", [])
    ):
        yield row if isinstance(row, str) else row.get("path") or row["file"]


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Names that change, all the time, between something plain and a link to what must not be seen."""
    stop = threading.Event()
    pairs = {"swap": (outside / "page", b"plain"), "swap_env": (root / ".env", b"plain")}
    (root / "real").mkdir()
    (root / "real/page").write_text("plain")

    def work() -> None:
        fresh = root / ".toolgate" / "fresh"
        while not stop.is_set():
            for name, (target, plain) in pairs.items():
                for make in (lambda t=target: fresh.symlink_to(t), lambda p=plain: fresh.write_bytes(p)):
                    make()
                    os.replace(fresh, root / name)
            for target in (outside, root / "secrets", Path("real")):
                fresh.symlink_to(target)
                os.replace(fresh, root / "swap_dir")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()


async def test_names_swapped_between_check_and_use_lead_nowhere(tmp_path: Path) -> None:
    place = Place(tmp_path)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("fs.read", {"path": "swap"}), ("fs.read", {"path": "swap_env"}), ("fs.hash", {"path": "swap"}),
        ("fs.read", {"path": "swap_dir/page"}), ("fs.list", {"path": "swap_dir"}), ("fs.find", {"base": "swap_dir", "pattern": "*"}),
        ("fs.write", {"path": "swap_dir/page", "content": "owned"}), ("fs.append", {"path": "swap", "text": "owned"}),
        ("fs.edit", {"path": "swap_env", "find": "plain", "replace": "owned"}), ("fs.delete", {"path": "swap_dir/page"}),
        ("fs.write", {"path": "swap_dir/new", "content": "owned"}), ("fs.move", {"path": "swap", "new_path": "swap_dir/moved"}),
        ("code.read", {"path": "swap"}), ("code.read", {"path": "swap_dir/page"}), ("code.list", {"directory": "swap_dir"}),
        ("code.search", {"pattern": ".", "paths": ["swap_dir", "swap", "swap_env"]}), ("code.search", {"pattern": r"\p{L}", "paths": ["swap_dir"]}),
        ("code.outline", {"path": "swap_env"}), ("fs.search", {"pattern": "canary|secret"}), ("code.diff", {}),
        ("fs.patch", {"diff": "--- a/swap_dir/page\n+++ b/swap_dir/page\n@@ -1 +1 @@\n-plain\n\\ No newline at end of file\n+owned\n"}),
        ("fs.patch", {"diff": "--- /dev/null\n+++ b/swap_dir/patched\n@@ -0,0 +1 @@\n+owned\n"}), ("fs.ensure_dir", {"path": "swap_dir/made"}),
    ]  # fmt: skip
    results: list[Result] = []
    loop = asyncio.get_running_loop()
    async with attacked(place) as gate:
        with swapping(place.root, place.outside):
            until = loop.time() + fewer(3, 1)
            while loop.time() < until or len(results) <= len(calls):
                results += await asyncio.gather(*(gate.call(name, args) for name, args in calls))
    for result in results:
        silent(told(result), result.tool)
    place.check("a race")
    assert len(results) > len(calls)
    assert any(result.ok for result in results)
