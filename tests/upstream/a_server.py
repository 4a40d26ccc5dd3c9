"""A real MCP server, made with the SDK: on stdio, streamable HTTP or the old SSE, on the newest protocol where it can.

`a_server.py [stdio|http|sse]`; the last two print the port they listen on.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

BUS = InMemorySubscriptionBus()
OBJECT: dict[str, Any] = {"type": "object"}
TEXT: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}},
    "required": ["text"],
    "additionalProperties": False,
}
PROMISE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
READS = {"readOnlyHint": True}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "Say it again.", "inputSchema": TEXT, "annotations": READS},
    {"name": "write", "description": "Note it down.", "inputSchema": TEXT},
    {"name": "controls", "description": "Bad text.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "image", "description": "Much data.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "steps", "description": "Progress.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "ask", "description": "Ask the human.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "log", "description": "Log it.", "inputSchema": TEXT, "annotations": READS},
    {"name": "sample", "description": "Ask a model.", "inputSchema": TEXT, "annotations": READS},
    {"name": "touch", "description": "Change the note.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "grow", "description": "Have one more tool.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "lie", "description": "Break it.", "inputSchema": OBJECT, "outputSchema": PROMISE},
]


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in TOOLS])


def said(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    args = params.arguments or {}
    match params.name:
        case "echo":
            return said(args["text"])
        case "write":
            with open(os.environ["WITNESS"], "a") as file:
                file.write(args["text"] + "\n")
            return said("written", structured_content={"written": args["text"]})
        case "controls":
            return said("a\x1b[2Jb\u202ec\U000e0041d ok 👩‍💻 é\u00a0!")
        case "image":
            picture = types.ImageContent(type="image", data="A" * 200_000, mime_type="image/png")
            return types.CallToolResult(content=[picture])
        case "lie":
            return said("7", structured_content={"n": "seven"})
        case "steps":
            for step in (1, 2, 3):
                await context.session.report_progress(step, 3, f"step \x1b{step}")
                await asyncio.sleep(0.06)
            return said("done")
        case "ask":
            return asked(params)
        case _:
            return await talked(context, params)


async def talked(context: Any, params: types.CallToolRequestParams) -> Any:
    """What a server may say and ask during a call, in the way of either era."""
    text = (params.arguments or {}).get("text", "")
    match params.name:
        case "log":
            for word in ("begins", "ends"):
                await context.session.send_log_message("warning", f"{text} {word}", "a", context.request_id)
                await asyncio.sleep(0.1)
            return said("logged")
        case "sample":
            return await sampled(context, params, text)
        case "touch":
            if context.protocol_version < "2026":
                await context.session.send_resource_updated("note://one")
            await BUS.publish(ResourceUpdated("note://one"))
            return said("touched")
        case "grow":
            TOOLS.append({"name": f"more{len(TOOLS)}", "description": "More.", "inputSchema": OBJECT})
            await BUS.publish(ToolsListChanged())
            return said("grown")
        case _:
            return said(f"no tool {params.name}", is_error=True)


async def sampled(context: Any, params: types.CallToolRequestParams, text: str) -> Any:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    if context.protocol_version < "2026":
        answer = await context.session.create_message(
            [message], max_tokens=9, related_request_id=context.request_id
        )
    elif params.input_responses:
        answer = params.input_responses["model"]
    else:
        wish = types.CreateMessageRequestParams(messages=[message], max_tokens=9)
        return types.InputRequiredResult(input_requests={"model": types.CreateMessageRequest(params=wish)})
    return said(answer.content.text)


def asked(params: types.CallToolRequestParams) -> Any:
    """On the newest protocol a server asks by an unfinished result, and is called again with the answer."""
    if params.input_responses:
        return said(params.input_responses["word"].model_dump_json(include={"action", "content"}))
    form = types.ElicitRequestFormParams(
        message="Your \x1b[1mword?",
        requested_schema={"type": "object", "properties": {"word": {"type": "string"}}},
    )
    request = types.ElicitRequest(params=form)
    return types.InputRequiredResult(input_requests={"word": request}, request_state="asked")


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri="note://one", name="one")])


async def read_resource(context: Any, params: Any) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=str(params.uri), text="a \x07note")]
    )


async def noted(context: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def build() -> Server[Any]:
    return Server(
        "a-server", version="1", on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_read_resource=read_resource, on_set_logging_level=noted,
        on_subscribe_resource=noted, on_unsubscribe_resource=noted, on_subscriptions_listen=ListenHandler(BUS),
    )  # fmt: skip


async def stdio() -> None:
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def web(kind: str) -> None:
    import uvicorn

    server = build()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()  # before anybody hears of it: who connects now waits instead of being refused
    print(bound.getsockname()[1], flush=True)
    app = server.streamable_http_app() if kind == "http" else sse_app(server)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[bound])


def sse_app(server: Server[Any]) -> Any:
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def events(request: Any) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", events), Mount("/messages/", transport.handle_post_message)])


def main() -> None:
    kind = sys.argv[1]
    if kind == "stdio":
        anyio.run(stdio)
    else:
        web(kind)


if __name__ == "__main__":
    main()
