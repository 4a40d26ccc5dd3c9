"""What each persona may do and why, who is paused, which grants live."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.core.decision import Decision
from toolgate.core.errors import CallError, InvalidArgs, NotFound
from toolgate.core.names import HUMAN
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.console.console import Console
from toolgate.faces.console.question import touches
from toolgate.kits.web.auth import Human, form
from toolgate.kits.words import grant_in_words
from toolgate.policy.explain import Explanation

Word = Annotated[str, Query(max_length=4000)]
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
class ToolFamily:
    name: str
    tools: list[ToolLine] = field(default_factory=list)


def line(tool: Tool, said: Decision) -> ToolLine:
    word, meaning = MEANINGS[said.verdict.value]
    summary = tool.description.strip().split("\n", 1)[0]
    return ToolLine(tool.name, summary, word, meaning, said.reason, said.rule, touches(tool.effects))


def families(gate: Gate, persona: str) -> list[ToolFamily]:
    made: dict[str, ToolFamily] = {}
    for tool, said in sorted(gate.outlook(persona), key=lambda one: one[0].name):
        name = tool.name.partition(".")[0]
        made.setdefault(name, ToolFamily(name)).tools.append(line(tool, said))
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


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/tools")
    async def tools(request: Request, who: Human, persona: Word = "") -> Response:
        chosen = _persona(console, persona)
        spec = gate.config.personas.get(chosen)
        grants = [
            {"id": each.id, "by": each.body["by"], "uses": each.uses,
             "words": grant_in_words(each.row.persona, each.row.tool, each.body, each.expires)}
            for each in await gate.grants()
        ]  # fmt: skip
        rules = [
            {"name": rule.name, "verdict": MEANINGS[rule.verdict.value], "spec": rule.spec}
            for rule in gate.policy.rules
        ]
        return await console.page(
            request,
            who,
            "tools.html",
            chosen=chosen,
            spec=spec,
            families=families(gate, chosen),
            grants=grants,
            rules=rules,
        )

    @pages.get("/tools/{name}")
    async def tool(request: Request, who: Human, name: str, persona: Word = "", args: Word = "") -> Response:
        found = gate.tool(name)
        if found is None:
            raise NotFound("there is no such tool", "Tools & policy lists them")
        chosen = _persona(console, persona)
        explanation, trouble = None, None
        if args:
            try:
                explanation = await explained(gate, name, args, chosen)
            except CallError as error:
                trouble = error
        everybody = [(each, line(*gate.outlook(each, found)[0])) for each in _personas(console)]
        return await console.page(
            request, who, "tool.html", tool=found, everybody=everybody, chosen=chosen, args=args,
            explanation=explanation, trouble=trouble, meanings=MEANINGS,
        )  # fmt: skip

    @pages.post("/grants/{ident}/revoke")
    async def revoke(request: Request, who: Human, ident: str) -> Response:
        await gate.revoke(ident, reason=(await form(request)).get("reason", "")[:4000], channel=who.channel)
        return console.to("/tools")

    @pages.post("/pause")
    async def pause(request: Request, who: Human) -> Response:
        given = await form(request)
        if given.get("resume"):
            await gate.resume(given.get("persona", ""))
        else:
            await gate.pause(given.get("persona", ""), reason=given.get("reason", "")[:4000])
        return console.to("/tools", persona=given.get("persona", ""))


def _personas(console: Console) -> list[str]:
    return [name for name in sorted(console.gate.policy.personas) if name != HUMAN]


def _persona(console: Console, asked: str) -> str:
    known = _personas(console)
    if asked and asked not in known:
        raise NotFound("there is no such persona", f"the personas are: {console.gate.policy.listed()}")
    default = console.gate.config.default_persona
    return asked or (default if default in known else (known[0] if known else HUMAN))
