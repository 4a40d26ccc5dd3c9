"""Commands of the files: `undo` shows what taking calls back would do, asks, and does it as one; `artifacts` lists the
files that calls changed, as the ledger has them. And drawings of `fs.*`: what files say, their names, what became of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.errors import Code
from toolgate.core.paths import MountPath
from toolgate.core.rendering import counted
from toolgate.core.result import Problem, Result
from toolgate.kits.terminal import failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.drawing import (
    DrawnLine,
    draw_patch,
    file_name,
    found,
    listed_file,
    numbered,
    paint,
)
from toolgate.kits.terminal.prompt import Keyboard, carry
from toolgate.kits.terminal.results import show as show_result

_MANY = {"file": "files", "directory": "directories"}


@command(epilog="Example: toolgate undo 42 45   ·   toolgate undo --since 10m --dry-run")
def undo(
    events: Annotated[
        list[str] | None,
        Argument(metavar="EVENT", help="Events or calls: see `toolgate ledger tail`."),
    ] = None,
    conversation: Annotated[
        str, Option("--conversation", help="All that was done in this conversation.")
    ] = "",
    since: Annotated[
        str, Option("--since", help="All since then: 10m, 2h, an ISO 8601 time, or an event.")
    ] = "",
    yes: Annotated[bool, Option("--yes", "-y", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what it would do.")] = False,
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Take back what calls did, newest first, all or nothing. Shows what it would do, and asks.

    Nothing is touched if a file is no longer as the calls left it. The undo is recorded and can be undone itself.

    Exit codes: 0 done, or shown with --dry-run; 1 it cannot be undone; 2 the command was wrong; 3 not confirmed.
    """
    project.run(_undo(events or [], conversation, since, yes, dry_run, reason, root))


async def _undo(
    given: Sequence[str],
    conversation: str,
    since: str,
    yes: bool,
    dry_run: bool,
    reason: str,
    root: Path | None,
) -> int:
    project.trusted(root)
    async with project.gate(root) as gate:
        events = [await options.whole_id(gate.events, event, "c") for event in given]
        if since[:2] == "c_":
            since = await options.whole_id(gate.events, since, "c")
        planned = await gate.undo(*events, conversation=conversation, since=since, preview=True)
    if planned.error is not None:
        return show_result(planned)
    if not speech.mode.json:
        for line in page(planned.data):
            speech.put(line)
    if dry_run:
        return _only_shown(planned)
    if not yes and not await _confirmed(planned):
        return failures.REFUSED
    chosen = planned.data["events"]
    done = await carry(lambda gate, wait: gate.undo(*chosen, reason=reason, wait=wait), root)
    if speech.mode.json or done.error is not None:
        return show_result(done)
    for text in told(done):
        speech.say(text)
    return failures.OK


def _only_shown(planned: Result) -> int:
    if speech.mode.json:
        speech.write_json(planned.as_dict())
    else:
        speech.note("nothing was touched: this was a dry run", "")
    return failures.OK


async def _confirmed(planned: Result) -> bool:
    """Only a person at a terminal can say yes; anybody else needs --yes."""
    if speech.mode.json or not _somebody_there():
        why = Problem(Code.PENDING, "nothing was undone: nobody confirmed it", "add --yes to undo this")
        if speech.mode.json:
            speech.write_json(Result(False, planned.tool, planned.data, why, planned.meta).as_dict())
        else:
            failures.tell(why.code.value, why.message, why.fix)
        return False
    keyboard = Keyboard()
    keyboard.forget()
    sys.stderr.write("undo this? [y/N] > ")
    sys.stderr.flush()
    if (await keyboard.line()).strip().lower() in ("y", "yes"):
        return True
    speech.note("nothing was touched", "")
    return False


def _somebody_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def page(data: Mapping[str, Any]) -> Iterator[Any]:
    """What would be undone, the difference it makes, and what is left out."""
    calls = data["calls"]
    plural = f"{len(calls)} calls, newest first" if len(calls) > 1 else "this call"
    yield speech.safe(f"would undo {plural}", "bold")
    rows = [
        [one["event_id"], one["at"][:19], one["persona"], one["tool"], _named(one["files"])] for one in calls
    ]
    yield speech.table(["  event|right", "time|whole", "persona|whole", "tool|whole", "files|cut"], rows)
    if data["diff"]:
        yield ""
        yield speech.safe("which would do", "bold")
        yield ""
        from toolgate.kits.terminal.question import preview  # as a question draws it

        yield preview(data["diff"], is_diff=True)
    elif any(one["files"] for one in calls):
        yield speech.safe("which changes no file: they are as they were before", "dim")
    yield ""
    for title, left in (("left alone", data["skipped"]), ("cannot be undone", data["cannot"])):
        for one in left:
            yield speech.safe(f"{title}: ", "yellow") + speech.safe(
                f"event {one['event_id']} ({one['tool']} by {one['persona']}), {one['why']}"
            )


def _named(files: Sequence[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def told(done: Result) -> Iterator[str]:
    """Undone: 2 files restored, 1 file removed (call c_…, event 57). Redo with: toolgate undo 57"""
    data, meta = done.data, done.meta
    counts = Counter(
        (file["kind"], "removed" if file["op"] == "delete" else "restored") for file in data["files"]
    )
    parts = [
        f"{counted(number, kind, _MANY[kind])} {word}"
        for (kind, word), number in sorted(counts.items(), reverse=True)
    ]
    what = ", ".join(parts) or f"{counted(len(data['events']), 'call')} taken back"
    yield f"Undone: {what} (call {meta.call_id}, event {meta.event_id})."
    yield from data.get("notes", ())
    if data["redo"]:
        yield f"Redo with: toolgate undo {' '.join(map(str, data['redo']))}"


MOST_ARTIFACTS = 1000
ARTIFACT_COLUMNS = ["file", "what", "before", "after", "size|right", "now", "events"]


@command(epilog="Example: toolgate artifacts --conversation refactoring-7")
def artifacts(
    conversation: Annotated[str, Option("--conversation", help="Only of this conversation.")] = "",
    limit: Annotated[int, Option("-n", "--limit", help="How many files.", min=1, max=MOST_ARTIFACTS)] = 200,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List the files that calls changed, last changed first: hashes before and after, size, events.

    The list comes from the ledger. `now` says whether a file still has that content.
    """
    project.run(_artifacts(conversation, limit, root))


async def _artifacts(conversation: str, limit: int, root: Path | None) -> None:
    async with project.gate(root) as gate:
        listed = await gate.artifacts(conversation, limit)
    if speech.finish(listed):
        return
    if not listed["artifacts"]:
        where = f" in the conversation {conversation}" if conversation else ""
        speech.say(f"no call has changed a file{where}")
        return
    rows = [_artifact_row(one) for one in listed["artifacts"]]
    if sys.stdout.isatty():
        for row in rows:
            speech.put(_artifact_lines(row))
    else:
        speech.put(speech.table(ARTIFACT_COLUMNS, rows))
    if listed["more"]:
        speech.note("there are more; see --limit", "")


def _artifact_row(one: Mapping[str, Any]) -> list[str]:
    size = "" if one["size"] is None or one["kind"] == "directory" else f"{one['size']:,}"
    name = MountPath.parse(one["path"]).shown + ("/" if one["kind"] == "directory" else "")
    origin = next((step["origin"] for step in reversed(one["changes"]) if "origin" in step), "")
    what = f"renamed from {MountPath.parse(origin).shown}" if origin and one["op"] == "create" else one["op"]
    events = ", ".join(_artifact_event(step) for step in one["changes"])
    return [name, what, _short_hash(one["before"]), _short_hash(one["after"]), size, one["now"], events]


def _artifact_lines(row: list[str]) -> speech.StyledText:
    """The name by itself: beside it nothing would have room at a terminal."""
    name, what, before, after, size, now, events = row
    hashes = f"{before or '-'} → {after or '-'}"
    told = [what, hashes, f"{size} bytes" if size else "", now, f"event{'s' * (',' in events)} {events}"]
    return speech.safe(name, "bold").append("\n  ") + speech.safe("  ".join(filter(None, told)), "dim")


def _artifact_event(step: Mapping[str, Any]) -> str:
    return f"{step['event_id']}" + (f" (undone by {step['undone_by']})" if "undone_by" in step else "")


def _short_hash(digest: str | None) -> str:
    return "" if digest is None else digest.removeprefix("sha256:")[:12]


# What a call of `fs.*` gave, as it is drawn.

_LISTS = ("findings", "deleted")


def draw_contents(data: Any, person: bool) -> Iterator[DrawnLine]:
    parts = data["range_slices"] if "content" not in data else [{"start": 1, "content": data["content"]}]
    for index, part in enumerate(parts):
        if index:
            yield paint("--", "dim")
        said = part["content"]
        drawn = list(numbered(_lines(said, person), part["start"], person))
        if drawn and not person and index == len(parts) - 1 and not said.endswith("\n"):
            drawn[-1].end = ""  # as the file has it
        yield from drawn


def _lines(text: str, person: bool) -> list[str]:
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    return [line.removesuffix("\r") for line in lines] if person else lines


def draw_entries(data: Any, person: bool) -> Iterator[DrawnLine]:
    details = data.get("details") or [{}] * len(data["entries"])
    for name, detail in zip(data["entries"], details, strict=True):
        if not detail:
            yield file_name(name, person)
        elif person:
            yield listed_file(name, detail["size"], detail["modified"] or "", person)
        else:
            yield _detailed(name, detail)


def draw_found(data: Any, person: bool) -> Iterator[DrawnLine]:
    for name in data["files"]:
        yield file_name(name, person)


def _detailed(name: str, detail: Any) -> DrawnLine:
    """For a program: parted by tabs, the name last, as it may hold anything."""
    size = "-" if detail["size"] is None else detail["size"]
    return paint("\t".join((detail["kind"], str(size), detail["modified"] or "-", name)))


def draw_changed(data: Any, person: bool) -> Iterator[DrawnLine]:
    """One change: its facts, then what is a list."""
    facts = [(name, value) for name, value in data.items() if name not in _LISTS and value is not None]
    facts += [("deleted", name) for name in sorted(data.get("deleted", ()))]
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        yield paint(f"{name:<{width}}  ", "bold").append(shown)
    yield from found(data)


CHANGES = ("fs.write", "fs.append", "fs.edit", "fs.save", "fs.ensure_dir", "fs.move", "fs.delete")
DRAWINGS = {
    "fs.read": draw_contents,
    "fs.list": draw_entries,
    "fs.find": draw_found,
    "fs.patch": draw_patch,
    **dict.fromkeys(CHANGES, draw_changed),
}
