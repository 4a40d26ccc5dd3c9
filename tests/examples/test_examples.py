from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import pytest

from .running import EXAMPLES, output

PRINTED = {
    "quickstart.py": """\
pong
pending
the door of lab is open
verified: True
""",
    "approvals.py": f"""\
helper asks for door.open: the lock of lab will be released for ten seconds
lab → the door of lab is open
vault → Access denied by creator. {getpass.getuser()} refused door.open: not at night
lab → the door of lab is open
granted → the door of lab is open
used 1 of 2
grants left: 0
""",
    "garden.py": """\
replace_section garden:users/me/parts/work/history
a second writer: conflict
evidence: True
found in garden:users/me/parts/work/profile.md
no rule is broken; lint is clean
blocked_path garden:anchors line 12
assistant: Deadlines, since May (ev:m1). [talk of Monday]
assistant: - "too much" (ev:m1) [his words]
verified: True
""",
    "functions.py": """\
['clock_set', 'door_open']
tool call_1 it is 7 o'clock
tool call_2 {"error": {"code": "invalid_args", "message": "the arguments are not J
tool_result toolu_1 it is 8 o'clock
tool_result toolu_2 pending
tool_result toolu_3 cancelled
""",
    "programs.py": """\
42
['one.txt', 'two.txt'] pending
--- a/one.txt
+++ b/one.txt
@@ -1 +1 @@
-one
+ONE
--- a/two.txt
+++ b/two.txt
@@ -1 +1 @@
-two
+TWO
still: one
now: ONE
again: one
""",
    "fakes.py": "Access denied by creator. script refused door.open: at night\n",
    "custom_tool.py": """\
1 of 2
2 of 2
{'one two three': 3, 'four': 1}
cached: True
--- /dev/null
+++ b/todo.md
@@ -0,0 +1 @@
+- buy oil
['project:todo.md']
- buy oil
ring the bell 2 times
rang 2 times
outside_mount
""",
}
TESTED_ELSEWHERE = {
    "notes.py",  # tests/workspace/test_notes_example.py
    "refused.py",  # tests/docs/test_readme.py
    "verify_by_hand.py",  # tests/examples/test_verify_by_hand.py
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_and_prints_what_it_should(name: str, tmp_path: Path) -> None:
    assert output(name, tmp_path) == PRINTED[name]


def test_the_gardens_flows_end_in_the_same_on_postgresql(tmp_path: Path, postgres_server: Any) -> None:
    assert output("garden.py", tmp_path, postgres_server.fresh_dsn()) == PRINTED["garden.py"]


def test_an_example_runs_again_on_the_ledger_it_left(tmp_path: Path) -> None:
    assert output("quickstart.py", tmp_path) == output("quickstart.py", tmp_path)


def test_every_example_is_run_by_a_test() -> None:
    assert {file.name for file in EXAMPLES.glob("*.py")} <= set(PRINTED) | TESTED_ELSEWHERE
