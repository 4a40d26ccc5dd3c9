"""`tools.find`: the right tool among the first three, over toolgate's own tools and three hundred of other servers."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from toolgate import testing
from toolgate.core.names import Registry
from toolgate.core.tool import Tool, tool
from toolgate.features.system.tools import ranked, weights_of

HERE = Path(__file__).parent / "finding"
SHARE = 0.9


def others(named: str = "tools") -> list[Tool]:
    """Tools as servers have them: a name, a sentence, arguments."""
    made = []
    for line in (HERE / f"{named}.txt").read_text().splitlines():
        name, _, description = line.partition(": ")

        @tool(name, description=description, reads=["outside"], origin="imported")
        async def run(query: str = "", limit: int = 10) -> str:
            return ""

        made.append(run)
    return made


def queries(named: str = "queries") -> list[tuple[str, set[str]]]:
    lines = (HERE / f"{named}.txt").read_text().splitlines()
    return [(query, set(wanted.split())) for query, _, wanted in (line.rpartition(": ") for line in lines)]


@pytest.mark.parametrize("more", ["", "more_"])
async def test_the_right_tool_is_among_the_first_three_for_nine_of_ten_queries(more: str) -> None:
    async with testing.gate(tools=others(f"{more}tools")) as gate:
        able = [each for each in gate.services.registry if each.listed and each.forwards is None]
        assert len(able) >= 280
        asked = queries(f"{more}queries")
        assert len(asked) >= 100
        first = {query: [each.name for each in ranked(query, able, weights_of)[:3]] for query, _ in asked}
        missed = {query: first[query] for query, wanted in asked if not wanted.intersection(first[query])}
        assert len(missed) <= len(asked) * (1 - SHARE), missed


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("calender", "calendar.list_events"), ("calendars", "calendar.list_events"), ("commting", "code.log"),
        ("drop-down", "form.dropdown"), ("s3 bucket", "aws.s3_list"), ("promql", "graf.prom"), ("stopped", "vm.stop"),
    ],
)  # fmt: skip
async def test_slips_forms_and_words_written_in_one_are_understood(query: str, found: str) -> None:
    said = {
        "calendar.list_events": "List", "code.log": "Commits", "form.dropdown": "Choose", "aws.s3_list": "List",
        "graf.prom": "Run PromQL", "vm.stop": "Halt", "t.three": "Three of 3",
    }  # fmt: skip
    base = others()[0]
    able = [replace(base, name=name, description=text, aliases=()) for name, text in said.items()]
    assert ranked(query, able, weights_of)[0].name == found


async def test_a_name_in_any_spelling_finds_that_tool_first() -> None:
    async with testing.gate(tools=others()) as gate:
        for name in ("fs.read", "github.create_issue"):
            for spelled in (name, name.upper(), name.replace(".", "_"), name.replace(".", "/")):
                found = await gate.call("tools.find", {"query": spelled}, persona="tester")
                assert found.data[0]["name"] == name, spelled


async def test_what_a_persona_may_not_call_is_not_found() -> None:
    config = {"version": 1, "personas": {"tester": {"phase": "observe", "deny": ["fs.delete"]}}}
    async with testing.gate(policy=config) as gate:
        found = await gate.call("tools.find", {"query": "delete a file", "limit": 20}, persona="tester")
        assert found.ok
        assert "fs.delete" not in [one["name"] for one in found.data]


@pytest.mark.parametrize("query", ["…", "the", "\x1b[2J", "ש" * 500, "zqxjkv"])
async def test_a_query_that_means_nothing_finds_nothing_and_says_so(query: str) -> None:
    async with testing.gate() as gate:
        args = {"query": query}
        found = await gate.call("tools.find", args, persona="tester")
        assert found.data == []
        assert gate.rendered(found, args).startswith("no tool")


async def test_among_a_thousand_tools_it_is_found_quickly() -> None:
    made = others()
    registry = Registry(made)
    for turn in range(3):
        for each in made:
            registry.add(replace(each, name=f"{each.name}_{turn}", aliases=()))
    able = list(registry)
    assert len(able) > 1000
    known = {each.name: weights_of(each) for each in able}
    begun = time.perf_counter()
    assert ranked("refund a payment", able, lambda each: known[each.name])[0].name.startswith("stripe.refund")
    assert time.perf_counter() - begun < 1.0
