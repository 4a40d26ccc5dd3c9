"""What comes back: within its budget, cut honestly; cached where allowed; several calls in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgate
from gates import Witness, policy
from toolgate import Tool, tool
from toolgate.core.errors import NotAllowed
from toolgate.storage.port import Filter

from .conftest import Open


def giving(value: Any, **options: Any) -> Tool:
    @tool("t.give", **({"reads": ["system"]} | options))
    async def give():  # type: ignore[no-untyped-def]
        """Give it."""
        return value

    return give


LARGE: list[Any] = [
    "x" * 5000, ["item"] * 2000, {"a": "y" * 5000, "b": 1}, {"rows": [{"text": "z" * 100}] * 100, "more": False},
    {f"field{n}": "v" * 50 for n in range(200)}, [["x" * 300] * 10] * 10, {"deep": {"deep": {"deep": "w" * 9000}}},
    ["é" * 3000, "日本" * 2000],
]  # fmt: skip


@pytest.mark.parametrize("value", LARGE, ids=range(len(LARGE)))
async def test_a_large_result_is_cut_to_its_budget_and_says_so(value: Any, opened: Open) -> None:
    async with opened("allow", [giving(value)], budget={"tokens": 200}) as gate:
        result = await gate.call("t.give")
        assert result.ok
        assert result.meta.truncated
        text = json.dumps(result.data, ensure_ascii=False, separators=(",", ":"))
        assert len(text) <= 200 * 4 + 120, (
            "the notice of the cut may stand beyond the budget, the rest may not"
        )
        assert "more" in text
        assert type(result.data) is type(value)


@pytest.mark.parametrize("value", ["日本" * 2000, ["日本" * 10] * 200, {"a": "é" * 3000, "b": ["😀" * 500]}])
async def test_a_budget_in_bytes_holds_where_characters_take_several(value: Any, opened: Open) -> None:
    async with opened("allow", [giving(value)], budget={"tokens": 100_000, "bytes": 2000}) as gate:
        result = await gate.call("t.give")
        assert result.meta.truncated
        text = json.dumps(result.data, ensure_ascii=False, separators=(",", ":"))
        assert 1000 < len(text.encode()) <= 2000


async def test_the_record_says_what_a_call_did_in_the_words_of_its_result(opened: Open) -> None:
    async with opened("allow", [giving({"summary": "the last 2 commits", "commits": [1, 2]})]) as gate:
        await gate.call("t.give")
        (row,) = await gate.events(Filter(kinds=("committed",)))
        assert json.loads(row.body)["summary"] == "the last 2 commits"


async def test_a_small_result_is_whole(opened: Open) -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {}}
    async with opened("allow", [giving(value)], budget={"tokens": 200}) as gate:
        result = await gate.call("t.give")
        assert (result.data, result.meta.truncated) == (value, False)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, {"x": object()}, {(1, 2): 3}], ids=["object", "set", "inside", "key"]
)
async def test_a_read_that_returns_no_json_failed(value: Any, opened: Open) -> None:
    async with opened("allow", [giving(value)]) as gate:
        result = await gate.call("t.give")
        assert result.error is not None
        assert result.error.code == "failed"
        assert [row.kind for row in await gate.events(Filter(tool="t.give"))] == ["started", "failed"]


async def test_an_effect_that_returns_no_json_has_still_happened(opened: Open) -> None:
    async with opened("allow", [giving(object(), reads=[], writes=["outside"])]) as gate:
        result = await gate.call("t.give")
        assert [row.kind for row in await gate.events(Filter(tool="t.give"))] == ["started", "committed"]
        assert result.ok


async def test_a_cached_read_says_so_and_a_write_clears_it(opened: Open, witness: Witness) -> None:
    ran = []

    @tool("t.cached", reads=["system"], cache_s=60)
    async def cached(x: str = "") -> int:
        """Counts its runs."""
        ran.append(x)
        return len(ran)

    async with opened("allow", [cached]) as gate:
        results = [await gate.call("t.cached") for _ in range(2)]
        assert [(r.data, r.meta.cached) for r in results] == [(1, False), (1, True)]
        assert not (await gate.call("t.cached", {"x": "other"})).meta.cached
        assert not (await gate.call("t.cached", persona="bob")).meta.cached, "never another persona's"
        await gate.call("t.act")
        again = await gate.call("t.cached")
        assert (again.data, again.meta.cached) == (4, False)
        kinds = [row.kind for row in await gate.events(Filter(tool="t.cached"))]
        assert kinds.count("started") == 5, "a cached read is recorded too"


async def test_a_refusal_stops_the_rest_of_several_calls(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        results = await gate.calls([("t.act", {"x": "1"}), ("t.nothing", {}), ("t.act", {"x": "2"})])
        assert [result.error.code if result.error else "ok" for result in results] == [
            "ok",
            "unknown_tool",
            "cancelled",
        ]
        assert "not run" in (results[2].error.message if results[2].error else "")
    assert witness.arguments == ["1"]


async def test_a_blocked_name_stops_the_rest_and_is_denied_and_a_directory_does_neither(
    tmp_path: Path,
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a").write_text("a")
    config = {"version": 1, "default_persona": "r", "personas": {"r": {"phase": "observe"}}}
    async with toolgate.open(tmp_path, config, "memory") as gate:
        for path, codes, kind in (
            ("d", ["blocked_path", "ok"], "failed"),
            (".env", ["blocked_path", "cancelled"], "denied"),
        ):
            results = await gate.calls([("fs.read", {"path": path}), ("fs.read", {"path": "a"})])
            assert [result.error.code if result.error else "ok" for result in results] == codes
            event = results[0].meta.event_id
            assert [row.kind for row in await gate.events(Filter()) if row.seq == event] == [kind]


async def test_an_ordinary_failure_does_not_stop_the_rest(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        results = await gate.calls(
            [("t.fail", {"x": "f"}), ("t.act", {"x": "2"}), ("t.act", {"bad": 1}), ("t.act", {"x": "3"})]
        )
        assert [result.ok for result in results] == [False, True, False, True]
    assert witness.arguments == ["f", "2", "3"]


async def test_a_call_that_asks_stops_the_rest_until_it_is_answered(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        results = await gate.calls([("t.act", {"x": "1"}), ("t.act", {"x": "2"})], wait=False)
        assert [result.error.code for result in results if result.error] == ["pending", "cancelled"]
    assert witness.ran == []


async def test_a_subagent_can_only_lose_rights(opened: Open, witness: Witness) -> None:
    personas = {
        "ada": {"deny": ["t.fail"]},
        "kid": {"parent": "ada", "allow": ["t.*"]},
        "free": {"allow": ["t.*"]},
    }
    rules = {"rules": [{"name": "r", "persona": "ada", "tools": ["t.act"], "decision": "allow"}]}
    async with opened(personas=personas, policy=rules) as gate:
        assert (await gate.call("t.act", {"x": "ada"})).ok
        for name in ("t.look", "t.fail"):
            result = await gate.call(name, {"x": "kid"}, persona="kid")
            assert result.error is not None
            assert result.error.code == "not_allowed", name
        assert (await gate.call("t.look", {"x": "free"}, persona="free")).ok
    assert witness.arguments == ["ada", "free"]


async def test_a_pause_of_the_parent_stops_the_subagent(opened: Open, witness: Witness) -> None:
    personas = {"ada": {"allow": ["t.*"]}, "kid": {"parent": "ada"}}
    async with opened("allow", personas=personas) as gate:
        assert (await gate.call("t.act", {"x": "1"}, persona="kid")).ok
        await gate.pause("ada")
        assert not (await gate.call("t.act", {"x": "2"}, persona="kid")).ok
        await gate.resume("ada")
        await gate.pause()
        assert not (await gate.call("t.act", {"x": "3"}, persona="kid")).ok
    assert witness.arguments == ["1"]


BROKEN = [
    "",
    "version: 1\npersonas: [",
    "version: 2",
    "version: 1\nunknown: 1",
    "\x00",
    "- 1",
    "version: 1\nversion: 1",
]


@pytest.mark.parametrize("text", [*BROKEN, None], ids=range(len(BROKEN) + 1))
async def test_a_policy_that_cannot_be_read_stops_everything_until_it_is_repaired(
    text: str | None, opened: Open, tmp_path: Path, witness: Witness
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy("allow")))
    async with opened(config=file) as gate:
        assert (await gate.call("t.act", {"x": "before"})).ok
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        for name in ("t.act", "t.look", "system.ping"):
            result = await gate.call(name)
            assert result.error is not None
            assert result.error.code == "unavailable", result
            assert result.error.fix
        file.write_text(yaml.safe_dump(policy("allow")))
        assert (await gate.call("t.act", {"x": "after"})).ok
    assert witness.arguments == ["before", "after"]


async def test_a_persona_is_paused_while_the_policy_cannot_be_read(
    opened: Open, tmp_path: Path, witness: Witness
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy("allow")))
    async with opened(config=file) as gate:
        file.write_text("version: [")
        await gate.pause("ada")
        with pytest.raises(NotAllowed, match="there is no persona 'adda'"):
            await gate.pause("adda")
        file.write_text(yaml.safe_dump(policy("allow")))
        result = await gate.call("t.act", {"x": "1"})
        assert result.error is not None
        assert result.error.code == "not_allowed"
    assert witness.arguments == []


async def test_a_stricter_policy_counts_from_the_next_call_on(
    opened: Open, tmp_path: Path, witness: Witness
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy("allow")))
    async with opened(config=file) as gate:
        assert (await gate.call("t.act", {"x": "1"})).ok
        file.write_text(yaml.safe_dump(policy("deny")))
        result = await gate.call("t.act", {"x": "2"})
        assert result.error is not None
        assert result.error.code == "not_allowed"
    assert witness.arguments == ["1"]
