"""A program in the sandbox, and what it would change in the project: asked about, applied, taken back."""

import asyncio
from pathlib import Path

import toolgate

CONFIG = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["exec.python"]}},
}
SHOUT = """\
from pathlib import Path
names = sorted(Path("/project").glob("*.txt"))
for name in names:
    name.write_text(name.read_text().upper())
output([name.name for name in names])
"""


def one() -> str:
    return Path("one.txt").read_text()


async def main() -> None:
    async with toolgate.open(".", CONFIG) as gate:
        closed = await gate.call("exec.python", {"code": "print(6 * 7)"})
        print(closed.data["stdout"], end="")

        ran = await gate.call("exec.python", {"code": SHOUT, "project": "overlay"}, wait=False)
        proposal = ran.data["proposal"]
        print(ran.data["output"], proposal["state"])
        print(proposal["diff"])
        print("still:", one(), end="")

        await gate.answer(proposal["question"], "approve")
        applied = await gate.call("fs.apply", {"execution": proposal["execution"]})
        print("now:", one(), end="")
        await gate.undo(applied.meta.event_id or 0)
        print("again:", one(), end="")


for name in ("one", "two"):
    Path(f"{name}.txt").write_text(f"{name}\n")
asyncio.run(main())
