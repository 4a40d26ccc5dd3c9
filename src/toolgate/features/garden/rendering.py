"""Garden as models read it: sections one a line, an edit in one line, what lint says one a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.core.rendering import Rendering, name, short, text


def sections(data: Any, args: Mapping[str, Any]) -> str:
    """`path sha256:…`, then `concerns v1 12-15 sha256:… Concerns`."""
    rows = [
        f"{one['anchor']} {one['start_line']}-{one['end_line']} {short(one['hash'])} {one['words']} words {text(one['heading'])}"
        for one in data["sections"]
    ]
    stale = [f"line {one['line']} is stale: {text(one['problem'])}" for one in data.get("stale", ())]
    return "\n".join([f"{name(data['path'])} {short(data['hash'])}", *rows, *stale])


def edited(data: Any, args: Mapping[str, Any]) -> str:
    if not data["changed"]:
        return f"{name(data['path'])} was so already {short(data['after_hash'])}"
    made = [f"{data['op']} {data['section_anchor']} of {name(data['path'])} {short(data['after_hash'])}"]
    made += [f"copy {name(data['history_path'])}"] if data.get("history_path") else []
    return "\n".join([*made, *map(text, data.get("skipped", ())), *map(text, data.get("lint", ()))])


def linted(data: Any, args: Mapping[str, Any]) -> str:
    said = [*(f"broken: {text(one)}" for one in data["blocked_reasons"]), *map(text, data["warnings"])]
    return "\n".join([f"{name(data['path'])}: {len(said) or 'no'} finding{'s' * (len(said) != 1)}", *said])


def proposed(data: Any, args: Mapping[str, Any]) -> str:
    asks = "; a human will be asked" if data["requires_approval"] else ""
    return f"{text(data['safety_report'])}{asks}\n{text(data['diff'])}".rstrip("\n")


RENDERINGS: dict[str, Rendering] = {
    "md.list_sections": sections,
    "md.patch_section": edited,
    "md.curate_list": edited,
    "md.lint": linted,
    "md.propose_change": proposed,
}
