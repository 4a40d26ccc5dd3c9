"""A small toolset: notes in the project, and an outbox outside it.

It shows the three kinds of tools there are:

- `note.read` only reads. A typed function is enough.
- `note.write`, `note.append` and `note.delete` write files. Each is a *plan* that works out a Change without
  touching anything, and a function that applies that Change. In between the gate shows the diff, asks, and records;
  afterwards it can reconcile and undo without any help from the tool, because the Change says everything.
- `note.send` has an effect that is no file of a mount. So it brings its own `reconcile` (did it happen?) and `undo`.

A toolset is a function that is handed the services it needs and returns its tools. Nothing is global. `toolset` is
what `plugins: [./notes.py]` in toolgate.yaml loads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from toolgate.core.change import Change, FileChange
from toolgate.core.context import Context
from toolgate.core.errors import NotFound, NotText, UnknownOutcome
from toolgate.core.paths import MountPath
from toolgate.core.tool import Outcome, Tool, tool
from toolgate.gate.flow import Services
from toolgate.workspace.files import WorkspaceFiles


@dataclass(frozen=True)
class Note:
    path: str
    text: str


@dataclass(frozen=True)
class Written:
    paths: list[str]


@dataclass(frozen=True)
class Sent:
    id: str
    to: str


def toolset(services: Services) -> list[Tool]:
    assert isinstance(services.files, WorkspaceFiles)
    return notes(services.files)


def notes(files: WorkspaceFiles, outbox: Path = Path("outbox.txt")) -> list[Tool]:
    return [*_note_tools(files), _send_tool(outbox)]


def _note_tools(files: WorkspaceFiles) -> list[Tool]:
    @tool("note.read", reads=["project"])
    async def read(path: MountPath) -> Note:
        """Read a note."""
        content = await files.read(path)
        if content is None:
            raise NotFound(f"there is no note {path.shown!r}", "check the path")
        return Note(str(path), _text(path, content))

    # A plan's signature is the tool's arguments, and its docstring the tool's description. `to_change` makes
    # the plan fail at once where the write would be refused, before a human is asked.
    async def plan_write(path: MountPath, text: str) -> Change:
        """Create a note, or replace its text."""
        before = await files.read(path, to_change=True)
        return Change((FileChange(path, before, text.encode()),), f"write {path.shown}")

    async def plan_append(path: MountPath, text: str) -> Change:
        """Add a paragraph at the end of a note; a missing note is created."""
        before = await files.read(path, to_change=True)
        after = f"{text}\n" if before is None else f"{_text(path, before).rstrip()}\n\n{text}\n"
        return Change((FileChange(path, before, after.encode()),), f"append to {path.shown}")

    async def plan_delete(path: MountPath) -> Change:
        """Delete a note."""
        before = await files.read(path, to_change=True)
        if before is None:
            raise NotFound(f"there is no note {path.shown!r}", "nothing needs deleting")
        return Change((FileChange(path, before, None),), f"delete {path.shown}")

    # All three are carried out alike: the Change is the whole instruction.
    async def carry_out(change: Change) -> Written:
        await files.apply(change)
        return Written([str(file.path) for file in change.files])

    write = tool("note.write", reads=["project"], writes=["project"], plan=plan_write)
    append = tool("note.append", reads=["project"], writes=["project"], plan=plan_append)
    delete = tool("note.delete", reads=["project"], writes=["project"], plan=plan_delete, risk="medium")
    return [read, write(carry_out), append(carry_out), delete(carry_out)]


def _send_tool(outbox: Path) -> Tool:
    # The id of the call marks its line. It is known before anything happens and is unique for ever, so whoever
    # comes after a crash can tell this call's effect from every other one's.
    def line(context: Context, to: str, text: str) -> str:
        return "\t".join((context.call_id, _one_line(to), _one_line(text))) + "\n"

    async def happened(to: str, text: str, context: Context) -> Outcome:
        """Asked about a call that started and never finished. Only ever answer what can be proven."""
        lines = _lines(outbox)
        if line(context, to, text) in lines:
            return "happened"
        # A line cut short, by a full disk or a crash, may be this one: neither sent nor unsent.
        cut = any(context.call_id in other or not other.endswith("\n") for other in lines)
        return "unknown" if cut else "not"

    async def unsend(to: str, text: str, context: Context) -> None:
        """Take the line out again; `context` is that of the call being undone."""
        lines = _lines(outbox)
        mine = line(context, to, text)
        if mine not in lines:
            raise NotFound(f"message {context.call_id} is not in the outbox", "it may have been delivered")
        _replace(outbox, "".join(other for other in lines if other != mine))

    @tool("note.send", writes=["outside"], risk="medium", reconcile=happened, undo=unsend)
    async def send(to: str, text: str, context: Context) -> Sent:
        """Put a message into the outbox."""
        handle = os.open(outbox, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            message = line(context, to, text).encode()
            if os.write(handle, message) != len(message):  # one write, so lines of others never mix in
                raise UnknownOutcome(f"message {context.call_id} was cut short", "look at the outbox")
            os.fsync(handle)
        finally:
            os.close(handle)
        return Sent(context.call_id, to)

    return send


def _text(path: MountPath, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise NotText(f"{path.shown!r} is not UTF-8 text", "notes are text") from None


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _lines(outbox: Path) -> list[str]:
    """Split at `\\n` only: other separators can be part of a message."""
    try:
        text = outbox.read_bytes().decode()
    except FileNotFoundError:
        return []
    return [part + "\n" for part in text.split("\n")[:-1]] + [
        rest for rest in [text.rpartition("\n")[2]] if rest
    ]


def _replace(outbox: Path, text: str) -> None:
    draft = outbox.with_name(outbox.name + ".new")
    draft.write_text(text, encoding="utf-8", newline="")
    draft.replace(outbox)
