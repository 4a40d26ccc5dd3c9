"""What a persona may do, and why: policy's word on every tool, before any arguments are known."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from toolgate.core.errors import InvalidArgs
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.console.question import touches
from toolgate.policy.explain import Explanation

MEANINGS = {"allow": ("allowed", "allowed"), "ask": ("asks", "asks"), "deny": ("refused", "refused")}


@dataclass
class ToolLine:
    name: str
    description: str
    verdict: str
    meaning: str
    reason: str
    rule: str
    touches: list[str]


@dataclass
class Family:
    name: str
    tools: list[ToolLine] = field(default_factory=list)


def line(gate: Gate, persona: str, tool: Tool) -> ToolLine:
    said = gate.policy.outlook(persona, tool)
    word, meaning = MEANINGS[said.verdict.value]
    summary = tool.description.strip().split("\n", 1)[0]
    return ToolLine(tool.name, summary, word, meaning, said.reason, said.rule, touches(tool.effects))


def families(gate: Gate, persona: str) -> list[Family]:
    made: dict[str, Family] = {}
    for tool in sorted(gate.services.registry, key=lambda one: one.name):
        name = tool.name.partition(".")[0]
        made.setdefault(name, Family(name)).tools.append(line(gate, persona, tool))
    return list(made.values())


def read_args(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidArgs(
            f"the arguments are not JSON: {error}", 'write them as {"path": "src/a.py"}'
        ) from None
    if not isinstance(found, dict):
        raise InvalidArgs("the arguments are not an object", 'write them as {"path": "src/a.py"}')
    return found


async def explained(gate: Gate, tool: str, args: str, persona: str) -> Explanation:
    return await gate.explain(tool, read_args(args), persona)
