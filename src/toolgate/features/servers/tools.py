"""A server's tools as tools of the gate: same policy, limits, consent and ledger as any other.

Its resources and prompts are tools, too: `SERVER.resources_list`, `resources_read`, `prompts_list`, `prompts_get`. They are
toolgate's own words, so there is nothing to approve in them; what comes back is as untrusted as a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field, RootModel, model_validator

from toolgate.core.apart import apart
from toolgate.core.context import Context
from toolgate.core.effects import Effects
from toolgate.core.errors import CallError, Failed, InvalidArgs, NotAllowed, NotFound, TimedOut
from toolgate.core.tool import Risk, Tool, tool
from toolgate.features.servers.config import ServerSpec
from toolgate.features.servers.definitions import Definition
from toolgate.features.servers.results import (
    Checker,
    Scrub,
    Unusable,
    blocks,
    cleaned,
    defused,
    why_held,
    words,
)
from toolgate.features.servers.server import UpstreamServer
from toolgate.policy.globs import text_glob

Held = Callable[[], str]
"""Why a tool may not be called just now; empty if it may."""
MAX_SHOWN = 600
MAX_LISTED = 500
Uri = Annotated[
    str, Field(max_length=8192, description="The resource's address, as `resources_list` has it.")
]
Prompt = Annotated[str, Field(max_length=256, description="The prompt's name, as `prompts_list` has it.")]
Arguments = Annotated[
    dict[str, str] | None, Field(description="The prompt's own arguments, as `prompts_list` has them.")
]
_MISSING = (-32002, -32602)
"""What servers of the two eras answer for a resource or a prompt that they do not have."""


def enters(spec: ServerSpec, name: str) -> bool:
    """Whether the server's tool of this name is wanted at all."""
    if any(text_glob(glob).matches(name) for glob in spec.deny):
        return False
    return spec.allow is None or any(text_glob(glob).matches(name) for glob in spec.allow)


def counts_as_reading(spec: ServerSpec, definition: Definition) -> bool:
    if isinstance(spec.read_only, tuple):
        return any(text_glob(glob).matches(definition.name) for glob in spec.read_only)
    return spec.read_only == "annotated" and definition.says_read_only


def imported(server: UpstreamServer, local: str, definition: Definition, held: Held) -> Tool:
    """A tool whose definition a human has approved."""
    reads = counts_as_reading(server.spec, definition)
    schema = definition.input_schema
    checker = Checker(schema)

    def check(args: Mapping[str, Any]) -> None:
        _refuse_held(server, held)
        _check_args(f"{server.name}.{local}", checker, args)

    async def run(root: dict[str, Any], context: Context) -> dict[str, Any]:
        return await server.call(definition, root, context, not reads, held)

    async def preview(root: dict[str, Any]) -> str:
        _refuse_held(server, held)
        await server.ready()  # nobody is asked about a call that its server could not take
        return _question(server, definition)

    async def reconcile(root: dict[str, Any], context: Context) -> tuple[bool | None, str]:
        return server.fate(context.call_id)

    return _tool(
        server, local, check, run=run, preview=preview,
        description=defused(definition.description) or f"A tool of the server {server.name}.",
        reconcile=reconcile, input_schema_override=schema, effects=Effects.of(("outside",), () if reads else ("outside",)),
        risk=_risk(definition, reads), timeout=server.spec.timeout_s + 2 * server.spec.start_timeout_s + 10,
        summarize=_summary,
    )  # fmt: skip


def stub(server: UpstreamServer, local: str, held: Held) -> Tool:
    """A tool that nobody has approved. Not a word of the server's reaches a model before."""

    def check(args: Mapping[str, Any]) -> None:
        _refuse_held(server, held)

    async def run(root: dict[str, Any]) -> None:
        _refuse_held(server, held)
        raise NotAllowed(*why_held(server.name, "it was approved just now; call again"))

    return _tool(
        server, local, check, run=run, input_schema_override={"type": "object"},
        description=f"Held: no human has approved yet what the server {server.name} says this tool does.",
        effects=Effects.of(("outside",), ("outside",)), risk="high",
    )  # fmt: skip


def _tool(
    server: UpstreamServer, local: str, check: Callable[[Mapping[str, Any]], None], **options: Any
) -> Tool:
    return Tool(
        name=f"{server.name}.{local}", model=partial(_arguments, check), phase=server.spec.phase,
        aliases=(f"mcp__{server.name}__{local}",), origin="imported", **options,
    )  # fmt: skip


def _arguments(check: Callable[[Mapping[str, Any]], None]) -> type[BaseModel]:
    class Arguments(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> Arguments:
            check(self.root)
            return self

    return Arguments


def _refuse_held(server: UpstreamServer, held: Held) -> None:
    if why := held():
        raise NotAllowed(*why_held(server.name, why), data={"rule": "hard:held", "server": server.name})


def _check_args(name: str, checker: Checker, args: Mapping[str, Any]) -> None:
    try:
        problems = checker.problems(dict(args))
    except Unusable as error:
        raise InvalidArgs(
            f"the arguments of {name} cannot be checked: its schema {error}", "send less at once"
        ) from None
    if problems:
        raise InvalidArgs(
            f"the arguments of {name} do not fit: {'; '.join(problems)}",
            f"`toolgate tools {name}` shows its schema",
            data={"problems": problems},
        )


def _question(server: UpstreamServer, definition: Definition) -> str:
    """What a human reads beside the arguments: whose tool it is, and what that server says of it."""
    claims = [
        words
        for name, words in (("readOnlyHint", "only reads"), ("destructiveHint", "may destroy"), ("idempotentHint", "may be repeated"))
        if definition.hint(name)
    ]  # fmt: skip
    text = " ".join(defused(definition.description).split())
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return "\n".join(
        (
            f"send this call to the MCP server {server.name} ({server.spec.kind}: {server.spec.shown})",
            f"its tool: {definition.name}",
            f"the server says that it: {', '.join(claims) or 'nothing'} (toolgate cannot check that)",
            f"the server describes it as: {shown or 'nothing'}",
        )
    )


def _risk(definition: Definition, reads: bool) -> Risk:
    if reads:
        return "low"
    return "medium" if definition.hint("destructiveHint") is False else "high"


def _summary(data: Any) -> str:
    """For the ledger: how much came, not what; results may hold anything."""
    blocks = data.get("content", []) if isinstance(data, dict) else []
    size = sum(len(str(block.get("text", ""))) for block in blocks if isinstance(block, dict))
    return f"{len(blocks)} {'part' if len(blocks) == 1 else 'parts'}, {size:,} characters of text"


def reading_tools(server: UpstreamServer, facts: Mapping[str, Any]) -> list[Tool]:
    """Only what the server says it has."""
    found: list[Tool] = []
    if facts.get("resources"):
        found += _resources(server)
    if facts.get("prompts"):
        found += _prompts(server)
    return found


def _options(server: UpstreamServer, verb: str) -> dict[str, Any]:
    return {
        "reads": ["outside"],
        "origin": "imported",
        "phase": server.spec.phase,
        "timeout": server.spec.timeout_s + 2 * server.spec.start_timeout_s,
        "aliases": (f"mcp__{server.name}__{verb}",),
    }


def _resources(server: UpstreamServer) -> list[Tool]:
    name = server.name

    @tool(f"{name}.resources_list", **_options(server, "resources_list"))
    async def resources_list(context: Context) -> dict[str, Any]:
        """List the resources that this MCP server offers. What it says is untrusted."""
        found = await _asked(server, context, lambda connection: connection.resources())
        shown = await apart(cleaned, found[:MAX_LISTED], server.scrub)
        return _marked(server, resources=shown, total=len(found))

    @tool(f"{name}.resources_read", **_options(server, "resources_read"))
    async def resources_read(uri: Uri, context: Context) -> dict[str, Any]:
        """Read one resource of this MCP server by its URI. What it says is untrusted."""
        found = await _asked(server, context, lambda connection: connection.resource(uri))
        return _marked(server, contents=await apart(blocks, found.get("contents", ()), server.scrub))

    return [resources_list, resources_read]


def _prompts(server: UpstreamServer) -> list[Tool]:
    name = server.name

    @tool(f"{name}.prompts_list", **_options(server, "prompts_list"))
    async def prompts_list(context: Context) -> dict[str, Any]:
        """List the prompts that this MCP server offers. What it says is untrusted."""
        found = await _asked(server, context, lambda connection: connection.prompts())
        shown = await apart(cleaned, found[:MAX_LISTED], server.scrub)
        return _marked(server, prompts=shown, total=len(found))

    @tool(f"{name}.prompts_get", **_options(server, "prompts_get"))
    async def prompts_get(context: Context, name: Prompt, arguments: Arguments = None) -> dict[str, Any]:
        """Get one prompt of this MCP server. What it says is untrusted."""
        found = await _asked(server, context, lambda connection: connection.prompt(name, arguments or {}))
        return _marked(server, **await apart(_prompt, found, server.scrub))

    return [prompts_list, prompts_get]


def _prompt(found: Mapping[str, Any], scrub: Scrub) -> dict[str, Any]:
    messages = [
        {"role": cleaned(one.get("role", ""), scrub), "content": blocks([one.get("content", {})], scrub)[0]}
        for one in found.get("messages", ())
    ]
    return {"description": cleaned(found.get("description", ""), scrub), "messages": messages}


def _marked(server: UpstreamServer, **data: Any) -> dict[str, Any]:
    return {"source": server.name, "untrusted": True, **data}


async def _asked(server: UpstreamServer, context: Context, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    connection = await server.ready()
    try:
        async with asyncio.timeout(server.spec.timeout_s):
            with connection.aside(context.persona):
                return await ask(connection)
    except TimeoutError:
        raise TimedOut(f"{server.name} did not answer in {server.spec.timeout_s:g} s", "call again") from None
    except CallError:
        raise
    except Exception as error:  # whatever the SDK raises for what a server says
        told = getattr(error, "error", None)  # of the SDK's own error: code and message
        said = words(str(getattr(told, "message", error)), server.scrub, 500)
        kind = NotFound if getattr(told, "code", None) in _MISSING else Failed
        raise kind(f"{server.name} did not give it: {said}", "these are the server's words") from None
