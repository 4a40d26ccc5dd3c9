"""What every face says in the same words: a length of time, who answered, what a grant covers, which files a Change
touches; and what programs get of events and grants."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND, iso

if TYPE_CHECKING:
    from toolgate.core.decision import Question
    from toolgate.core.effects import Effects
    from toolgate.ledger.state import Grant
    from toolgate.storage.port import Row

LONGEST = 120
"""Characters of a path in a sentence."""
_UNSAID = frozenset({"timeout", "timeout_ms"})
_PATHS = frozenset({"path", "paths", "source", "target"})
_ANY = {
    "code": "any code", "script": "any script", "argv": "any command", "network": "any hosts", "secrets": "any secrets",
    "project": "any view of the project", "files": "any files beside it", "stdin": "any input", "packages": "any packages",
    "background": "also in the background",
}  # fmt: skip
"""What an argument without a limit may be, the weightiest first."""
_DEEDS = {"delete": "delete", "rename": "rename", "modify": "change", "create": "create"}
"""What is lost comes first: it must not be among those that are not named."""


def span(micros: int) -> str:
    """A length of time, roughly: 14 min, 3 h."""
    seconds = max(0, micros) / SECOND
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def ago(at: float) -> str:
    """How long ago a moment is, given in seconds of the clock; empty for none."""
    return f"{span(round((time.time() - at) * SECOND))} ago" if at else ""


def by_whom(by: str, channel: str) -> str:
    """Who answered, and where. In an MCP client its name stands behind theirs; if that is the channel's, it is said once."""
    who = f"by {by}"
    return who if who.endswith(f" in {channel}") else f"{who} in {channel}"


def cut_in_words(cut: Any) -> str:
    """What a row leaves out of its long fields, and where that is."""
    try:
        fields = ", ".join(f"{name} ({size:,} bytes)" for name, size in cut["fields"].items())
        kept = f"all of it is kept until {iso(cut['until'])}" if "until" in cut else "the rest is not kept"
        whole = f"the whole had {cut['bytes']:,} bytes, {cut['sha256']}; {kept}"
        if list(cut["fields"]) == ["shown"]:
            return f"a human is shown more than is recorded; {whole}"
        return f"only the beginning of {fields} is here; {whole}"
    except (KeyError, TypeError, AttributeError):
        return json.dumps(cut, ensure_ascii=False, default=str)


def body_of(row: Row) -> dict[str, Any]:
    """A damaged row is shown as it is: whoever looks at it wants to see the damage."""
    try:
        body = json.loads(row.body)
    except (ValueError, TypeError):
        body = None
    return body if isinstance(body, dict) else {"damaged": row.body}


def event_as_data(row: Row) -> dict[str, Any]:
    """The columns, with the body opened and the time in ISO 8601."""
    return row._asdict() | {"at": iso(row.at), "body": body_of(row)}


def grant_as_data(grant: Grant) -> dict[str, Any]:
    row, body = grant.row, grant.body
    return {
        "id": grant.id, "persona": row.persona, "tool": row.tool, "by": body["by"],
        "channel": body["channel"], "args": body.get("args", {}), "paths": body.get("paths", []),
        "conversation": body.get("only_conversation", ""), "uses": grant.uses,
        "max_uses": body.get("max_uses", 0), "expires_at": iso(grant.expires), "event_id": row.seq,
        "words": grant_in_words(row.persona, row.tool, body, grant.expires),
    }  # fmt: skip


def grant_in_words(persona: str, tool: str, body: Mapping[str, Any], expires: int) -> str:
    """What a grant covers; `body` has the fields of a `granted` event."""
    limits = []
    if body.get("paths"):
        limits.append("on paths that match " + " or ".join(body["paths"]))
    if body.get("args"):
        limits.append(
            "where " + ", ".join(f"{name} {condition_in_words(spec)}" for name, spec in body["args"].items())
        )
    if free := _free(body):
        limits.append(free)
    if reach := _reach(body):
        limits.append(reach)
    if body.get("only_conversation"):
        limits.append(f"in the conversation {body['only_conversation']}")
    if body.get("max_uses"):
        limits.append(f"at most {body['max_uses']} times")
    return f"{persona} may call {tool} without being asked, {', '.join(limits)}, until {iso(expires)}"


def _reach(body: Mapping[str, Any]) -> str:
    """What it keeps of the call that it was given for, whatever the arguments are."""
    effects = body.get("effects") or {}
    if not effects.get("keeps"):
        return ""
    words = [str(word) for word in effects.get("reach", ())]
    words = [word for word in words if "method any" not in words or not word.startswith("method ")]
    return f"reaching at most {', '.join(words)}" if words else "reaching no network, secrets or project"


def _free(body: Mapping[str, Any]) -> str:
    """What the grant says nothing about, and so lets be anything: whatever else limits it, this must be said."""
    kept = (body.get("effects") or {}).get("keeps", ())
    limited = {*body.get("args", ()), *_UNSAID, *kept, *(_PATHS if body.get("paths") else ())}
    free = [name for name in body.get("takes", ()) if name not in limited]
    if not free and body.get("takes"):
        return ""
    said = "with any other arguments" if body.get("paths") or body.get("args") else "with any arguments"
    first = [name for name in _ANY if name in free]
    words = [_ANY.get(name, f"any {name}") for name in (*first, *(name for name in free if name not in _ANY))]
    return said + (f" ({', '.join(words)})" if words else "")


def condition_in_words(spec: Any) -> str:
    """A condition of a rule or a grant, as the end of a sentence that its argument begins."""
    if not isinstance(spec, Mapping):
        spec = {"equals": spec}
    return " and ".join(_one_condition(kind, value) for kind, value in spec.items())


def _one_condition(kind: str, value: Any) -> str:
    several = value if isinstance(value, list | tuple) else [value]
    spelled = [json.dumps(each, ensure_ascii=False, default=str) for each in several]
    if kind == "exists":
        return "is given" if value else "is left out"
    if kind == "sha256":
        return "is exactly the one with the SHA-256 " + " or ".join(str(each)[:16] + "…" for each in several)
    said = {
        "equals": "is",
        "in": "has at most",
        "host": "reaches at most",
        "glob": "matches",
        "not": "is not",
    }
    if kind == "begins":
        return f"begins with {' '.join(spelled)}"
    return f"{said.get(kind, kind)} {' or '.join(spelled)}"


def change_in_words(preview: str, most: int = 5) -> str:
    """Which files, such as `change "a.md", "b.md"; create "c.md"`; empty for what is no diff.

    The names are quoted, so that one with a comma in it cannot pose as two.
    """
    from toolgate.kits import diffs

    files = diffs.parse(preview) if preview else []
    named: dict[str, list[str]] = {}
    for op in _DEEDS:
        for file in files:
            if file.op == op and sum(map(len, named.values())) < most:
                path = _quoted(file.path + ("/" if file.kind == "directory" else ""))
                named.setdefault(_DEEDS[op], []).append(
                    f"{_quoted(file.old_path)} to {path}" if file.old_path else path
                )
    told = "; ".join(f"{deed} {', '.join(paths)}" for deed, paths in named.items())
    return told + (f" and {len(files) - most} more" if len(files) > most else "")


def moves_of(preview: str) -> list[tuple[str, str]]:
    """From where to where files would be moved, as the diff says."""
    from toolgate.kits import diffs

    if "rename from " not in preview:
        return []
    return [(file.old_path, file.path) for file in diffs.parse(preview) if file.old_path]


def moves_in_words(preview: str, most: int = 5) -> str:
    moves = moves_of(preview)
    told = ", ".join(f"{_quoted(old)} -> {_quoted(new)}" for old, new in moves[:most])
    return told + (f" and {len(moves) - most} more" if len(moves) > most else "")


PROGRAMS = ("argv", "script", "code", "sql")
"""Arguments that are what would run."""


def program_in_words(args: Mapping[str, Any], most: int = 80) -> str:
    """What a program is, by its command or its first line: `run pytest -q`; empty where the call runs none, or takes
    several texts of which each may be it."""
    if sum(bool(args.get(name)) for name in PROGRAMS) > 1:
        return ""
    argv = args.get("argv")
    if isinstance(argv, list | tuple) and argv:
        return "run " + _cut(" ".join(shlex.quote(str(word)) for word in argv), most)
    text = next((args[name] for name in PROGRAMS[1:] if args.get(name) and isinstance(args[name], str)), "")
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#!")]
    if not lines:
        return ""
    more = f" … ({text.rstrip().count(chr(10)) + 1:,} lines)" if text.strip() != lines[0].strip() else ""
    return "run " + _cut(lines[0].strip(), most) + more


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


_LEAVES_NOTHING = frozenset({"process", "ledger"})


def changes_nothing(effects: Effects) -> bool:
    """Nothing of it lasts: it reads, or it runs behind walls without a way out."""
    return _LEAVES_NOTHING.issuperset(effects.writes)


def undo_in_words(question: Question) -> str:
    if question.undoable:
        return f"partly: {question.unkept}" if question.unkept else "yes"
    if question.unkept:
        return f"no: {question.unkept}"
    return "nothing to undo" if changes_nothing(question.effects) else "no"


def lookalikes(question: Question) -> list[str]:
    """A note for each word in what would run that may be taken for another."""
    from toolgate.core.lookalikes import notes

    return notes([question.preview, *_texts_in(question.args)])


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


def secrets_in_words(question: Question) -> str:
    """The vault's secrets that stand in it by name."""
    return ", ".join(f"{name} (fingerprint {mark})" for name, mark in question.secrets.items())


def finding_in_words(one: Mapping[str, Any]) -> str:
    """What kind, by which rule, where, and what it looks like."""
    if "more" in one:
        return f"and {one['more']} more, all of them in what is shown"
    column = f":{one['column']}" if one["column"] else ""
    place = f"{one['path']}:{one['line']}{column}" if one["line"] else f"the name {one['path']}"
    return f"{one['kind']}: {one['rule']} at {place}: {one['excerpt']}"


def _quoted(path: str) -> str:
    """A long one by its two ends, so that it cannot push the others out of sight."""
    pieces = (path,) if len(path) <= LONGEST else (path[: LONGEST // 2], path[-LONGEST // 2 :])
    return "…".join(json.dumps(piece, ensure_ascii=False) for piece in pieces)
