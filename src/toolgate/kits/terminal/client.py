"""What goes into an MCP client's file, so that its calls pass the gate: the program that runs now, this project, one persona."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

NAME = "toolgate"


def command() -> list[str]:
    """By its whole path: a client does not have this shell's search path. Without one, by the interpreter."""
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == NAME and os.access(program, os.X_OK):
        return [program]
    # without -P, a `toolgate.py` that an agent leaves in the project would be run in our place
    return [os.path.abspath(sys.executable), "-P", "-m", NAME]


def snippet(root: Path, persona: str) -> dict[str, Any]:
    first, *rest = command()
    named = ["--persona", persona] if persona else []
    args = [*rest, "mcp", "--root", str(root), *named]
    return {"mcpServers": {NAME: {"command": first, "args": args}}}


def told(root: Path, persona: str) -> str:
    """The file of a client, and the command of those that have one for it."""
    made = snippet(root, persona)
    entry = made["mcpServers"][NAME]
    line = shlex.join([entry["command"], *entry["args"]])
    return f"{json.dumps(made, indent=2, ensure_ascii=False)}\n(or: claude mcp add {NAME} -- {line})"
