"""The gate's own answers as models read them: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.core.display import harmless
from toolgate.core.rendering import Rendering, lean


def tool_list(data: Any, args: Mapping[str, Any]) -> str:
    return (
        "\n".join(f"{one['name']} ({one['decision']}): {harmless(one['summary'])}" for one in data)
        or "no tools"
    )


def tools_found(data: Any, args: Mapping[str, Any]) -> str:
    """Each with what is needed to call it."""
    return (
        "\n".join(
            f"{one['name']} ({one['decision']}): {_sentence(one['description'])}\n  args: {_short(one['input_schema'])}"
            for one in data
        )
        or "no tool fits these words; tools_list names them all"
    )


def tool_help(data: Any, args: Mapping[str, Any]) -> str:
    effects = [f"{word} {', '.join(data[word])}" for word in ("reads", "writes") if data[word]]
    verdict = f"{data['decision']}: {harmless(data['reason'])}" if data["reason"] else data["decision"]
    return "\n".join(
        [
            f"{data['name']}: {_sentence(data['description'])}",
            f"args: {_short(lean(data['input_schema'], ours=data['origin'] == 'native'))}",
            "; ".join(
                [
                    *effects,
                    f"risk {data['risk']}",
                    "can be undone" if data["undoable"] else "cannot be undone",
                ]
            ),
            verdict + (f" ({data['rule']})" if data["rule"] else ""),
        ]
    )


def _sentence(text: str) -> str:
    return harmless(" ".join(text.split()))


def queried(data: Any, args: Mapping[str, Any]) -> str:
    """`event_id time kind persona tool call_id`, then what else was recorded."""
    made = []
    for row in data["rows"]:
        head = [
            str(row["event_id"]),
            row["at"],
            row["kind"],
            row.get("persona", ""),
            row.get("tool", ""),
            row.get("call_id", ""),
        ]
        rest = {
            key: value for key, value in row.items() if key not in _HEAD and value not in ("", None, {}, [])
        }
        made.append(
            " ".join(part for part in head if part)
            + "".join(f"\n  {key}: {_short(value)}" for key, value in rest.items())
        )
    if data["more"]:
        made.append("… there are more: `after` or `until` goes on")
    return "\n".join(made) or "no such event"


_HEAD = frozenset({"event_id", "at", "kind", "persona", "tool", "call_id", "definition", "owner"})


def _short(value: Any) -> str:
    if isinstance(value, str):
        return harmless(value)
    import orjson

    return orjson.dumps(value).decode()


def noted(data: Any, args: Mapping[str, Any]) -> str:
    return f"noted as event {data['event_id']}"


def pinged(data: Any, args: Mapping[str, Any]) -> str:
    return f"{harmless(data['message'])} (toolgate {data['version']}, up {data['uptime_s']} s)"


RENDERINGS: Mapping[str, Rendering] = {
    "tools.list": tool_list, "tools.find": tools_found, "tools.help": tool_help, "events.query": queried, "events.log": noted, "system.ping": pinged,
}  # fmt: skip
