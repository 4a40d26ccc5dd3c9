"""`toolgate ledger`: the commands; `ledger_pages.py` has how rows look, `proof.py` how they are proven."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from toolgate.core.errors import InvalidArgs
from toolgate.core.wire import in_ascii
from toolgate.faces.cli import ledger_pages
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.storage.port import Filter

app = CommandGroup("Read, verify and export the ledger.")


@app.command(epilog="Example: toolgate ledger tail -n 50 --persona builder --kind denied --follow")
def tail(
    count: Annotated[int, Option("-n", "--lines", help="How many.", min=1, max=100_000)] = 20,
    follow: Annotated[bool, Option("--follow", "-f", help="Go on as events are recorded.")] = False,
    persona: options.Persona = "",
    tool: Annotated[str, Option("--tool", help="Only this tool.")] = "",
    kind: Annotated[list[str] | None, Option("--kind", help="Only these kinds. Repeatable.")] = None,
    conversation: Annotated[str, Option("--conversation", help="Only this conversation.")] = "",
    since: Annotated[str, Option("--since", help="Only from then on: 10m, 2h, or an ISO 8601 time.")] = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show the newest events, oldest first. With --json and --follow: one event a line."""
    wanted = Filter(
        persona=persona, tool=tool, kinds=tuple(kind or ()), conversation=conversation, since=options.moment(since),
        newest_first=True, limit=count,
    )  # fmt: skip
    run = project.run if follow else project.control
    run(ledger_pages.tail(wanted, follow, root))


@app.command(epilog="Example: toolgate ledger show 42")
def show(
    ident: Annotated[
        str, Argument(metavar="EVENT_OR_CALL", help="An event's number, a call's or a question's id.")
    ],
    whole: Annotated[
        bool, Option("--whole", help="Also what is kept beside the journal of long events.")
    ] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show the life of a call: every row, decision, who approved, hashes, links."""
    project.control(ledger_pages.show(ident, root, whole))


@app.command(epilog="Example: toolgate ledger verify --checkpoint kept-elsewhere.json")
def verify(
    checkpoint: Annotated[
        list[Path] | None, Option("--checkpoint", help="A checkpoint kept elsewhere.")
    ] = None,
    public_key: Annotated[
        str, Option("--public-key", help="Who must have signed the checkpoints (hex).")
    ] = "",
    export: Annotated[
        Path | None, Option("--export", help="Verify this export instead; needs no key.")
    ] = None,
    archive: Annotated[
        list[Path] | None,
        Option("--archive", help="An archive that comes before; oldest first. Repeatable."),
    ] = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Check every event, every seal and every projection. Exit 1 naming the first bad event."""
    from toolgate.faces.cli import proof

    files = checkpoint or []
    project.run(
        proof.verify_file(export, files, public_key, archive or [])
        if export
        else proof.verify(files, public_key, archive or [], root)
    )


@app.command(epilog="Example: toolgate ledger archive ~/backup/shop --keep 90")
def archive(
    directory: Annotated[Path, Argument(metavar="DIR", help="Where the file goes.", path="directory")],
    keep: Annotated[int, Option("--keep", help="Days whose events stay in the ledger.", min=3)] = 30,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Move old events into a signed file and let the ledger go on after them. What is still needed stays."""
    project.run(_archive(directory, keep, root))


async def _archive(directory: Path, keep: int, root: Path | None) -> None:
    async with project.gate(root) as gate:
        made = await gate.archive(directory, keep)
    data = made._asdict() | {"file": str(made.file), "checkpoint": str(made.checkpoint)}
    if not speech.finish(data):
        speech.say(f"events {made.first} to {made.last} are in {made.file}; event {made.event} says so")
        speech.note(
            f"keep it, and {made.checkpoint.name}: `ledger verify --archive {made.file}` proves the whole",
            "dim",
        )


@app.command(epilog="Example: toolgate ledger export > ledger.jsonl")
def export(root: options.Root = None) -> None:
    """Write all events as JSON lines to stdout."""
    project.run(_export(root))


async def _export(root: Path | None) -> None:
    async with project.record(root) as record:
        async for line in record.export():
            sys.stdout.write(in_ascii(line) + "\n")


@app.command(epilog="Example: toolgate ledger checkpoint --out ~/backup/shop.checkpoint.json")
def checkpoint(
    out: Annotated[Path | None, Option("--out", help="Write it to this file.", path="file")] = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Sign where the ledger ends. Keep it elsewhere: it shows a cut or restored ledger for what it is."""
    from toolgate.faces.cli import proof

    project.run(proof.checkpoint(out, root))


@app.command(epilog="Example: toolgate ledger resolve 42 happened --reason 'the mail arrived'")
def resolve(
    ident: Annotated[str, Argument(metavar="CALL_OR_EVENT", help="The unknown call.")],
    outcome: Annotated[str, Argument(metavar="happened|not", help="What you found out.")],
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Say how an unknown call ended."""
    if outcome not in ("happened", "not"):
        raise InvalidArgs(f"{outcome!r} is not an outcome", "say `happened` or `not`")
    project.run(_resolve(ident, "happened" if outcome == "happened" else "not", reason, root))


async def _resolve(ident: str, outcome: Literal["happened", "not"], reason: str, root: Path | None) -> None:
    async with project.gate(root) as gate:
        ident = await options.whole_id(gate.events, ident, "c")
        event = await gate.resolve(ident, outcome, reason=reason)
    if not speech.finish({"id": ident, "outcome": outcome, "event_id": event}):
        speech.say(
            f"recorded as event {event}: {ident} {'happened' if outcome == 'happened' else 'did not happen'}"
        )


@app.command(epilog="Example: toolgate ledger rotate-key")
def rotate_key(root: options.Root = None, json: options.Json = False) -> None:
    """Seal what follows with a new key. Older events stay verifiable with the old one, which is kept."""
    project.run(_rotate(root))


async def _rotate(root: Path | None) -> None:
    async with project.gate(root) as gate:
        version, event = await gate.rotate_key()
    if not speech.finish({"key_version": version, "event_id": event}):
        speech.say(f"events from {event} on are sealed with key version {version}")
