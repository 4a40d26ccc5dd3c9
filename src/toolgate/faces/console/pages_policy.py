"""What each persona may do and why, who is paused, which grants live."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.core.errors import CallError, NotFound
from toolgate.core.names import HUMAN
from toolgate.faces.console.console import Console
from toolgate.faces.console.outlook import MEANINGS, explained, families, line
from toolgate.faces.http.auth import Human, form
from toolgate.kits.words import grant_in_words

Word = Annotated[str, Query(max_length=4000)]


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
        found = next((one for one in gate.services.registry if one.name == name), None)
        if found is None:
            raise NotFound("there is no such tool", "Tools & policy lists them")
        chosen = _persona(console, persona)
        explanation, trouble = None, None
        if args:
            try:
                explanation = await explained(gate, name, args, chosen)
            except CallError as error:
                trouble = error
        everybody = [(who_asks, line(gate, who_asks, found)) for who_asks in _personas(console)]
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
