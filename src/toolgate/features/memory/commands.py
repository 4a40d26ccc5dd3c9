"""`toolgate memory`: what is remembered, for the person at the terminal. Reading is direct; every change is a call through
the gate, recorded and undoable."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.core.errors import InvalidArgs
from toolgate.core.names import HUMAN
from toolgate.kits.terminal import failures, options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.kits.terminal.progress import Ticker
from toolgate.kits.terminal.results import show as show_result

if TYPE_CHECKING:
    from toolgate.facade import Gate
    from toolgate.features.memory.memory import Memory

app = CommandGroup("What is remembered, and why.")
User = Annotated[str, Option("--user", "-u", help="Whose memory; default: the default persona's user.")]
Many = Annotated[list[str] | None, Option("--tag", "-t", help="A tag; several times for several.")]
Ids = Annotated[list[str], Argument(metavar="ID", help="Memories: `m_…`.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do it without asking.")]
Hidden = Annotated[bool, Option("--all", "-a", help="With what is superseded or expired.")]
Count = Annotated[int, Option("-n", "--lines", help="How many.", min=1, max=1000)]
_STYLES = {"current": "green", "superseded": "dim", "stale": "yellow", "disputed": "bold yellow"}
_SHOWN = 10
_BATCH = 1000
_LINES, _BYTES = 500, 2 << 20
"""What one call of an import brings."""


@app.without_command(epilog="Example: toolgate memory recall 'where does Alice live'")
def memory(user: User = "", count: Count = 20, root: options.Root = None, json: options.Json = False) -> None:
    """What is remembered: without a subcommand, the newest."""
    project.run(_list(user, count, False, False, root))


@app.command(
    epilog="Example: toolgate memory store 'Alice moved to Lisbon' --subject home --supersedes m_0192…"
)
def store(
    content: Annotated[str, Argument(metavar="TEXT", help="What to remember; - reads stdin.")],
    category: Annotated[str, Option("--category", "-c", help="fact, preference, work, …")] = "fact",
    tag: Many = None,
    chat: Annotated[str, Option("--chat", help="The conversation that it is from.")] = "",
    subject: Annotated[str, Option("--subject", help="What it is about: employer, home.")] = "",
    supersedes: Annotated[list[str] | None, Option("--supersedes", help="A memory that it replaces.")] = None,
    contradicts: Annotated[
        list[str] | None, Option("--contradicts", help="One that it disagrees with.")
    ] = None,
    evidence: Annotated[list[str] | None, Option("--evidence", help="file:PATH, a URL, an event.")] = None,
    valid_to: Annotated[str, Option("--valid-to", help="Until when it holds: an ISO time.")] = "",
    persona: options.Persona = "",
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Remember something. As a human, unless a persona is named: then for its user, by its rules."""
    args = {
        "content": sys.stdin.read() if content == "-" else content, "category": category, "tags": tag or [],
        "chat_id": chat, "subject": subject, "supersedes": supersedes or [], "contradicts": contradicts or [],
        "evidence": evidence or [], "valid_to": valid_to,
    }  # fmt: skip
    project.run(_call("memory.store", args, persona, reason, root))


@app.command(epilog="Example: toolgate memory recall 'which train did we take' -n 5")
def recall(
    query: Annotated[str, Argument(metavar="QUERY", help="What to look for, in words.")],
    user: User = "",
    count: Count = 10,
    everything: Hidden = False,
    period: Annotated[str, Option("--period", help="2025-12, 2025-W50, 2025-Q4, …")] = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Find what is remembered, best first, with why it was found and whether it still holds."""
    project.run(_recall(query, user, count, everything, period, root))


@app.command("list", epilog="Example: toolgate memory list --forgotten")
def list_(
    user: User = "",
    count: Count = 50,
    everything: Hidden = False,
    forgotten: Annotated[bool, Option("--forgotten", help="Those that were forgotten.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """What is remembered, the newest first."""
    project.run(_list(user, count, everything, forgotten, root))


@app.command(epilog="Example: toolgate memory show m_0192f3a1")
def show(
    ident: Annotated[str, Argument(metavar="ID", help="The memory: `m_…`.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """All of one memory: text, verdict, who stored it by which call and why, and the versions before."""
    project.run(_show(ident, root))


@app.command(epilog="Example: toolgate memory forget m_0192f3a1 --reason 'never true'")
def forget(
    ids: Ids,
    persona: options.Persona = "",
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Forget memories. `toolgate undo` brings them back, until they are purged."""
    project.run(_call("memory.forget", {"memory_ids": ids}, persona, reason, root))


@app.command(epilog="Example: toolgate memory purge m_0192f3a1")
def purge(
    ids: Ids, yes: Yes = False, reason: options.Reason = "", root: options.Root = None, json: options.Json = False
) -> None:  # fmt: skip
    """Remove the texts of forgotten memories for good, and of the summaries made of them. It cannot be undone."""
    project.run(_purge(ids, yes, reason, root))


@app.command(epilog="Example: toolgate memory audit --apply duplicate --apply junk")
def audit(
    apply: Annotated[list[str] | None, Option("--apply", help="Forget what this kind proposes.")] = None,
    unused_days: Annotated[int, Option("--unused-days", help="Never recalled for so long.", min=1)] = 180,
    user: User = "",
    yes: Yes = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """What could go, and why: junk, duplicates, near duplicates, echoes, contradictions, expired, never recalled.

    It proposes. With --apply it forgets what it proposed, by calls through the gate that `toolgate undo` takes back.
    """
    project.run(_audit(apply or [], unused_days, user, yes, root))


@app.command(epilog="Example: toolgate memory export memories.jsonl")
def export(
    file: Annotated[Path | None, Argument(metavar="FILE", help="Where to; default: the terminal.")] = None,
    user: User = "",
    everything: Annotated[bool, Option("--all", "-a", help="Also what was forgotten.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Write what is remembered as JSON lines, which `toolgate memory import` reads."""
    project.run(_export(file, user, everything, root))


@app.command("import", epilog="Example: toolgate memory import ~/basic-memory --user alice")
def import_(
    source: Annotated[Path, Argument(metavar="PATH", help="JSON lines, a mem0 export, or a basic-memory folder.", path="anything")],
    user: User = "",
    trust: Annotated[str, Option("--trust", help="Of what other programs wrote: low, medium or high.")] = "low",
    root: options.Root = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Take in memories from elsewhere. What is there already stays as it is."""
    project.run(_import(source, user, trust, root))


@app.command(epilog="Example: toolgate memory rollup --persona assistant")
def rollup(persona: options.Persona = "", root: options.Root = None, json: options.Json = False) -> None:
    """Sum up conversations, days, weeks, months, quarters and years that are over."""
    project.run(_call("memory.rollup", {}, persona, "", root))


@app.command(epilog="Example: toolgate memory reembed")
def reembed(root: options.Root = None, json: options.Json = False) -> None:
    """Make the vectors that the present embedding model lacks. It can be interrupted; search goes on meanwhile."""
    project.run(_reembed(root))


async def _reembed(root: Path | None) -> None:
    async with project.gate(root) as gate:
        index = await _memory(gate).index()
        with Ticker() as ticker:
            made = await index.reembed(lambda done, of: ticker(done / max(of, 1), "making vectors"))
        told = await index.status()
    if not speech.finish({"made": made, **told}):
        speech.say(
            f"{made:,} vectors were made"
            if told.get("model")
            else "there is no embedding model: `toolgate models status`"
        )


async def _call(tool: str, args: dict[str, Any], persona: str, reason: str, root: Path | None) -> int:
    async with project.gate(root) as gate:
        done = await gate.call(tool, args, persona=persona or HUMAN, reason=reason, wait=False)
    if done.ok and not speech.mode.json:
        for line in _done(tool, done.data, done.meta.event_id):
            speech.say(line)
        return failures.OK
    return show_result(done)


def _done(tool: str, data: dict[str, Any], event: int | None) -> Iterator[str]:
    ids = [str(one["id"]) for one in data.get("memories", ())]
    words = {"store": "remembered", "forget": "forgot", "purge": "purged", "rollup": "wrote"}
    shown = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    yield f"{words[tool.removeprefix('memory.')]} {shown or 'nothing'}"
    yield from (f"{count} {method}" for method, count in data.get("methods", {}).items())
    if "budget" in data:
        from toolgate.features.memory.spending import spent

        yield spent(data["budget"])
    if data.get("note"):
        yield (
            f"{data['note']}: {', '.join(data['same_subject'])}"
            if "same_subject" in data
            else str(data["note"])
        )
    if ids and tool != "memory.purge" and not str(data.get("note", "")).startswith("an equal"):
        yield f"toolgate undo {event} takes it back"


def scope_of(gate: Gate, user: str) -> str:
    """A human reads anybody's."""
    return f"user:{user}" if user else _memory(gate).scope_of(HUMAN)


def _memory(gate: Gate) -> Memory:
    found: Memory = gate.feature("memory")
    return found


async def _recall(
    query: str, user: str, count: int, everything: bool, period: str, root: Path | None
) -> None:
    from toolgate.features.memory import answers
    from toolgate.features.memory.reader import RecallQuery

    async with project.gate(root) as gate:
        wanted = RecallQuery(query=query, limit=count, hidden=everything, period=period)
        found = await _memory(gate).recall(wanted, scope_of(gate, user))
    data = answers.found(found)
    if speech.finish(data):
        return
    _table(data["memories"], "nothing is remembered about that")
    for line in (*data.get("warnings", ()), data.get("left_out", ""), data.get("degraded", "")):
        if line:
            speech.note(line, "yellow")


async def _list(user: str, count: int, everything: bool, forgotten: bool, root: Path | None) -> None:
    from toolgate.features.memory import answers
    from toolgate.features.memory.store import ItemFilter

    async with project.gate(root) as gate:
        states = ("forgotten",) if forgotten else ("kept",)
        wanted = ItemFilter(scope=scope_of(gate, user), limit=count, states=states)
        data = answers.listed(await _memory(gate).listing(wanted, hidden=everything or forgotten))
    if not speech.finish(data):
        _table(data["memories"], "nothing is remembered yet: `toolgate memory store TEXT`")


def _table(memories: Sequence[dict[str, Any]], nothing: str) -> None:
    if not memories:
        speech.say(nothing)
        return
    rows = [
        [one["id"], one["type"], speech.safe(one["verdict"], _STYLES.get(one["verdict"], "")), one["trust"],
         "" if "relevance" not in one else f"{one['relevance']:.2f}", one["content"]]
        for one in memories
    ]  # fmt: skip
    speech.put(speech.table(["memory|whole", "type", "verdict", "trust", "score|right", "content|cut"], rows))


async def _show(ident: str, root: Path | None) -> None:
    from toolgate.features.memory.tools import details

    async with project.gate(root) as gate:
        (one,) = (await details(_memory(gate), ident, ""))["memories"]
    if speech.finish(one):
        return
    content, versions = one.pop("content", "(its text was purged)"), one.pop("versions")
    provenance = one.pop("provenance")
    speech.say(speech.safe(content, lines=True))
    speech.put(
        speech.pairs(
            (name, ", ".join(value) if isinstance(value, list) else value) for name, value in one.items()
        )
    )
    rows = [[p["version"], p["op"], p["persona"], p["at"], p["call"], p["reason"]] for p in provenance]
    speech.put(speech.table(["version|right", "what", "by", "at", "call|whole", "why|cut"], rows))
    for before in versions:
        speech.note(f"version {before['version']}: {before['content']}")


async def _purge(ids: list[str], yes: bool, reason: str, root: Path | None) -> int:
    if not yes:
        async with project.gate(root) as gate:
            made = await (await _memory(gate).records()).derived(ids)
        more = f", and of {len(made)} that were made of them ({', '.join(made[:5])})" if made else ""
        if not await _sure(f"Remove the text of {len(ids)} memories{more} for good?"):
            return failures.REFUSED
    return await _call("memory.purge", {"memory_ids": ids}, HUMAN, reason, root)


async def _sure(question: str) -> bool:
    if not sys.stdin.isatty():
        speech.note("nothing was done: say --yes, or answer at a terminal")
        return False
    speech.note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _audit(apply: list[str], unused_days: int, user: str, yes: bool, root: Path | None) -> int:
    from toolgate.features.memory import audit as rules

    if wrong := [kind for kind in apply if kind not in rules.KINDS]:
        raise InvalidArgs(f"{wrong[0]!r} is no kind of proposal", f"use: {', '.join(rules.KINDS)}")
    async with project.gate(root) as gate:
        found = await rules.audit(_memory(gate), scope_of(gate, user), rules.KINDS, unused_days)
        if not speech.mode.json:
            _proposals(found)
        versions = found.to_forget(apply)
        ids = list(versions)
        events: list[int | None] = []
        if ids and not yes and not await _sure(f"Forget {len(ids)} memories?"):
            return failures.REFUSED
        for start in range(0, len(ids), _BATCH):
            some = ids[start : start + _BATCH]
            args = {"memory_ids": some, "expected_versions": [versions[one] for one in some]}
            done = await gate.call(
                "memory.forget", args, persona=HUMAN, reason=f"audit: {', '.join(apply)}", wait=False
            )
            if not done.ok:
                return show_result(done)
            events.append(done.meta.event_id)
    shown = [one.shown() for one in found.proposals]
    told = {"examined": found.examined, "counts": found.counts(), "proposals": shown}
    if not speech.finish(told | {"forgotten": len(ids), "events": events}) and ids:
        speech.say(f"forgot {len(ids)}; toolgate undo {' '.join(map(str, events))} brings them back")
    return failures.OK


def _proposals(found: Any) -> None:
    speech.say(f"{found.examined:,} memories")
    if not found.proposals:
        speech.say("nothing to propose")
        return
    rows: list[list[Any]] = []
    for kind in found.counts():
        some = [one for one in found.proposals if one.kind == kind]
        rows += [[kind, len(one.forget) or "", one.why, one.sample] for one in some[:_SHOWN]]
        if rest := some[_SHOWN:]:
            rows.append(
                [kind, sum(len(one.forget) for one in rest) or "", f"{len(rest):,} more like these", ""]
            )
    speech.put(speech.table(["kind", "items|right", "why", "such as|cut"], rows))


async def _export(file: Path | None, user: str, everything: bool, root: Path | None) -> None:
    from toolgate.features.memory.transfer import exported

    count = 0
    async with project.gate(root) as gate:
        with nullcontext(sys.stdout) if file is None else file.open("w", encoding="utf-8") as out:
            async for line in exported(_memory(gate), scope_of(gate, user), everything=everything):
                out.write(line + "\n")
                count += 1
    if file is not None and not speech.finish({"file": str(file), "memories": count}):
        speech.say(f"{count:,} memories are in {file}")


async def _import(source: Path, user: str, trust: str, root: Path | None) -> int:
    from toolgate.features.memory.items import TRUST
    from toolgate.features.memory.transfer import batches, read_source

    if trust not in TRUST:
        raise InvalidArgs(f"{trust!r} is no trust", f"use: {', '.join(TRUST)}")
    parts = list(batches(read_source(source, trust), _LINES, _BYTES))
    new, old = 0, 0
    events: list[int | None] = []
    async with project.gate(root) as gate:
        whose = scope_of(gate, user).partition(":")[2]
        with Ticker() as ticker:
            for number, lines in enumerate(parts):
                ticker(number / len(parts), "importing")
                done = await gate.call(
                    "memory.import", {"lines": lines, "user": whose}, persona=HUMAN, wait=False
                )
                if not done.ok:
                    return show_result(done)
                new, old = new + done.data["imported"], old + done.data["there_already"]
                events.append(done.meta.event_id)
    if not speech.finish({"imported": new, "there_already": old, "events": events}):
        back = f"; toolgate undo {' '.join(map(str, events))} takes them back" if new else ""
        speech.say(f"{new:,} are new, {old:,} were there already{back}")
    return failures.OK
