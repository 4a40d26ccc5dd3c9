"""`toolgate artifacts`: the files that calls changed, as the ledger has them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from toolgate.core.paths import MountPath
from toolgate.faces.cli import options, project, speech
from toolgate.features.files.artifacts import MOST_LISTED

app = options.family()
COLUMNS = ["file", "what", "before", "after", "size|right", "now", "events"]


@app.command(epilog="Example: toolgate artifacts --conversation refactoring-7")
def artifacts(
    conversation: Annotated[str, typer.Option("--conversation", help="Only of this conversation.")] = "",
    limit: Annotated[
        int, typer.Option("-n", "--limit", help="How many files.", min=1, max=MOST_LISTED)
    ] = 200,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List the files that calls changed, last changed first: hashes before and after, size, events.

    The list comes from the ledger. `now` says whether a file still has that content.
    """
    project.run(_artifacts(conversation, limit, root))


async def _artifacts(conversation: str, limit: int, root: Path | None) -> None:
    async with project.gate(root) as gate:
        found = await gate.artifacts(conversation, limit)
    if speech.finish(found):
        return
    if not found["artifacts"]:
        where = f" in the conversation {conversation}" if conversation else ""
        speech.say(f"no call has changed a file{where}")
        return
    rows = [_row(one) for one in found["artifacts"]]
    if sys.stdout.isatty():
        speech.out().print(Text("\n").join(map(_lines, rows)))
    else:
        speech.out().print(speech.table(COLUMNS, rows))
    if found["more"]:
        speech.note("there are more; see --limit", "")


def _row(one: Mapping[str, Any]) -> list[str]:
    size = "" if one["size"] is None or one["kind"] == "directory" else f"{one['size']:,}"
    name = MountPath.parse(one["path"]).shown + ("/" if one["kind"] == "directory" else "")
    origin = next((step["origin"] for step in reversed(one["changes"]) if "origin" in step), "")
    what = f"renamed from {MountPath.parse(origin).shown}" if origin and one["op"] == "create" else one["op"]
    events = ", ".join(_event(step) for step in one["changes"])
    return [name, what, _short(one["before"]), _short(one["after"]), size, one["now"], events]


def _lines(row: list[str]) -> Text:
    """The name by itself: beside it nothing would have room at a terminal."""
    name, what, before, after, size, now, events = row
    hashes = f"{before or '-'} → {after or '-'}"
    told = [what, hashes, f"{size} bytes" if size else "", now, f"event{'s' * (',' in events)} {events}"]
    return speech.safe(name, "bold").append("\n  ") + speech.safe("  ".join(filter(None, told)), "dim")


def _event(step: Mapping[str, Any]) -> str:
    return f"{step['event_id']}" + (f" (undone by {step['undone_by']})" if "undone_by" in step else "")


def _short(digest: str | None) -> str:
    return "" if digest is None else digest.removeprefix("sha256:")[:12]
