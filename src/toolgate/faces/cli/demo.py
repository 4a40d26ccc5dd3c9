"""`toolgate demo`: the tour. It runs the real thing in a temporary directory and leaves nothing behind.

STEPS is its table of contents; each step is one function that talks and does. One of them is an agent with a scripted model: it
looks into a bug of the sample shop, is refused one call, asks about another. Everything but the model is real: its calls pass
the gate, and what it changed is taken back by its event.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from toolgate import app
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.core.display import visible
from toolgate.core.ports import Question
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.cli import demo_tools, ledger_pages
from toolgate.features.agents.runs import Runs
from toolgate.features.agents.view import RunView
from toolgate.kits.terminal import project, speech
from toolgate.kits.terminal import question as questions
from toolgate.kits.terminal.command import Option, command
from toolgate.ledger.chain import row_hash
from toolgate.policy.simulation import render_explanation
from toolgate.project import config, trust
from toolgate.storage.port import Filter, Row
from toolgate.storage.schema import JOURNAL

PAUSE = 1.0
POLICY = """\
version: 1
personas:
  reader:  {phase: observe}       # may look
  builder: {phase: contribute}    # may propose changes; a human decides
policy:
  rules:
    - name: public-text-is-reviewed
      persona: builder
      tools: [notes.append]
      decision: ask
      reason: customers see this text
    - name: nothing-is-deleted
      persona: "*"
      tools: [fs.delete]
      decision: deny
      reason: an old file may still be needed
"""
NOTE = "# Opening hours\n\nMonday to Friday, 9 to 17.\nClosed on public holidays.\n"
LINE = {"path": "hours.md", "text": "From May on: 8 to 18."}
PRICES = '''\
def total(prices, percent=0):
    """What a customer pays, after a discount."""
    subtotal = sum(prices)
    return subtotal - subtotal * percent / 10
'''
FILES = {"prices.py": PRICES, "prices_old.py": "# nobody uses this any more\n"}
QUESTION = "A discount of 10 percent makes everything free. Why?"
WRONG, RIGHT = "percent / 10\n", "percent / 100\n"
SCRIPT: list[Any] = [
    {"text": "I look for the discount.", "calls": [{"tool": "code.search", "args": {"pattern": "percent"}}]},
    {
        "text": "I read that file.",
        "calls": [{"tool": "code.read", "args": {"path": "prices.py"}}],
        "expect": "prices.py",
    },
    {
        "text": "Line 4 divides by 10. The old file only confuses, I delete it.",
        "calls": [{"tool": "fs.delete", "args": {"path": "prices_old.py"}}],
        "expect": "percent / 10",
    },
    {
        "text": "Then it stays. I repair the line.",
        "calls": [
            {"tool": "fs.edit", "args": {"path": "prices.py", "find": WRONG, "replace": RIGHT}},
        ],
        "expect": "Access denied by creator.",
    },
    {
        "text": "prices.py:4 divided a percentage by 10. It divides by 100 now; nothing else was touched.",
        "expect": "edited",
    },
]


@command(epilog="Example: toolgate demo --fast")
def demo(
    fast: Annotated[bool, Option("--fast", help="Do not pause between the steps.")] = False,
    no_color: Annotated[bool, Option("--no-color", help="Plain text.")] = False,
) -> None:
    """A tour: calls allowed, denied and asked about, a proven ledger, a scripted agent, an undo, a forgery."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, no_color=no_color or None)
    pause = 0.0 if fast or not console.is_terminal else PAUSE
    with playground() as root:
        project.run(tour(console, root, pause))


@contextmanager
def playground() -> Iterator[Path]:
    """A project and a state directory of its own; the user's are not touched."""
    before = os.environ.get("TOOLGATE_STATE_DIR")
    with tempfile.TemporaryDirectory(prefix="toolgate-demo-") as place:
        root = Path(place) / "shop"
        root.mkdir()
        os.environ["TOOLGATE_STATE_DIR"] = str(Path(place) / "state")
        try:
            yield root
        finally:
            if before is None:
                del os.environ["TOOLGATE_STATE_DIR"]
            else:
                os.environ["TOOLGATE_STATE_DIR"] = before


@dataclass
class Stage:
    console: Console
    root: Path
    pause: float
    number: int = 0

    async def step(self, title: str, text: str) -> None:
        if self.number and self.pause:
            await asyncio.sleep(self.pause)
        self.number += 1
        self.console.print()
        self.console.print(Rule(Text(f"{self.number}  {title}", "bold"), align="left", style="cyan"))
        if text:
            self.say(text)

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def show(self, item: RenderableType) -> None:
        self.console.print(Padding(item, (1, 0, 1, 2), expand=False))

    def command(self, tool: str, args: dict[str, Any], *more: str) -> None:
        named = [f"--arg {name}={_quoted(str(value))}" for name, value in args.items()]
        self.console.print()
        lines = [" ".join(["$ toolgate call", tool, *more]), *(f"    {item}" for item in named)]
        self.console.print(Text(" \\\n".join(lines), "bold"))

    def outcome(self, result: Result) -> None:
        if result.error is None:
            text = speech.safe("✓ ", "green") + speech.safe(str(result.data).strip(), lines=True)
        else:
            mark = speech.safe("… ", "yellow") if result.error.code == "pending" else speech.safe("✗ ", "red")
            text = (
                mark + speech.safe(result.error.code.value, "bold") + speech.safe(f": {result.error.message}")
            )
        self.show(text)


@dataclass
class StandIn:
    """Answers in the human's place, and says so."""

    stage: Stage
    gate: Gate | None = None
    name: str = "demo"

    async def ask(self, question: Question) -> None:
        panel = Panel(questions.page(question), title="toolgate asks", border_style="yellow", box=box.ROUNDED)
        self.stage.show(panel)
        if self.stage.pause:
            await asyncio.sleep(self.stage.pause)
        self.stage.say("You would answer here. The tour approves it in your place, once.", "italic")
        assert self.gate is not None
        await self.gate.answer(question.id, "approve", by="the tour", channel=self.name)


async def tour(console: Console, root: Path, pause: float) -> None:
    (root / config.FILE).write_text(POLICY)
    for name, text in ({"hours.md": NOTE} | FILES).items():
        (root / name).write_text(text)
    trust.trust(root, config.state_dir())
    stage = Stage(console, root, pause)
    await _what_this_is(stage)
    human = StandIn(stage)
    async with app.open(root, plugins=[demo_tools.toolset], channels=[human]) as gate:
        human.gate = gate
        for step in STEPS:
            await step(stage, gate)
    await _tampered(stage)
    await _where_next(stage)


async def _what_this_is(stage: Stage) -> None:
    await stage.step(
        "What this is",
        "toolgate stands between an AI agent and everything it can touch: every tool call is decided by your "
        "policy, asked about where it matters, and recorded in a ledger that can be proven. What you are about "
        "to see is real; it runs in a temporary directory with this policy:",
    )
    stage.show(Text(POLICY.rstrip(), "dim"))


async def _allowed(stage: Stage, gate: Gate) -> None:
    await stage.step("An allowed call", "A reader may read. Nobody is asked, but it is recorded.")
    stage.command("notes.read", {"path": "hours.md"}, "--persona reader")
    stage.outcome(await gate.call("notes.read", {"path": "hours.md"}, persona="reader"))


async def _denied(stage: Stage, gate: Gate) -> None:
    await stage.step("A denied call", "The same reader may not write, and is told why.")
    stage.command("notes.append", LINE, "--persona reader")
    stage.outcome(await gate.call("notes.append", LINE, persona="reader"))
    stage.say("`toolgate policy explain` shows every line that was considered:")
    explanation = await gate.explain("notes.append", LINE, "reader")
    kept = [line for line in render_explanation(explanation).splitlines()[2:] if line]
    lines = [speech.safe(line, "dim").__rich__() for line in kept]
    for line in lines:
        line.truncate(stage.console.width - 2, overflow="ellipsis")
    stage.show(Text("\n").join(lines))


async def _asks(stage: Stage, gate: Gate) -> None:
    await stage.step(
        "A call that asks", "A builder may propose. The change is worked out first and shown as it will be."
    )
    stage.command("notes.append", LINE, "--persona builder")
    reason = "the shop opens earlier from May on"
    stage.outcome(await gate.call("notes.append", LINE, persona="builder", reason=reason))
    stage.say(
        "It ran as it was shown, at most once. The approval is used up: the same call is a new question."
    )
    stage.command("notes.append", LINE, "--persona builder", "--no-wait")
    stage.outcome(await gate.call("notes.append", LINE, persona="builder", wait=False))


async def _proven(stage: Stage, gate: Gate) -> None:
    await stage.step("The ledger", "All of it was recorded, each event sealed and linked to the one before.")
    rows = await gate.events(Filter())
    stage.show(ledger_pages.events_table(rows))
    report = await gate.verify()
    stage.say("$ toolgate ledger verify", "bold")
    stage.show(
        speech.safe("✓ ", "green")
        + speech.safe(f"{report.events} events: links, hashes, seals and tables are right")
    )


class StageView(RunView):
    """What `toolgate run` shows, as a part of the tour."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def _line(self, sign: str, text: str, style: str = "") -> None:
        self._stage.console.print(Text(f"{sign} {visible(text)}" if sign else visible(text), style))


async def _works(stage: Stage, gate: Gate) -> None:
    await stage.step(
        "An agent at work",
        "A persona gets a question and works with tools. Its model is scripted: it says what this tour has written "
        "down, and no model is asked. Its calls are real, and so is what the gate says to them.",
    )
    stage.say(f'\n$ toolgate run --persona builder \\\n    "{QUESTION}"', "bold")
    agents: Runs = gate.feature("agents")
    agents.models.given["scripted"] = ScriptedModel(SCRIPT, "scripted")
    view = StageView(stage)
    run = await agents.start(QUESTION, persona="builder", model="scripted")
    view.begun(run, scripted=True)
    run = await agents.drive(run, view, attended=True)
    stage.show(Text(visible(run.answer or run.reason), "bold"))


async def _undone(stage: Stage, gate: Gate) -> None:
    await stage.step("Taken back", "What a call changed can be undone, by the event that recorded it.")
    rows = await gate.events(Filter(tool="fs.edit", kinds=("committed",)))
    stage.say(f"\n$ toolgate undo {rows[-1].seq}", "bold")
    result = await gate.undo(rows[-1].seq)
    same = result.ok and (stage.root / "prices.py").read_text() == PRICES
    stage.show(Text("✓ prices.py is as it was, to the byte" if same else "✗ prices.py is not as it was"))
    stage.say("The undo is recorded, too, and can be undone.")


STEPS: tuple[Callable[[Stage, Gate], Awaitable[None]], ...] = (
    _allowed, _denied, _asks, _proven, _works, _undone,
)  # fmt: skip


async def _tampered(stage: Stage) -> None:
    await stage.step(
        "A forgery",
        "Somebody rewrites, in a copy of the database, who approved the change; then, cleverer, computes all "
        "hashes anew. The key is not in the project, so the seals give the forger away.",
    )
    setup = app.prepare(stage.root)
    lines = []
    for name, forge in (("edited", _edit), ("rehashed", _rehash)):
        copy = stage.root.parent / f"{name.replace(' ', '-')}.db"
        shutil.copy(stage.root / config.STATE / "ledger.db", copy)
        event = forge(copy)
        async with app.open_record(replace(setup, database=str(copy))) as record:
            report = await record.verify([])
        found = f"event {report.bad_event}: {report.fault}" if report.fault else "nothing was found"
        lines.append(
            speech.safe("✗ ", "red") + speech.safe(f"{name} at {event} ", "bold") + speech.safe(f"→ {found}")
        )
    stage.show(Text("\n").join(line.__rich__() for line in lines))


def _edit(copy: Path) -> int:
    """What a forger without the key could try: rewrite who approved. The event's number comes back."""
    with closing(sqlite3.connect(copy)) as database, database:
        return _rewrite(database)


def _rehash(copy: Path) -> int:
    """The same, with every later hash and link computed anew."""
    with closing(sqlite3.connect(copy)) as database, database:
        event = _rewrite(database)
        columns = ", ".join(JOURNAL)
        prev = ""
        for values in database.execute(
            f"SELECT {columns} FROM journal WHERE seq >= ? ORDER BY seq", (event,)
        ).fetchall():
            row = Row(*values)
            row = row._replace(prev=prev or row.prev)
            prev = row_hash(row)
            database.execute("UPDATE journal SET prev = ?, hash = ? WHERE seq = ?", (row.prev, prev, row.seq))
        database.execute("UPDATE head SET hash = ?", (prev,))
        return event


def _rewrite(database: sqlite3.Connection) -> int:
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f'DROP TRIGGER "{trigger}"')
    (event,) = database.execute("SELECT seq FROM journal WHERE kind = 'approved'").fetchone()
    database.execute(
        "UPDATE journal SET body = replace(body, 'the tour', 'somebody') WHERE seq = ?", (event,)
    )
    return int(event)


async def _where_next(stage: Stage) -> None:
    await stage.step("Where to go next", "")
    for typed, what in (
        ("toolgate init", "set up a project of your own; it asks nothing"),
        ("toolgate call system.ping", "a first call"),
        ("toolgate approvals", "answer from another terminal"),
        ("toolgate ledger verify", "prove what happened"),
        ("toolgate --help", "everything else"),
    ):
        stage.console.print(speech.safe(f"  {typed:<27}", "bold") + speech.safe(what))
    stage.console.print()


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text
