"""What `toolgate call exec.python` prints: the program's own words first, then what came of it."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest

from toolgate.kits.terminal import results, speech

RAN: dict[str, Any] = {
    "stdout": "one\ntwo\n", "stderr": "oh \x1b[31m\n", "exit_code": 3, "limit": None, "output": 1, "outputs": [1],
    "files": [{"name": "x.csv", "path": "scratch:exec/c_1/x.csv", "size": 3, "hash": "sha256:00"}],
    "requests": [
        {"method": "GET", "url": "https://a.example/", "allowed": True, "status": 200, "reason": ""},
        {"method": "GET", "url": "https://b.example/", "allowed": False, "status": 0, "reason": "not granted"},
    ],
    "proposal": {
        "execution": "x_1", "files": [{"path": "a"}], "diff": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2", "state": "pending",
        "event_id": None, "error": {"code": "pending", "message": "a human must approve", "fix": "call fs.apply"},
    },
    "warnings": ["line 1: it prints a secret"], "duration_ms": 12.4, "memory": 3 << 20, "job_id": None,
}  # fmt: skip
PLAIN = """\
one
two
oh ⟨U+001B⟩[31m
output: 1
left: scratch:exec/c_1/x.csv (3 bytes)
asked: GET https://a.example/ → 200
asked: GET https://b.example/ → refused: not granted
warning: line 1: it prints a secret
proposal pending: 1 change
--- a/a
+++ b/a
@@ -1 +1 @@
-1
+2
pending: a human must approve
fix: call fs.apply
exit: 3
"""


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "mode", speech.Mode())


def test_a_pipe_gets_what_the_program_printed_and_plain_lines_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    assert results.draw("exec.python", RAN)
    assert pipe.getvalue() == PLAIN


def test_a_person_sees_how_it_ended_and_no_escape_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert results.draw("exec.shell", RAN | {"limit": "memory"})
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert "exit 3 · limit: memory · 12 ms · 3 MiB" in shown
    assert "oh ⟨U+001B⟩[31m" in shown


@pytest.mark.parametrize("screen", [Screen, io.StringIO])
def test_what_was_handed_to_a_job_says_which(
    monkeypatch: pytest.MonkeyPatch, screen: type[io.StringIO]
) -> None:
    handed = {name: [] for name in ("outputs", "files", "requests", "warnings")} | {
        "stdout": "", "stderr": "", "exit_code": None, "limit": None, "output": None, "proposal": None,
        "duration_ms": 0.0, "memory": 0, "job_id": "j_1",
    }  # fmt: skip
    out = screen()
    monkeypatch.setattr(sys, "stdout", out)
    assert results.draw("exec.python", handed)
    assert "j_1" in out.getvalue()
    assert "toolgate jobs show" in out.getvalue()
    assert "ended" not in out.getvalue()


def test_what_was_applied_can_be_taken_back_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    applied = RAN["proposal"] | {"state": "applied", "event_id": 7, "error": None}
    assert results.draw("exec.python", RAN | {"proposal": applied})
    assert "proposal applied: 1 change" in pipe.getvalue()
    assert "\ntoolgate undo 7 takes it back\n" in pipe.getvalue()
