"""Deno with every permission of its own opened: what is left are the walls around it."""

from __future__ import annotations

from dataclasses import replace

from toolgate.sandbox import javascript
from toolgate.sandbox.job import Broker, Job
from toolgate.sandbox.program import ProgramCommand

_CLOSING = ("--allow-", "--deny-", "--ignore-", "--no-remote", "--no-npm", "--cached-only")


def program(job: Job, networked: bool, broker: Broker | None) -> ProgramCommand:
    made = javascript.program(job, networked, broker)
    return replace(made, argv=tuple(argv(list(made.argv))))


def argv(closed: list[str]) -> list[str]:
    kept = [word for word in closed if not word.startswith(_CLOSING)]
    return [
        *kept[:-1],
        "--allow-all",
        "--unstable-net",
        "--unstable-vsock",
        "--unstable-worker-options",
        kept[-1],
    ]
