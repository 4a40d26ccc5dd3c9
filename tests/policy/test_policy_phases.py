from __future__ import annotations

import pytest
from policy_world import REGISTRY, TOOLS, facts, one

from toolgate.core.effects import READS, WRITES, Effects
from toolgate.core.tool import Tool
from toolgate.policy.phases import PHASES, READS_ROW, TABLE, WRITES_ROW, cell, rows_of

CELLS = {
    ("code.read", "allow allow allow allow"),
    ("web.search", "allow allow allow allow"),
    ("events.log", "allow allow allow allow"),
    ("memory.store", "allow allow allow allow"),
    ("system.ping", "allow allow allow allow"),
    ("exec.python", "deny allow allow allow"),
    ("http.get", "deny ask ask ask"),
    ("db.query", "deny ask ask ask"),
    ("ai.ask", "deny ask ask ask"),
    ("secrets.use", "deny ask ask ask"),
    ("fs.save", "deny deny allow allow"),
    ("fs.write", "deny deny ask ask"),
    ("code.create_test", "deny deny ask ask"),
    ("git.commit", "deny deny deny ask"),
    ("git.push", "deny deny deny ask"),
    ("github.list_issues", "ask ask ask ask"),
    ("github.create_issue", "deny ask ask ask"),
    ("robot.arm", "deny ask ask ask"),
    ("system.screenshot", "deny allow allow allow"),
}


@pytest.mark.parametrize(("name", "expected"), sorted(CELLS))
def test_each_kind_of_tool_has_the_cells_of_its_row_in_every_phase(name: str, expected: str) -> None:
    tool = REGISTRY.resolve(name)
    assert " ".join(cell(phase, tool, tool.effects).verdict for phase in PHASES) == expected


@pytest.mark.parametrize("opening", [{"network": True}, {"project": True}, {"secrets": ["TOKEN"]}])
def test_a_program_that_sees_the_network_the_project_or_secrets_asks(opening: dict[str, object]) -> None:
    persona = {"phase": "experiment"}
    assert one("exec.python", {}, persona=persona).verdict == "allow"
    decision = one("exec.python", opening, persona=persona)
    assert (decision.verdict, decision.rule) == ("ask", "phase:experiment/open")


def test_the_strictest_row_of_a_call_decides() -> None:
    mixed = Effects.of(["project"], ["scratch", "history"])
    tool = REGISTRY.resolve("fs.save")
    assert [row.id for row in rows_of(tool, mixed)] == ["reading", "scratch", "history"]
    assert cell("contribute", tool, mixed).row == "history"


def test_every_effect_word_has_a_row() -> None:
    assert set(READS_ROW) == set(READS)
    assert set(WRITES_ROW) == set(WRITES)
    assert {*READS_ROW.values(), *WRITES_ROW.values()} <= {row.id for row in TABLE}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_phases_are_cumulative(tool: Tool) -> None:
    found = [cell(phase, tool, facts(tool.name, _args(tool)).effects).verdict.strictness for phase in PHASES]
    assert found == sorted(found, reverse=True)


def _args(tool: Tool) -> dict[str, object]:
    needed = {
        "path": "a",
        "paths": ["a"],
        "source": "a",
        "target": "b",
        "pattern": "x",
        "url": "u",
        "sql": "s",
        "branch": "b",
    }
    return {name: value for name, value in needed.items() if name in tool.args.model_fields}


@pytest.mark.parametrize(
    ("spelling", "row"),
    [("2A", "observe"), ("2a", "observe"), ("2B", "experiment"), (3, "contribute"), ("4", "collaborate")],
)
def test_both_spellings_of_a_phase_are_accepted(spelling: object, row: str) -> None:
    assert one("code.read", {"path": "a"}, persona={"phase": spelling}).rule == f"phase:{row}/reading"
