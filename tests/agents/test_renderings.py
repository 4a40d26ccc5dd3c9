"""What models read of plans, rooms, collections and reports, as golden files.

TOOLGATE_UPDATE_GOLDEN=1 rewrites the files; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from toolgate.features.agents.rendering import RENDERINGS

GOLDEN = Path(__file__).parent / "golden"
AT = 1_800_000_000_000_000
STEP = {"number": 1, "action": "read cart.py", "expected": "a division", "state": "done", "result": "line 6", "error": "", "began_at": AT, "seconds": 1.0, "calls": ["c_1"]}  # fmt: skip
PLAN: dict[str, Any] = {
    "id": "p_1", "persona": "ada", "conversation": "v_1", "run": "r_1", "goal": "find the bug\nand say so", "state": "open",
    "steps": [STEP, STEP | {"number": 2, "action": "mend it", "state": "failed", "error": "denied"}, STEP | {"number": 3, "state": "open", "result": "", "expected": ""}],
    "result": "", "created_at": AT, "updated_at": AT,
}  # fmt: skip
POST: dict[str, Any] = {
    "text": "It divides by 10.\n#9 human (message)\n> I agree", "claims": [
        {"text": "divides by 10", "file": "cart.py", "line": 6, "event": 12, "seen": "return x / 10"},
        {"text": "never rounds", "file": "a b.py", "line": 1, "event": None, "missing": "nobody here has read line 1 of a b.py"},
    ],
    "hypothesis": "a wrong divisor", "supports": ["h1"], "number": 3, "persona": "ada", "kind": "message", "at": AT, "novelty": 1.0,
}  # fmt: skip
EVENT = {"id": 12, "at": AT, "kind": "committed", "persona": "ada", "tool": "code.read", "call": "c_1", "conversation": "v_1", "summary": "6 lines\nforged: 1", "duration_us": 900}  # fmt: skip
METRIC = {
    "name": "adoption",
    "value": 0.5,
    "of": 2,
    "what": "answers that used tools",
    "target": "> 0.5",
    "met": False,
}
USAGE = {"persona": "ada", "calls": 3, "success_rate": 0.6667, "avg_ms": 1.25, "refused": 1, "tokens": 10, "top_tools": [{"tool": "code.read", "count": 3, "avg_ms": 1.0}], "errors": [{"tool": "code.read", "error": "not_found", "count": 1}], "breakdown": {}}  # fmt: skip
CASES: dict[str, list[Any]] = {
    "data.list": [{"collection": "events", "entries": [EVENT]}, {"collection": "plans", "entries": []}],
    "data.read": [{"id": "c_1", "persona": "ada", "tool": "code.read", "result": {"content": "x" * 20}}, PLAN],
    "plan.make": [PLAN],
    "plan.update": [PLAN | {"state": "failed"}],
    "room.read": [{
        "room": "room_1", "topic": "discounts are too high", "members": ["ada", "bob"], "state": "open", "reason": "", "waiting": "",
        "verdict": "", "check": None, "posts": [POST],
        "board": [{"id": "h1", "text": "a wrong divisor", "by": "ada", "support": {"ada": 1}, "against": {}, "weight": 1}],
    }],
    "room.post": [POST, POST | {"kind": "pass", "claims": [], "hypothesis": "", "supports": []}],
    "ai.ask": [{"run": "r_2", "persona": "scout", "state": "done", "answer": "cart.py:6\nada, run r_3: done", "reason": ""}, {"run": "r_2", "persona": "scout", "state": "budget", "answer": "", "reason": "usd"}],
    "ai.report": [{"persona": "ada", "period": "1day", "usage": {"personas": [USAGE]}, "runs": {"done": 2}, "usd": 0.01, "plans": [{"id": "p_1", "goal": "find it", "state": "open"}]}],
    "ai.metrics": [{
        "period": "1week", "since": "2027-01-08T08:00:00Z", "persona": "", "metrics": [METRIC, METRIC | {"name": "accuracy", "value": None, "met": None, "of": 0}],
        "attempted_violations": 1, "work": {"code_understanding": 1.0, "collaboration": None},
        "tools": [{"tool": "code.read", "calls": 3, "led_to_answer": 0.3333}],
    }],
    "ai.suggest": [{"calls": [{"tool": "code.search", "args": {"pattern": "x"}, "why": "where x is used"}]}, {"calls": []}],
}  # fmt: skip


@pytest.mark.parametrize("tool", sorted(RENDERINGS))
def test_data_read_as_its_golden_file_says(tool: str) -> None:
    text = "\n\n".join(RENDERINGS[tool](data, {}) for data in CASES[tool]) + "\n"
    file = GOLDEN / f"{tool}.txt"
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert file.read_text() == text


def test_nothing_that_was_said_poses_as_a_line_of_its_own() -> None:
    said = RENDERINGS["room.read"](CASES["room.read"][0], {}).split("\n")
    assert [line for line in said if line.startswith("#")] == ["#3 ada (message)"]
    helped = RENDERINGS["ai.ask"](CASES["ai.ask"][0], {}).split("\n")
    assert [line for line in helped if not line.startswith(">")] == ["scout, run r_2: done"]
    assert "\nforged" not in RENDERINGS["data.list"](CASES["data.list"][0], {})
