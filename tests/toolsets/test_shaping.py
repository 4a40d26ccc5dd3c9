"""Whatever its size, a result stays within its budget, says truly whether something is missing, and how to go on."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgate
from repositories import CONFIG, Repo
from sampling import fewer
from toolgate.core.tool import Tool, tool
from toolgate.gate.flow import Budget
from toolgate.gate.shape import _fits, _fitted, cut

SIZES = (100, 130, 200, 333, 500, 1000, 2000, 4000, 8000, 16_000)
LISTS = {
    "code.search": "matches", "fs.search": "matches", "code.list": "files", "code.outline": "symbols",
    "fs.list": "entries", "fs.find": "files", "code.diff": "files", "code.log": "commits", "code.blame": "lines",
}  # fmt: skip
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("code.read", {"path": "src/big.py"}),
    ("code.read", {"path": "src/big.py", "include_lines": True, "syntax_highlight": True, "start_line": 50}),
    ("code.read", {"path": "long.txt"}),
    ("fs.read", {"path": "src/big.py"}),
    ("fs.read", {"path": "src/big.py", "ranges": [[3, 200], [300, 900]]}),
    ("code.search", {"pattern": "value", "max_matches": 500}),
    ("code.search", {"pattern": "value", "include_line_numbers": False}),
    ("fs.search", {"pattern": "value", "path": "src"}),
    ("code.list", {}),
    ("fs.list", {"glob": "**", "details": True}),
    ("fs.list", {"path": "many"}),
    ("fs.find", {"base": ".", "pattern": "*"}),
    ("code.outline", {"path": "src/big.py", "limit": 5000}),
    ("code.diff", {"base": "HEAD~3"}),
    ("code.log", {"include_diff": True}),
    ("code.show", {"commit": "HEAD~1"}),
    ("code.blame", {"path": "src/big.py"}),
]


def big(lines: int) -> str:
    chance = random.Random(lines)
    parts = [f"import m{number}\n" for number in range(60)]
    for number in range(lines // 3):
        parts.append(f"class Class{number}:\n    def method{number}(self):\n")
        text = 'value \t"ü\\' * chance.randint(0, 9)
        parts.append(f"        return '{text}'\n")
    return "".join(parts)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo(tmp_path_factory.mktemp("shaping") / "project")
    repo.commit("start", {"src/big.py": big(300), "long.txt": "x" * 200_000})
    names = {f"many/{'n' * (number % 90)}{number}.txt": "value\n" for number in range(300)}
    repo.commit("many files\n\n" + "why " * 500, names)
    repo.commit("more", {"src/big.py": big(900), "src/other.py": big(50)})
    repo.commit("less", {"src/other.py": big(20)})
    return repo


@pytest.fixture
async def gate(repo: Repo) -> AsyncIterator[toolgate.Gate]:
    config = CONFIG | {"budget": {"tokens": 1_000_000, "bytes": 100_000_000}}
    async with toolgate.open(repo.root, config, "memory") as opened:
        yield opened


@pytest.mark.parametrize(("name", "args"), CALLS)
async def test_every_shape_keeps_within_every_budget_and_says_what_was_cut(
    gate: toolgate.Gate, name: str, args: dict[str, Any]
) -> None:
    whole = await gate.call(name, args)
    assert whole.ok, whole.error
    assert "more items]" not in str(whole.data), "the budget of this gate cuts nothing"
    text = json.dumps(whole.data, ensure_ascii=False, separators=(",", ":"))
    assert len(text) > 4 * 1000
    made: Tool = gate.services.registry.resolve(name)
    for tokens in SIZES:
        budget = Budget(tokens, 1_000_000)
        if _fits(text, budget):
            continue
        short, told = _fitted(made, whole.data, text, budget)
        assert len(told) <= tokens * 4
        assert json.loads(told) == short
        if tokens < 500:
            continue  # so little room is only promised to be kept
        assert short["truncated"] is True
        assert short["next"]
        if name in LISTS:
            kept, there = short[LISTS[name]], whole.data[LISTS[name]]
            assert [_known(each) for each in kept] == [_known(each) for each in there[: len(kept)]]
            assert kept or tokens < 1000
        if "content" in short:
            assert whole.data["content"].startswith(short["content"].removesuffix("\n"))
            assert len(short["content"]) > tokens


def _known(item: Any) -> Any:
    """What an item is known by, when parts of it may be cut."""
    if not isinstance(item, dict):
        return item
    return [item.get(key) for key in ("file", "line", "line_text", "path", "name", "hash", "line_number")]


async def test_what_a_tool_cut_itself_is_said_beside_the_result_too(repo: Repo) -> None:
    async with toolgate.open(repo.root, CONFIG, "memory") as gate:
        for max_lines, cut in ((2, True), (10_000, False)):
            args = {"path": "src/big.py", "start_line": 1, "end_line": 20, "max_lines": max_lines}
            result = await gate.call("code.read", args)
            assert (result.data["truncated"], result.meta.truncated) == (cut, cut)


@pytest.mark.parametrize("tokens", [300, 1000, 5000])
async def test_whoever_follows_next_reads_the_whole_file(repo: Repo, tokens: int) -> None:
    expected = (repo.root / "src/big.py").read_text()
    config = CONFIG | {"budget": {"tokens": tokens}}
    async with toolgate.open(repo.root, config, "memory") as gate:
        parts, start = [], 1
        while True:
            result = await gate.call("code.read", {"path": "src/big.py", "start_line": start})
            data = result.data
            assert result.meta.tokens <= tokens
            parts.append(data["content"])
            assert data["line_range"] == f"{start}-{start + data['content'].count(chr(10))}"
            assert data["metadata"]["lines_returned"] == data["content"].count("\n") + 1
            if not data["truncated"]:
                break
            start = int(data["next"].removeprefix("go on with start_line="))
        assert "\n".join(parts) + "\n" == expected
        parts, wanted = [], None
        while True:
            args = {"path": "src/big.py"} | ({"ranges": wanted} if wanted else {})
            data = (await gate.call("fs.read", args)).data
            parts += (
                [data["content"]] if "content" in data else [each["content"] for each in data["range_slices"]]
            )
            done = "".join(parts).count("\n")
            if done == data["lines"]:
                break
            told = re.search(r"\[\[\d+, \d+\]\]", data.get("next", "")) if data.get("truncated") else None
            wanted = json.loads(told[0]) if told else [[done + 1, done + 500]]
        assert "".join(parts) == expected


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """Lines, messages and diffs of which one alone is more than a budget."""
    repo = Repo(tmp_path_factory.mktemp("uneven") / "project")
    short = "".join(f"def f{number}(): return {number}\n" for number in range(1200))
    repo.commit(
        "first", {"long.txt": "a\n" + "é" * 200_000 + "\nb\n" + "x" * 200_000 + "\nc\n", "short.py": short}
    )
    repo.commit("w" * 3900, {"short.py": short.replace("return", "yield")})
    repo.commit("last", {"short.py": short})
    return repo


@pytest.mark.parametrize("tokens", [400, 1000, 3000, 25_000])
@pytest.mark.parametrize(
    ("name", "path", "word"),
    [
        ("code.read", "long.txt", "start_line"),
        ("code.read", "short.py", "start_line"),
        ("code.blame", "long.txt", "start_line"),
        ("code.log", "short.py", "skip"),
    ],
)
async def test_next_leads_on_also_from_what_is_too_long_for_any_answer(
    uneven: Repo, tokens: int, name: str, path: str, word: str
) -> None:
    async with toolgate.open(uneven.root, CONFIG | {"budget": {"tokens": tokens}}, "memory") as gate:
        seen: list[Any] = []
        at = 0 if word == "skip" else 1
        while True:
            result = await gate.call(name, {"path": path, word: at})
            assert result.meta.tokens <= tokens
            data = result.data
            if name == "code.read":
                seen += range(at, int(data["line_range"].rpartition("-")[2]) + 1)
            else:
                seen += [_known(each) for each in data["commits" if word == "skip" else "lines"]]
            on = re.search(rf"{word}=(\d+)", data.get("next", ""))
            if on is None:
                break
            assert int(on[1]) > at, data["next"]
            at = int(on[1])
        whole = {"long.txt": 5, "short.py": 1200}[path] if word != "skip" else 3
        assert len(seen) == whole


async def test_a_log_says_how_to_get_the_diffs_that_had_no_room(uneven: Repo) -> None:
    async with toolgate.open(uneven.root, CONFIG, "memory") as gate:
        data = (await gate.call("code.log", {"include_diff": True})).data
        assert (data["truncated"], data["next"]) == (
            True,
            "not all diffs are here: ask code.show for one commit",
        )


async def test_a_small_result_is_left_as_it_is(gate: toolgate.Gate, repo: Repo) -> None:
    (repo.root / "small.txt").write_text("value\n")
    try:
        for name, args in (
            ("code.read", {"path": "small.txt"}),
            ("code.search", {"pattern": "value", "paths": ["small.txt"]}),
        ):
            result = await gate.call(name, args)
            assert (result.meta.truncated, result.data["truncated"]) == (False, False)
            assert "next" not in result.data
    finally:
        (repo.root / "small.txt").unlink()


async def test_a_search_says_where_most_is_also_of_files_it_does_not_show(gate: toolgate.Gate) -> None:
    data = (await gate.call("code.search", {"pattern": "value", "max_matches": 2})).data
    assert len(data["matches_by_file"]) <= 2
    assert data["top_files"][0]["file"] == "src/big.py"
    assert data["top_files"][0]["count"] > 100
    assert data["files_matched"] > 300
    assert "src/big.py" in data["next"]
    assert data["summary"].startswith(
        f"Found {data['total_matches']:,} matches in {data['files_matched']} files"
    )


async def test_a_tool_that_cannot_shorten_is_cut_by_shape(tmp_path: Path) -> None:
    def broken(data: Any, room: int) -> Any:
        raise RuntimeError

    @tool("t.much", reads=["system"], fit=broken)
    async def much() -> dict[str, str]:
        """Much."""
        return {"text": "\x01" * 100_000}

    config = CONFIG | {
        "policy": {"rules": [{"name": "r", "persona": "*", "tools": ["t.*"], "decision": "allow"}]}
    }
    async with toolgate.open(tmp_path, config, "memory", tools=[much]) as gate:
        result = await gate.call("t.much")
    assert result.meta.truncated
    assert result.meta.tokens <= 25_000
    assert "more characters" in result.data["text"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=30), inner, max_size=20),
    max_leaves=60,
)


@given(JSON, st.integers(100, 1500))
@settings(max_examples=fewer(80, 20), deadline=None)
def test_any_value_can_be_cut_to_any_budget(value: Any, tokens: int) -> None:
    @tool("t.any", reads=["system"])
    async def anything() -> None:
        """Anything."""

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    budget = Budget(tokens, 1000)
    if not _fits(text, budget):
        _, told = _fitted(anything, value, text, budget)
        assert len(told) <= tokens * 4
        assert len(told.encode()) <= 1000


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert cut("a" * 100, 60) == "a" * 16 + "… [84 more characters]"
