"""Agent of the tour: a scripted model looks into a bug of the sample shop, is refused one call, asks about another.

Everything but the model is real: its calls pass the gate, and what it changed is taken back by its event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from toolgate.agents.models.scripted import ScriptedModel
from toolgate.core.display import visible
from toolgate.facade import Gate
from toolgate.features.agents.runs import Runs
from toolgate.features.agents.view import RunView
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.faces.cli.demo import Stage

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


class StageView(RunView):
    """What `toolgate run` shows, as a part of the tour."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def _line(self, sign: str, text: str, style: str = "") -> None:
        self._stage.console.print(Text(f"{sign} {visible(text)}" if sign else visible(text), style))


async def works(stage: Stage, gate: Gate) -> None:
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


async def undone(stage: Stage, gate: Gate) -> None:
    await stage.step("Taken back", "What a call changed can be undone, by the event that recorded it.")
    rows = await gate.events(Filter(tool="fs.edit", kinds=("committed",)))
    stage.say(f"\n$ toolgate undo {rows[-1].seq}", "bold")
    result = await gate.undo(rows[-1].seq)
    same = result.ok and (stage.root / "prices.py").read_text() == PRICES
    stage.show(Text("✓ prices.py is as it was, to the byte" if same else "✗ prices.py is not as it was"))
    stage.say("The undo is recorded, too, and can be undone.")
