"""docs/policy.md says what the code does: its tables are printed from the code, its examples are run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import textwrap
from pathlib import Path

import pytest
import yaml
from policy_world import config

import toolgate
from toolgate.policy.explain import FactsFor
from toolgate.policy.hard import BLOCKED
from toolgate.policy.model import ConditionSpec, ExampleCall, RuleSpec
from toolgate.policy.phases import table_markdown
from toolgate.policy.policy import ORDER, order_markdown
from toolgate.project.config import loads

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"
PRINTED = {"ORDER": order_markdown, "TABLE": table_markdown}
EXAMPLE = re.compile(
    r"^ *```yaml\n(?P<yaml>.*?)^ *```\n *```call\n(?P<calls>.*?)^ *```", re.MULTILINE | re.DOTALL
)


def page() -> str:
    return PAGE.read_text()


@pytest.mark.parametrize("name", PRINTED)
def test_the_page_prints_what_the_code_holds(name: str) -> None:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = page().split(begin)
    old, after = rest.split(end)
    new = PRINTED[name]() + "\n"
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        PAGE.write_text(before + begin + new + end + after)
        return
    assert old == new


def test_the_order_has_the_six_steps_of_the_design() -> None:
    assert [number for number, _, _ in ORDER] == [1, 2, 3, 4, 5, 6]
    assert ORDER[2][2] == "any matching deny, else any matching ask, else any matching allow"
    assert ORDER[5][1:] == ("silence", "deny")


def examples() -> list[tuple[str, str]]:
    found = [
        (match["yaml"], match["calls"])
        for match in EXAMPLE.finditer(page().split("## Ten worked examples")[1])
    ]
    assert len(found) == 10
    return [(textwrap.dedent(policy), textwrap.dedent(calls)) for policy, calls in found]


@pytest.fixture(scope="module")
def facts_for(tmp_path_factory: pytest.TempPathFactory) -> FactsFor:
    """Of the tools that there really are."""

    async def opened() -> FactsFor:
        async with toolgate.open(tmp_path_factory.mktemp("p"), {"version": 1}, "memory") as gate:
            return gate.facts_alone()

    return asyncio.run(opened())


@pytest.mark.parametrize("number", range(10))
def test_a_worked_example_decides_as_the_page_says(number: int, facts_for: FactsFor) -> None:
    text, calls = examples()[number]
    policy = config(**yaml.safe_load(text)).policy(trusted=True)
    lines = calls.strip().splitlines()
    assert len(lines) >= 2
    for call, expected in zip(lines[::2], lines[1::2], strict=True):
        persona, tool, args = call.split(" ", 2)
        decision = policy.decide(facts_for(ExampleCall(tool=tool, args=json.loads(args), persona=persona)))
        assert f"{decision.verdict} {decision.rule}" == expected, call


def test_every_key_of_a_rule_and_of_a_condition_is_on_the_page() -> None:
    shown = page()
    for model in (RuleSpec, ConditionSpec):
        for name, info in model.model_fields.items():
            assert re.search(rf"(?<![a-z_]){info.alias or name}(?![a-z_])", shown), name


def test_the_rule_that_shows_every_key_loads() -> None:
    block = re.search(r"## Rules\n\n```yaml\n(.*?)```", page(), re.DOTALL)
    assert block is not None
    rules = textwrap.indent(block[1], "    ")
    loaded = loads(f"version: 1\npersonas: {{builder: {{}}, team-a: {{}}}}\npolicy:\n  rules:\n{rules}")
    (rule,) = loaded.policy_spec.rules
    assert rule.model_fields_set == set(RuleSpec.model_fields)


def test_the_page_names_blocked_names_that_are_blocked() -> None:
    sentence = page().split("## Mounts and blocked names")[1].split("## Rules")[0]
    for name in (".env*", "*.pem", "*.key", ".netrc", ".aws", ".git"):
        assert f"`{name}`" in sentence
        assert name in BLOCKED
