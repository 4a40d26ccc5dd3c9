"""Run as a program: runs one in the sandbox that changes files, and kills itself when a human is asked about that, or, with
`running`, while it runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import toolgate
from toolgate.core.ports import Question
from toolgate.ledger.keys import Keys

KEYS = Keys({1: b"k" * 32}, b"s" * 32)
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute", "allow": ["exec.python"]}},
}
PROGRAM = "import os\nos.chdir(os.environ['PROJECT'])\nopen('a.txt', 'w').write('new')\nopen('made.txt', 'w').write('made')"


class Deadly:
    name = "deadly"

    async def ask(self, question: Question) -> None:
        assert question.tool == "fs.apply"
        os.kill(os.getpid(), signal.SIGKILL)


async def main(root: str, when: str) -> None:
    async with toolgate.open(root, CONFIG, keys=KEYS, channels=[Deadly()]) as gate:
        program = PROGRAM
        if when == "running":
            program += "\nimport time\nwhile True: time.sleep(1)"
            asyncio.get_running_loop().call_later(1.5, os.kill, os.getpid(), signal.SIGKILL)
        await gate.call("exec.python", {"code": program, "project": "overlay"})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
