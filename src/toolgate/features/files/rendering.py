"""Files as models read them: contents as `cat -n`, names one a line, a change in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.core.rendering import (
    Rendering,
    counted,
    findings,
    lines_of,
    listed,
    more,
    name,
    numbered,
    short,
    text,
)


def read(data: Any, args: Mapping[str, Any]) -> str:
    """`path 10-14/371 sha256:…`, then the lines by number."""
    total = "?" if data["lines"] is None else data["lines"]
    if "content" in data:
        content = data["content"]
        parts = [(1, lines_of(content))]
        whole = not data.get("truncated")
        end = ["… no newline at the end"] if whole and content and not content.endswith("\n") else []
    else:
        parts = [(part["start"], lines_of(part["content"])) for part in data["range_slices"]]
        end = []
    ranges = ",".join(f"{first}-{first + len(lines) - 1}" for first, lines in parts if lines)
    head = [name(data["path"]), f"{ranges or 0}/{total}"]
    head += [short(data["hash"])] if data.get("hash") else []
    head += [data["encoding"]] if data["encoding"] != "utf-8" else []
    body = "--\n".join(numbered(lines, first) for first, lines in parts).rstrip("\n")
    stale = [f"line {one['line']} is stale: {text(one['problem'])}" for one in data.get("stale", ())]
    return "\n".join([" ".join(head), *([body] if body else []), *end, *stale, *more(data)])


def entries(data: Any, args: Mapping[str, Any]) -> str:
    """One path a line, as the next call takes it."""
    base = "" if data["path"] in (".", "project:.") else data["path"].removesuffix(":.").rstrip("/")
    joint = ":" if data["path"].endswith(":.") else "/"
    details = data.get("details") or [None] * len(data["entries"])
    paths = [name(f"{base}{joint}{entry}" if base else _below_root(entry)) for entry in data["entries"]]
    made = listed(paths, list(map(_details, details)))
    return "\n".join([*made, *more(data)]) or f"{name(data['path'])}: nothing there"


def _below_root(entry: str) -> str:
    """What stands before a first colon would be read as a mount."""
    return f"project:{entry}" if ":" in entry.partition("/")[0] else entry


def _details(detail: Any) -> str:
    if not detail:
        return ""
    size = "-" if detail["size"] is None else detail["size"]
    return f"\t{size}\t{(detail['modified'] or '-')[:19]}"


def found(data: Any, args: Mapping[str, Any]) -> str:
    return "\n".join([*listed(list(map(name, data["files"]))), *more(data)]) or "nothing has such a name"


def changed(data: Any, args: Mapping[str, Any]) -> str:
    """`edited src/app.py +3 -0 @244 sha256:…`."""
    verb = "created" if data["created"] else "edited" if "match_count" in data else "wrote"
    made = [verb, name(data["path"])]
    if data.get("match_count", 1) != 1:
        made.append(counted(data["match_count"], "place"))
    if "line" in data:
        made += [f"+{data['insertions']} -{data['deletions']}", f"@{data['line']}"]
    return " ".join([*made, short(data["new_hash"])]) + findings(data)


def directory(data: Any, args: Mapping[str, Any]) -> str:
    return f"{'created' if data['created'] else 'there already:'} {name(data['path'])}" + findings(data)


def moved(data: Any, args: Mapping[str, Any]) -> str:
    several = f" ({counted(data['files'], 'file')})" if data["files"] != 1 else ""
    return f"moved {name(data['path'])} to {name(data['new_path'])}{several}" + findings(data)


def deleted(data: Any, args: Mapping[str, Any]) -> str:
    gone = sorted(data["deleted"]) or [data["path"]]
    return "\n".join(f"deleted {name(one)}" for one in gone) + findings(data)


def hashed(data: Any, args: Mapping[str, Any]) -> str:
    raw = f" raw {data['raw_hash']}" if data["raw_hash"] != data["hash"] else ""
    return f"{name(data['path'])} {data['hash']}{raw} {data['size']:,} bytes"


def patched(data: Any, args: Mapping[str, Any]) -> str:
    """A line a file."""
    made = []
    for file in data["files"]:
        origin = f"{name(file['origin'])} => " if file["origin"] else ""
        after = f" {short(file['after_hash'])}" if file["after_hash"] else ""
        counts = f"+{file['insertions']} -{file['deletions']}"
        made.append(f"{file['op']} {origin}{name(file['path'])} {counts}{after}")
    if data["moved"]:
        made.append(f"{counted(data['moved'], 'hunk')} found elsewhere than the header says")
    if data["recounted"]:
        made.append(f"{counted(data['recounted'], 'hunk header')} recounted: the counts were wrong")
    return "\n".join(made) + findings(data)


def artifacts(data: Any, args: Mapping[str, Any]) -> str:
    made = [
        f"{one['op']} {name(one['path'])} {one['now']} by event {', '.join(str(step['event_id']) for step in one['changes'])}"
        for one in data["artifacts"]
    ]
    return "\n".join([*made, *(["… there are more"] if data["more"] else [])]) or "no call has changed a file"


RENDERINGS: Mapping[str, Rendering] = {
    "fs.read": read, "fs.list": entries, "fs.find": found, "fs.write": changed, "fs.save": changed, "fs.edit": changed,
    "fs.append": changed, "fs.ensure_dir": directory, "fs.move": moved, "fs.delete": deleted, "fs.hash": hashed,
    "fs.patch": patched, "events.artifacts": artifacts,
}  # fmt: skip
