"""A sample project with one call that waits: the first approval, for somebody who has just arrived."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.kits.terminal import project, speech
from toolgate.project import config, trust
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.core.result import Result
    from toolgate.facade import Gate

SETTINGS = """\
version: 1
default_persona: builder
personas:
  reviewer: {phase: observe}
  builder: {phase: contribute}
policy:
  rules:
    - {name: people-decide, persona: builder, tools: ["fs.*"], effects: {writes: [project]}, decision: ask,
       reason: every change of the shop is put to a human}
models:
  demo: {kind: scripted, script: says.yaml}   # says what the file has; no model is asked
"""
SAYS = """\
- {text: I look it up., calls: [{tool: code.read, args: {path: hours.md}}]}
- {text: "hours.md has the opening hours.", expect: hours}
"""
HOURS = "# Opening hours\n\n- Monday to Friday: 9 to 17\n"


@dataclass(frozen=True)
class Guide:
    root: Path
    state: Path

    async def waits(self, gate: Gate) -> None:
        """One call that asks, made in builder's name, and what became of it."""
        speech.say("\nA call is waiting for you: builder wants to add a line to hours.md.", "bold")
        speech.say("  in the browser   open the console's address, read the change, approve or refuse it")
        speech.say(f"  in a terminal    {self._command('approvals')}")
        speech.say(
            f"An agent, scripted so that no model is asked: {self._command('run', 'when are we open?')}"
        )
        sys.stdout.flush()
        line = {"path": "hours.md", "text": f"- Saturday: 10 to {14 + await self._answered(gate) % 8}\n"}
        result = await gate.call("fs.append", line, persona="builder", reason="customers ask for Saturdays")
        self._tell(result)
        sys.stdout.flush()

    async def _answered(self, gate: Gate) -> int:
        """The next call differs from those that were answered, and is the same as one that still waits."""
        return len(await gate.events(Filter(tool="fs.append", kinds=("committed", "refused"))))

    def _tell(self, result: Result) -> None:
        if result.error is None:
            event = str(result.meta.event_id)
            speech.say(f"\nYou approved it and it ran: event {event}, exactly the change you saw.", "green")
            speech.say(f"  take it back     {self._command('undo', event)}")
            speech.say(f"  see its life     {self._command('ledger', 'show', event)}")
            speech.say(f"  prove it         {self._command('ledger', 'verify')}")
        else:
            speech.say(f"\nIt did not run ({result.error.code.value}): {result.error.message}", "yellow")

    def _command(self, *words: str) -> str:
        program = sys.argv[0] if Path(sys.argv[0]).name == "toolgate" else "toolgate"
        shown = [
            f"TOOLGATE_STATE_DIR={self.state}",
            _nearby(program),
            *words,
            "--root",
            _nearby(str(self.root)),
        ]
        return " ".join(map(shlex.quote, shown))


def _nearby(path: str) -> str:
    """As somebody would type it here."""
    with suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def prepare(directory: Path) -> Guide:
    """Everything is below this directory, keys and tokens too; what is there already is kept."""
    directory = directory.resolve()
    guide = Guide(directory / "shop", directory / "state")
    guide.root.mkdir(parents=True, exist_ok=True)
    for name, text in ((config.FILE, SETTINGS), ("hours.md", HOURS), ("says.yaml", SAYS)):
        with suppress(FileExistsError), (guide.root / name).open("x") as file:
            file.write(text)
    os.environ["TOOLGATE_STATE_DIR"] = str(guide.state)
    trust.trust(guide.root, config.state_dir())
    project.make_key(guide.root)
    return guide
