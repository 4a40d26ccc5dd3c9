"""Plans, rooms, collections and reports, as models read them: one line each, with the ids that the next call needs.

What personas said is shown as one line, or behind `>`: it cannot pose as another line or as a mark of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.core.clock import iso
from toolgate.core.display import harmless
from toolgate.core.rendering import Rendering, counted

_TIMES = frozenset({"at", "created_at", "updated_at", "began_at"})
_FIRST = ("id", "kind", "persona", "tool", "call", "state")
_QUIET = frozenset({"conversation", "verdict_by"})
LONG = 600


def listed(data: Any, args: Mapping[str, Any]) -> str:
    """`id kind persona tool …` of each entry, and below it what else is known."""
    entries = data["entries"]
    head = f"{harmless(data['collection'])}: {counted(len(entries), 'entry', 'entries')}, the newest first"
    return "\n".join([head, *map(_entry, entries)])


def _entry(one: Mapping[str, Any]) -> str:
    first = [_said(one[name]) for name in _FIRST if one.get(name) not in (None, "")]
    rest = [
        f"\n  {name}: {_when(name, value)}"
        for name, value in one.items()
        if name not in _FIRST and name not in _QUIET and value not in (None, "", {}, [], 0)
    ]
    return " ".join(first) + "".join(rest)


def entry(data: Any, args: Mapping[str, Any]) -> str:
    """One entry, whole: what is long or nested behind its name, as JSON."""
    made = []
    for name, value in data.items():
        if value in (None, "", {}, []):
            continue
        if isinstance(value, list):
            made += [f"{harmless(name)}:", *(f"  {_said(one, most=0)}" for one in value)]
        else:
            made.append(f"{harmless(name)}: {_when(name, value, most=0)}")
    return "\n".join(made)


def plan(data: Any, args: Mapping[str, Any]) -> str:
    lines = [f"plan {data['id']} ({data['state']}): {_said(data['goal'])}"]
    for step in data["steps"]:
        came = step.get("error") or step.get("result")
        expected = f", expected: {_said(step['expected'])}" if step.get("expected") else ""
        lines.append(
            f"{step['number']}. [{step['state']}] {_said(step['action'])}{expected}"
            + (f" -> {_said(came)}" if came else "")
        )
    return "\n".join(lines)


def room(data: Any, args: Mapping[str, Any]) -> str:
    state = data["state"] + (f": {_said(data['reason'])}" if data.get("reason") else "")
    lines = [
        f"room {data['room']} ({state}), members {', '.join(map(harmless, data['members']))}",
        f"topic: {_said(data['topic'], most=0)}",
    ]
    for one in data["board"]:
        lines.append(f"{one['id']} {one['weight']:+d} by {harmless(one['by'])}: {_said(one['text'])}")
    for one in data["posts"]:
        lines += _post(one)
    return "\n".join(lines)


def posted(data: Any, args: Mapping[str, Any]) -> str:
    lines = _post(data)
    if data["kind"] == "pass":
        lines.append("counted as a pass: it was not new, or not to the point")
    return "\n".join(lines)


def _post(one: Mapping[str, Any]) -> list[str]:
    lines = [f"#{one['number']} {harmless(str(one['persona']))} ({harmless(str(one['kind']))})"]
    lines += [f"> {harmless(line)}" for line in str(one.get("text", "")).splitlines() if line.strip()]
    if one.get("hypothesis"):
        lines.append(f"  hypothesis: {_said(one['hypothesis'])}")
    for name in ("supports", "contradicts"):
        if one.get(name):
            lines.append(f"  {name} {', '.join(map(harmless, map(str, one[name])))}")
    for claim in one.get("claims", ()):
        shown = f"event {claim['event']}" if claim.get("event") else f"not shown: {claim.get('missing', '')}"
        # the mark comes first: what is claimed cannot bring its own
        lines.append(
            f"  [{_said(shown)}] {_said(claim['file'])}:{claim['line']} {_said(claim.get('text', ''))}"
        )
    return lines


def asked(data: Any, args: Mapping[str, Any]) -> str:
    """What a helper answered is its own words, behind `>`."""
    head = f"{harmless(data['persona'])}, run {data['run']}: {data['state']}"
    head += f" ({_said(data['reason'])})" if data.get("reason") else ""
    return "\n".join([head, *(f"> {harmless(line)}" for line in str(data.get("answer") or "").splitlines())])


def report(data: Any, args: Mapping[str, Any]) -> str:
    lines = [f"{harmless(data['persona'])}, {data['period']}"]
    for one in data["usage"]["personas"]:
        worked = (
            ""
            if one["success_rate"] is None
            else f", {one['success_rate']:.1%} worked, {one['avg_ms']:.1f} ms"
        )
        lines.append(f"{counted(one['calls'], 'call')}{worked}; {one['refused']} refused")
        lines += [f"  {tool['tool']} {tool['count']}" for tool in one["top_tools"]]
        lines += [f"  {each['count']} x {each['tool']}: {_said(each['error'])}" for each in one["errors"]]
    runs = ", ".join(f"{state} {count}" for state, count in data["runs"].items())
    lines.append(f"runs: {runs or 'none'}; {data['usd']:.4f} USD")
    lines += [f"plan {one['id']} ({one['state']}): {_said(one['goal'])}" for one in data["plans"]]
    return "\n".join(lines)


def metrics(data: Any, args: Mapping[str, Any]) -> str:
    """`name value (target, met) of how many`; what is not measured yet is said to be that."""
    lines = [data["period"] + (f" since {data['since']}" if data["since"] else "")]
    for one in data["metrics"]:
        value = "not measured yet" if one["value"] is None else f"{one['value']:g}"
        met = "" if one["met"] is None else ", met" if one["met"] else ", missed"
        lines.append(f"{one['name']} {value} (target {one['target']}{met}) of {one['of']}: {one['what']}")
    lines.append(f"paths outside that were tried and refused: {data['attempted_violations']}")
    lines += [f"{name}: {_said(value)}" for name, value in data["work"].items() if value is not None]
    lines += [
        f"{harmless(one['tool'])}: {counted(one['calls'], 'call')}, {one['led_to_answer']:.0%} led to an answer"
        for one in data["tools"]
    ]
    return "\n".join(lines)


def suggested(data: Any, args: Mapping[str, Any]) -> str:
    if not data["calls"]:
        return "no call comes to mind; ask in other words"
    return "\n".join(
        f"{one['tool']} {json.dumps(one['args'], ensure_ascii=False)} - {_said(one['why'])}" for one in data["calls"]
    )  # fmt: skip


def _when(name: str, value: Any, most: int = LONG) -> str:
    return iso(value) if name in _TIMES and isinstance(value, int) else _said(value, most)


def _said(value: Any, most: int = LONG) -> str:
    """One line, shortened where it is one of many."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = harmless(" ".join(_lines(text)))
    return shown if not most or len(shown) <= most else f"{shown[:most]}… (data.read has all of it)"


def _lines(text: str) -> Iterable[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


RENDERINGS: Mapping[str, Rendering] = {
    "data.list": listed, "data.read": entry, "plan.make": plan, "plan.update": plan, "room.read": room, "room.post": posted,
    "ai.ask": asked, "ai.report": report, "ai.metrics": metrics, "ai.suggest": suggested,
}  # fmt: skip
