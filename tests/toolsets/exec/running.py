"""A project, a gate on it, and a human who answers as written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.result import Result
from toolgate.testing import Approve, Refuse, Script

POLICY: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {
        "builder": {"phase": "contribute"},
        "other": {"phase": "contribute"},
        "analyst": {"phase": "experiment"},
        "reader": {"phase": "observe"},
        "bare": {"phase": "contribute", "mounts": ["project"]},
    },
}
SANDBOX: dict[str, Any] = {}
"""Of every gate that says nothing else; a fixture chooses the mode here."""
VIEWING = {
    "policy": {
        "rules": [
            {
                "name": "views",
                "persona": "*",
                "tools": ["exec.python", "exec.javascript", "exec.shell"],
                "decision": "allow",
            }
        ]
    }
}
"""Programs need no question; what they changed does."""


@asynccontextmanager
async def opened(
    root: Path, *answers: Approve | Refuse, policy: Mapping[str, Any] = POLICY, human: bool = True
) -> AsyncIterator[tuple[toolgate.Gate, Script]]:
    script = Script(*answers)
    channels = [script] if human else []
    async with toolgate.open(root, {"sandbox": SANDBOX, **policy}, "memory", channels=channels) as gate:
        script.gate = gate
        yield gate, script
    script.check()


def tree(root: Path) -> dict[str, str]:
    """Every file of the project but toolgate's own, with what it says."""
    return {
        str(file.relative_to(root)): file.read_text("latin-1")
        for file in sorted(root.rglob("*"))
        if file.is_file() and not file.is_symlink() and ".toolgate" not in file.parts
    }


def good(result: Result) -> dict[str, Any]:
    assert result.ok, result.error
    assert isinstance(result.data, dict)
    return result.data


def code(result: Result) -> str:
    assert result.error is not None, result.data
    return str(result.error.code.value)
