"""explain, test and replay, as people read them: compared with golden pages.

TOOLGATE_UPDATE_GOLDEN=1 rewrites the pages; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from policy_world import facts, facts_for, policy

from toolgate.core.decision import Verdict
from toolgate.core.paths import MountPath
from toolgate.policy.policy import Policy
from toolgate.policy.simulation import (
    RecordedCall,
    render_examples,
    render_explanation,
    render_replay,
    replay,
    run_examples,
)
from toolgate.project.config import Config, loads

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"


@pytest.fixture(scope="module")
def config() -> Config:
    return loads((HERE / "realistic.yaml").read_text(), "realistic.yaml")


@pytest.fixture(scope="module")
def team(config: Config) -> Policy:
    return config.policy(trusted=True)


def same_as_golden(page: str, name: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        file.write_text(page)
    assert page == file.read_text()


EXPLAINED: dict[str, tuple[str, dict[str, Any], str]] = {
    "explain-source": ("fs.write", {"path": "src/app.py"}, "builder"),
    "explain-subagent": ("git.push", {"branch": "main", "remote": "fork"}, "release"),
    "explain-blocked": ("code.read", {"path": "ci/.ENV"}, "maintainer"),
    "explain-silence": ("web.search", {}, "support"),
    "explain-stranger": ("code.read", {"path": "a"}, "nobody"),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_an_explanation_shows_every_line_and_the_one_that_decided(team: Policy, name: str) -> None:
    tool, args, persona = EXPLAINED[name]
    same_as_golden(render_explanation(team.explain(facts(tool, args, persona))), name)


def test_the_examples_beside_the_rules_hold(team: Policy) -> None:
    outcomes = run_examples(team, facts_for)
    assert [outcome.where for outcome in outcomes if not outcome.passed] == []
    assert len(outcomes) > 30
    same_as_golden(render_examples(outcomes), "examples")


def test_a_failing_example_says_what_decided_instead() -> None:
    made = policy(
        personas={"p": {"phase": "observe"}},
        policy={
            "rules": [
                {
                    "persona": "p",
                    "tools": "fs.read",
                    "decision": "ask",
                    "examples": [
                        {"call": {"tool": "fs.read", "args": {"path": "a"}}, "expect": "allow"},
                        {"call": {"tool": "fs.raed"}, "expect": "deny"},
                        {"call": {"tool": "fs.read", "args": {"path": "../x"}}, "expect": "deny"},
                    ],
                }
            ]
        },
    )
    outcomes = run_examples(made, facts_for)
    assert [outcome.passed for outcome in outcomes] == [False, False, False]
    same_as_golden(render_examples(outcomes), "examples-failing")


def recorded(
    seq: int, tool: str, args: dict[str, Any], verdict: str, rule: str, persona: str = "builder"
) -> RecordedCall:
    return RecordedCall(
        seq, 1_750_000_000_000_000 + seq * 1_000_000, persona, tool, args, Verdict(verdict), rule
    )


LAST_WEEK = [
    recorded(1, "code.read", {"path": "project:src/app.py"}, "allow", "phase:contribute/reading"),
    recorded(2, "fs.write", {"path": "project:tests/a.py", "content": ""}, "ask", "phase:contribute/project"),
    recorded(
        3, "fs.write", {"path": "project:deploy/a.yaml", "content": ""}, "ask", "phase:contribute/project"
    ),
    recorded(4, "exec.python", {"code": "1", "network": True}, "ask", "phase:contribute/open"),
    recorded(5, "old.tool", {}, "allow", "allow:builder"),
    recorded(6, "fs.write", {"path": "project:src/a.py"}, "ask", "rule:rule-1"),
    recorded(7, "code.read", {"path": "project:a"}, "allow", "phase:observe/reading", persona="gone"),
    recorded(8, "code.read", {"no": "path"}, "allow", "phase:observe/reading"),
]


def test_a_replay_tells_what_the_policy_would_have_decided(team: Policy) -> None:
    result = replay(iter(LAST_WEEK), team, facts_for)
    assert result.totals == {"same": 2, "stricter": 2, "looser": 2, "unknown": 2}
    same_as_golden(render_replay(result), "replay")


def test_replaying_a_policys_own_decisions_changes_nothing(team: Policy) -> None:
    calls = []
    for seq, outcome in enumerate(run_examples(team, facts_for)):
        assert outcome.explanation is not None
        said = outcome.explanation.decision
        calls.append(
            RecordedCall(
                seq, 0, outcome.call.persona, outcome.call.tool, outcome.call.args, said.verdict, said.rule
            )
        )
    result = replay(calls, team, facts_for)
    assert result.differences == ()
    assert result.totals["same"] == len(calls) > 0


def test_the_realistic_policy_is_realistic(config: Config) -> None:
    assert len(config.policy_spec.rules) == 30
    used = {
        path for rule in config.policy_spec.rules for path in (rule.when.path if rule.when else None) or ()
    }
    assert len(used) > 10


def test_what_a_page_shows_of_a_call_cannot_disturb_a_terminal(team: Policy) -> None:
    page = render_explanation(team.explain(facts("ai.ask", {"text": "\x1b[2J\u202e" + "x" * 500}, "builder")))
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\\u001b[2J\\u202e" in page
    assert "x" * 200 not in page


def test_a_hostile_path_is_shown_escaped_in_reasons(team: Policy) -> None:
    call = facts("code.read", {"path": "a"}, "maintainer", paths=(MountPath("project:.env\u202egpj"),))
    assert "\u202e" not in render_explanation(team.explain(call))
