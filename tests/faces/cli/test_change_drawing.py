"""What `toolgate call` prints of a change: lines that a person reads and a program can take apart, never raw JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from toolgate.kits.terminal import results

from .driving import Cli

AWS = "AK" + "IA" + "Q7RZ3LM5XK2WB6TJ"
"""Put together here, so that no file of the repository holds one."""
DIFF = """\
diff --git a/hours.md b/hours.md
--- a/hours.md
+++ b/hours.md
@@ -1 +1,2 @@
-9 to 17
+9 to 18
+Sundays closed
diff --git a/menu.md b/menu.md
new file mode 100644
--- /dev/null
+++ b/menu.md
@@ -0,0 +1,2 @@
+# Menu
+Soup
diff --git a/flyer.txt b/flyer.txt
deleted file mode 100644
--- a/flyer.txt
+++ /dev/null
@@ -1 +0,0 @@
-Opening soon
diff --git a/old.md b/new.md
rename from old.md
rename to new.md
"""


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def free(project: Path) -> Path:
    """A project whose builder is not asked."""
    policy = project / "toolgate.yaml"
    rule = "    - {name: free, persona: builder, tools: ['fs.*'], decision: allow, reason: it is a test}\n"
    policy.write_text(policy.read_text().replace("  rules:\n", f"  rules:\n{rule}"))
    (project / "flyer.txt").write_text("Opening soon\n")
    (project / "old.md").write_text("old\n")
    return project


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, tool: str, data: Any) -> str:
    screen = Screen()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", screen)
    assert results.draw(tool, data)
    return screen.getvalue()


def test_a_patch_is_told_file_by_file(cli: Cli, free: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (free / "patch").write_text(DIFF)
    assert cli("call", "fs.patch", "-a", "diff=@patch").out.splitlines() == [
        "modify\t2\t1\thours.md",
        "create\t2\t0\tmenu.md",
        "delete\t0\t1\tflyer.txt",
        "rename\t0\t0\told.md => new.md",
    ]
    event = cli("ledger", "tail", "--json").data[-1]["seq"]
    assert cli("undo", str(event), "--yes").code == 0
    data = cli("call", "fs.patch", "-a", "diff=@patch", "--json").data
    assert at_a_terminal(monkeypatch, "fs.patch", data).splitlines() == [
        "modify  +2 -1  hours.md",
        "create  +2 -0  menu.md",
        "delete  +0 -1  flyer.txt",
        "rename  +0 -0  old.md => new.md",
        "4 files: +4/-2, 3 hunks",
    ]


def test_what_a_program_changed_is_told_without_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    file = {
        "path": "project:a\x1b.md",
        "op": "create",
        "before_hash": None,
        "after_hash": "sha256:0",
        "size": 3,
    }
    shown = at_a_terminal(monkeypatch, "fs.apply", {"execution": "x_1", "files": [file]})
    assert shown.splitlines() == ["create  - -  a⟨U+001B⟩.md", "1 file"]


def test_a_directory_is_deleted_with_a_line_for_each_file(cli: Cli, free: Path) -> None:
    (free / "many").mkdir()
    names = [f"many/{number:02}.txt" for number in range(12)]
    for name in names:
        (free / name).write_text("x\n")
    out = cli("call", "fs.delete", "-a", "path=many").out
    assert out.splitlines() == ["path     many", "count    12", *(f"deleted  {name}" for name in names)]


def test_what_was_found_is_said_in_words(cli: Cli, free: Path) -> None:
    args = json.dumps({"path": "keys.md", "content": f"key = {AWS}\n"})
    opened = cli("call", "fs.write", args, "--no-wait", "--json").data["question"]
    assert cli("approvals", opened, "approve").code == 0
    out = cli("call", "fs.write", args).out
    assert "found: secret: aws-access-key at keys.md:1:7: " in out
    assert "{" not in out


def test_a_refused_change_prints_no_facts_as_if_it_had_happened(cli: Cli, project: Path) -> None:
    refused = cli("call", "fs.write", "-a", "path=.env", "-a", "content=x")
    asked = cli("call", "fs.write", "-a", "path=a.md", "-a", f"content=key = {AWS}", "--no-wait")
    assert (refused.code, refused.out) == (3, "")
    assert (asked.code, asked.out) == (3, "")
    assert "found: secret: aws-access-key at a.md:1:7: " in asked.err
