"""A real terminal for the tests: a tmux of its own, and what is on its screen and in its scrollback."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

from faces.cli.driving import COMMAND, environment

PATIENCE = 60.0


class Tmux:
    """One server with one pane, which lives as long as the block. Where there is no tmux the test fails, and says how to get it."""

    def __init__(self, socket: Path, rows: int = 24, columns: int = 100) -> None:
        assert shutil.which("tmux"), "the terminal tests need tmux: tests/e2e/get-programs.sh installs it"
        self._socket = socket
        self._size = ("-x", str(columns), "-y", str(rows))

    def __enter__(self) -> Tmux:
        self._do("new-session", "-d", *self._size, "sleep 600")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do("kill-server")

    def start(self, cwd: Path, *words: str) -> None:
        """The command in a pane that is empty again."""
        kept = {
            name: value for name, value in environment().items() if name.startswith(("TOOLGATE", "PYTHON"))
        }
        spelled = shlex.join(
            ["env", "NO_COLOR=1", *(f"{name}={value}" for name, value in kept.items()), *COMMAND, *words]
        )
        # the trap: Ctrl-C is for the whole group, and the shell has to outlive it
        self._do(
            "respawn-pane",
            "-k",
            "-c",
            str(cwd),
            f"trap : INT; {spelled}; code=$?; echo; echo ended with $code; sleep 600",
        )
        self._do("clear-history")

    def type(self, *keys: str) -> None:
        self._do("send-keys", *keys)

    def told(self, variable: str) -> str:
        return self._do("display-message", "-p", f"#{{{variable}}}").strip()

    def seen(self) -> str:
        """Everything, from the first line that scrolled away to the last on the screen."""
        return self._do("capture-pane", "-p", "-J", "-S", "-", "-E", "-").rstrip()

    def until(self, text: str) -> str:
        end = time.monotonic() + PATIENCE
        while text not in (seen := f"{self.seen()} "):
            assert time.monotonic() < end, seen
            time.sleep(0.05)
        return seen

    def ended(self) -> int:
        """With which code; the shell around it says so."""
        found = re.search(r"^ended with (\d+) *$", self.until("\nended with "), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words], capture_output=True, text=True, timeout=30, env=environment(LC_ALL="C.UTF-8"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout
