"""The question for a patch of three files, exactly as the terminal shows it and as the documentation prints it."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

import toolgate
from toolgate.core.ports import Question
from toolgate.kits.terminal.question import print_page

from .driving import Terminal

GOLDEN = Path(__file__).with_name("golden") / "patch_question.txt"
PAGE = Path(__file__).parents[3] / "docs" / "tools-patch.md"
MENU = "[a]pprove once  [r]efuse  [g]rant  [l]ater > "
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
\\ No newline at end of file
"""


def test_the_question_for_three_files_is_the_documented_one(
    terminal: Callable[..., Terminal], project: Path
) -> None:
    (project / "flyer.txt").write_text("Opening soon")
    screen = terminal("call", "fs.patch", json.dumps({"diff": DIFF}), "--reason", "summer hours")
    shown = without_moments(screen.expect(MENU))
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        PAGE.write_text(PAGE.read_text().replace(GOLDEN.read_text(), shown))
        GOLDEN.write_text(shown)
    assert shown == GOLDEN.read_text()
    assert shown in PAGE.read_text()
    assert "can be undone  yes" in re.sub(" {3,}", "  ", shown)
    screen.type("a")
    code, rest = screen.end()
    assert code == 0, rest
    assert (project / "hours.md").read_text() == "9 to 18\nSundays closed\n"
    assert (project / "menu.md").read_text() == "# Menu\nSoup\n"
    assert not (project / "flyer.txt").exists()


def without_moments(shown: str) -> str:
    """The same on every day: times and ids as the documentation writes them, no blanks at line ends."""
    shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-01-01T00:15:00Z", shown.replace("\r\n", "\n"))
    shown = re.sub(r"\(in [^)]*\)", "(in 15 min)", shown)
    shown = re.sub(r"\bq_\w+", "q_19b7720ce90abc", shown)
    return "\n".join(line.rstrip() for line in shown.split("\n")) + "\n"


async def test_an_argument_is_folded_only_where_the_change_shows_all_of_it(tmp_path: Path) -> None:
    asking = {"version": 1, "default_persona": "ada", "personas": {"ada": {"phase": "contribute"}}}
    async with toolgate.open(tmp_path, asking, "memory") as gate:
        (tmp_path / "binary").write_bytes(b"\0")
        for path in ("new", "binary"):
            await gate.call("fs.write", {"path": path, "content": "plain\n" * 40}, wait=False)
        plain, binary = await gate.approvals()
        assert (plain.repeats, binary.repeats) == (("content",), ())
        assert plain.args["content"] == "plain\n" * 40  # what is approved is bound to all of it
        shown = drawn(plain)
        assert '"content": (240 characters, shown below)' in shown
        assert shown.count("plain") == 40
        assert '"content": "plain' in drawn(binary)


def drawn(question: Question) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_page(console, question)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
