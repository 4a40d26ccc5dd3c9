"""Resources and prompts of a server, as tools: `SERVER.resources_list`, `resources_read`, `prompts_list`, `prompts_get`.

They are toolgate's own words, so there is nothing to approve in them. What comes back is as untrusted as a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from toolgate.core.apart import apart
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Failed, NotFound, TimedOut
from toolgate.core.tool import Tool, tool
from toolgate.features.servers.results import Scrub, blocks, cleaned, words
from toolgate.features.servers.server import Server

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


def reading_tools(server: Server, facts: Mapping[str, Any]) -> list[Tool]:
    """Only what the server says it has."""
    found: list[Tool] = []
    if facts.get("resources"):
        found += _resources(server)
    if facts.get("prompts"):
        found += _prompts(server)
    return found


def _options(server: Server, verb: str) -> dict[str, Any]:
    return {
        "reads": ["outside"],
        "origin": "imported",
        "phase": server.spec.phase,
        "timeout": server.spec.timeout_s + 2 * server.spec.start_timeout_s,
        "aliases": (f"mcp__{server.name}__{verb}",),
    }


def _resources(server: Server) -> list[Tool]:
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


def _prompts(server: Server) -> list[Tool]:
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


def _marked(server: Server, **data: Any) -> dict[str, Any]:
    return {"source": server.name, "untrusted": True, **data}


async def _asked(server: Server, context: Context, ask: Callable[[Any], Awaitable[Any]]) -> Any:
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
