"""`toolgate tools`: what there is, what policy says of it, how it is called."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

from toolgate.core.errors import Code
from toolgate.core.result import Result
from toolgate.kits.terminal import complete, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.results import show

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


@command(epilog="Example: toolgate tools system.ping --persona builder")
def tools(
    name: Annotated[str, Argument(help="Describe this one.", complete=complete.tools)] = "",
    persona: options.Persona = "",
    everything: Annotated[bool, Option("--all", help="Also those that policy refuses.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List the tools with their effects and what policy says of them, or describe one."""
    args: dict[str, Any] = {"name": name} if name else {"all": everything}
    project.run(_ask("tools.help" if name else "tools.list", args, persona, root))


async def _ask(tool: str, args: dict[str, Any], persona: str, root: Any) -> int:
    async with project.any_gate(root) as gate:
        result = await gate.call(tool, args, persona=persona or None)
        trusted, there = gate.policy.trusted, len(gate.tool_names())
    if not trusted and result.error and result.error.code is Code.UNKNOWN_TOOL:
        raise project.unknown(gate.root, args["name"])
    if speech.mode.json or not result.ok:
        return show(result)
    (_describe if tool == "tools.help" else _list)(result)
    if not trusted:
        speech.note(project.FEW_TOOLS, "")
    elif tool == "tools.list" and there > len(result.data):
        more = there - len(result.data)
        speech.note(f"{more} more that policy refuses to this persona, or that cannot work here: --all", "")
    return 0


def _list(result: Result) -> None:
    rows = [
        [
            speech.safe(row["name"], "bold"),
            speech.safe(row["decision"], _COLOURS[row["decision"]]),
            ", ".join(row["writes"]),
            row["summary"],
        ]
        for row in result.data
    ]
    speech.put(speech.table(["tool|whole", "decision", "writes", "what it does"], rows))


def _describe(result: Result) -> None:
    data = result.data
    speech.put(speech.safe(data["name"], "bold"))
    speech.put(speech.safe(data["description"], lines=True))
    speech.put()
    speech.put(
        speech.pairs(
            [
                (
                    "decision",
                    speech.safe(f"{data['decision']}: {data['reason']}", _COLOURS[data["decision"]]),
                ),
                ("reads", ", ".join(data["reads"]) or "nothing"),
                ("writes", ", ".join(data["writes"]) or "nothing"),
                ("risk", data["risk"]),
                ("can be undone", "yes" if data["undoable"] else "no"),
            ]
        )
    )
    speech.put()
    speech.put(
        speech.table(["argument|whole", "type", "default", "meaning"], _arguments(data["input_schema"]))
    )


def _arguments(schema: dict[str, Any]) -> list[list[str]]:
    needed = schema.get("required", [])
    return [
        [
            name,
            " or ".join(dict.fromkeys(_kinds(spec))) or "any",
            "(needed)" if name in needed else _default(spec),
            _meaning(spec),
        ]
        for name, spec in schema.get("properties", {}).items()
    ]


def _kinds(spec: dict[str, Any]) -> list[str]:
    """What may be given; that it may be left out is said by the default."""
    if "enum" in spec:
        return [str(each) for each in spec["enum"]]
    if "anyOf" in spec:
        return [kind for each in spec["anyOf"] for kind in _kinds(each) if kind != "null"]
    kind = spec.get("type", "object" if "$ref" in spec else [])
    return [kind] if isinstance(kind, str) else [str(each) for each in kind]


def _default(spec: dict[str, Any]) -> str:
    value = spec.get("default")
    return "" if value is None else value if isinstance(value, str) else jsonlib.dumps(value)


def _meaning(spec: dict[str, Any]) -> str:
    """An argument that may be left out has its description one level down."""
    among = (spec, *spec.get("anyOf", ()))
    return next((str(each["description"]) for each in among if "description" in each), "")
