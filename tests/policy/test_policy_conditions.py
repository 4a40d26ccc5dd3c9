from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from policy_world import config, one, policy

from toolgate.core.errors import ConfigError
from toolgate.core.names import Registry
from toolgate.core.tool import tool
from toolgate.policy.conditions import Condition
from toolgate.policy.explain import facts_from
from toolgate.policy.model import ConditionSpec, ExampleCall


def holds(condition: Any, value: Any, strict: bool = True) -> bool:
    return Condition("x", ConditionSpec.model_validate(condition), strict).holds({"x": value})


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        ("main", "main", "Main"),
        (1, 1, True),
        (True, True, 1),
        ({"equals": None}, None, "x"),
        ({"in": ["a", 2]}, 2, "b"),
        ({"not": "main"}, "dev", "main"),
        ({"not": ["main", "dev"]}, "x", "dev"),
        ({"glob": "*.example.com"}, "a.example.com", "example.org"),
        ({"glob": ["a*", "b*"]}, "bc", "cb"),
        ({"matches": "^rm +-r"}, "rm -rf /", "firm"),
        ({"gt": 3}, 4, 3),
        ({"gte": 3}, 3, 2.9),
        ({"lt": 3}, 2, 3),
        ({"lte": 3}, 3, 4),
        ({"gt": 1, "lt": 5}, 3, 5),
        ({"gt": 0}, "0.5", "-1"),
        ({"gt": 100}, "1e3", "99.99"),
        ({"exists": True}, "", None),
        ({"exists": False}, None, 0),
        ("src/a.py", "project:src/a.py", "garden:src/a.py"),
    ],
)
def test_a_condition_holds_for_the_one_value_and_not_for_the_other(condition: Any, yes: Any, no: Any) -> None:
    assert (holds(condition, yes), holds(condition, no)) == (True, False)


def test_a_missing_argument_satisfies_nothing_but_its_absence() -> None:
    for strict in (True, False):
        for condition in ({"not": "x"}, {"glob": "*"}, {"lt": 9}, None):
            made = Condition("y", ConditionSpec.model_validate(condition), strict)
            assert not made.holds({"x": 1}), condition
        assert Condition("y", ConditionSpec.model_validate({"exists": False}), strict).holds({})


def test_for_a_list_a_deny_looks_for_any_element_and_an_allow_needs_all() -> None:
    mixed = ["main", "dev"]
    assert holds("main", mixed, strict=True)
    assert not holds("main", mixed, strict=False)
    assert holds({"in": mixed}, mixed, strict=False)
    assert not holds({"in": mixed}, [], strict=False)


def test_a_deny_ignores_case_in_globs_and_an_allow_does_not() -> None:
    assert holds({"glob": "drop *"}, "DROP table", strict=True)
    assert not holds({"glob": "drop *"}, "DROP table", strict=False)


@pytest.mark.parametrize("condition", [{"glob": "*evil*"}, {"matches": "evil"}])
def test_a_text_too_long_to_judge_satisfies_a_deny_and_never_an_allow(condition: Any) -> None:
    padded = "x" * 5000 + "evil"
    assert holds(condition, padded, strict=True)
    assert not holds(condition, padded, strict=False)


@pytest.mark.parametrize(
    "value", ["plenty", "NaN", float("nan"), True, {"n": 1}, "9" * 5000, "1e99999999999999999999"]
)
def test_what_is_no_number_satisfies_a_deny_and_never_an_allow(value: Any) -> None:
    for condition in ({"gt": 100}, {"lte": 100}):
        assert holds(condition, value, strict=True)
        assert not holds(condition, value, strict=False)
        assert not holds(condition, None, strict=True)


def test_a_decimal_argument_is_compared_as_a_number() -> None:
    @tool("bank.pay", writes=["outside"])
    def pay(amount: Decimal) -> None:
        """Pays."""

    found = facts_from(Registry([pay]))(ExampleCall(tool="bank.pay", args={"amount": "100.01"}, persona="p"))
    assert found.args == {"amount": "100.01"}
    for decision, expected in (("deny", "rule:rule-1"), ("allow", "rule:rule-1")):
        rule = {
            "persona": "p",
            "tools": "bank.pay",
            "when": {"args": {"amount": {"gt": 100}}},
            "decision": decision,
        }
        assert policy(personas={"p": {}}, policy={"rules": [rule]}).decide(found).rule == expected


def test_lists_are_searched_at_any_depth() -> None:
    deep: Any = "rm -rf"
    for _ in range(5000):
        deep = [deep]
    for value in (["ls", ["x", ("rm -rf",)]], deep):
        assert holds({"glob": "rm*"}, value, strict=True)
    assert not holds({"glob": "rm*"}, ["ls", ["x"]], strict=True)
    assert holds({"glob": "rm*"}, [["rm a"], "rm b"], strict=False)
    assert not holds({"glob": "rm*"}, [["rm a", ["ls"]]], strict=False)
    assert not holds({"glob": "rm*"}, [[], [[]]], strict=False)


@pytest.mark.parametrize("condition", [{"glob": "*a*"}, {"matches": "a"}])
def test_more_text_than_the_budget_cannot_be_judged(condition: Any) -> None:
    assert not holds(condition, ["x" * 4000] * 16, strict=True)
    assert holds(condition, ["x" * 4000] * 17, strict=True)
    assert holds(condition, ["a" * 4000] * 16, strict=False)
    assert not holds(condition, ["a" * 4000] * 17, strict=False)
    assert not holds({"equals": "x"}, ["y" * 4000] * 100, strict=True)


def test_conditions_decide_inside_a_rule() -> None:
    rules = [
        {"tools": "git.push", "when": {"args": {"force": True}}, "decision": "deny", "reason": "no force"},
        {
            "persona": "p",
            "tools": "git.push",
            "when": {"args": {"branch": {"glob": "feature/*"}}},
            "decision": "allow",
        },
    ]
    assert one("git.push", {"branch": "feature/a"}, rules=rules).rule == "rule:rule-2"
    assert one("git.push", {"branch": "feature/a", "force": True}, rules=rules).reason == "no force"
    assert one("git.push", {"branch": "main"}, rules=rules).rule == "silence"


@pytest.mark.parametrize(
    "condition",
    [{}, [1, 2], {"in": []}, {"like": "x"}, {"matches": "("}, {"glob": ""}, {"gt": "3"}, {"exists": "yes"}],
)
def test_a_condition_that_makes_no_sense_is_refused(condition: Any) -> None:
    rules = [{"tools": "*", "when": {"args": {"x": condition}}, "decision": "deny"}]
    with pytest.raises(ConfigError, match=r"policy\.rules\.0\.when\.args\.x") as caught:
        config(policy={"rules": rules})
    assert caught.value.fix
