"""A real MCP server for the tests, started as a program. Its tools do what the tests need done to them.

`a_server.py [stdio|http|sse] [--define FILE]`: with a file, its JSON says which tools are listed and how.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

HERE = Path(os.environ.get("WITNESS", "/nonexistent"))
OBJECT: dict[str, Any] = {"type": "object"}
TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
READS = {"readOnlyHint": True}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "Say it again.", "inputSchema": TEXT, "annotations": READS},
    {"name": "write", "description": "Note it down.", "inputSchema": TEXT},
    {"name": "crash", "description": "End at once.", "inputSchema": OBJECT},
    {"name": "crash_read", "description": "End at once.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "hang", "description": "Never answer.", "inputSchema": OBJECT},
    {"name": "fail", "description": "Fail.", "inputSchema": OBJECT},
    {"name": "env", "description": "The environment.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "controls", "description": "Bad text.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "image", "description": "Much data.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "flood", "description": "Too many messages.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "endless", "description": "A line without end.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "steps", "description": "Progress.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "ask", "description": "Ask the human.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "sample", "description": "Ask the model.", "inputSchema": OBJECT, "annotations": READS},
    {"name": "change", "description": "Become another.", "inputSchema": TEXT, "annotations": READS},
    {
        "name": "lie",
        "description": "Break a promise.",
        "inputSchema": OBJECT,
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "annotations": READS,
    },
]


def defined() -> list[dict[str, Any]]:
    file = os.environ.get("DEFINE")
    found: list[dict[str, Any]] = json.loads(Path(file).read_text()) if file and Path(file).exists() else TOOLS
    return found


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    if os.environ.get("SLOW_LIST"):
        await asyncio.sleep(600)
    return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in defined()])


def said(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


def witness(line: str) -> None:
    with HERE.open("a") as file:
        file.write(line + "\n")


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    args = params.arguments or {}
    match params.name:
        case "echo" | "Echo":
            return said(args["text"])
        case "write":
            witness(args["text"])
            return said("written", structured_content={"written": args["text"]})
        case "crash" | "crash_read":
            witness("crashed")
            os._exit(3)
        case "hang":
            witness("hanging")
            await asyncio.sleep(600)
        case "fail":
            return said("no such \x1b[31mthing", is_error=True)
        case "env":
            return said(json.dumps(dict(os.environ)))
        case "controls":
            return said("a\x1b[2Jb\u202ec\U000e0041d ok 👩‍💻")
        case "image":
            data = "A" * 200_000
            return types.CallToolResult(
                content=[types.ImageContent(type="image", data=data, mime_type="image/png")]
            )
        case "flood":
            line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
            while True:
                os.write(1, line * 100)
        case "endless":
            while True:
                os.write(1, b"x" * 65536)
        case "lie":
            return said("7", structured_content={"n": "seven"})
        case _:
            return await speak(context, params.name, args)
    return said("unreachable")


async def speak(context: Any, name: str, args: dict[str, Any]) -> Any:
    session = context.session
    match name:
        case "steps":
            for step in (1, 2, 3):
                await session.report_progress(step, 3, f"step {step}")
                await asyncio.sleep(0.06)
            return said("done")
        case "ask":
            answer = await session.elicit_form(
                "Your \x1b[1mpassword?", {"type": "object", "properties": {"word": {"type": "string"}}}
            )
            return said(f"{answer.action} {answer.content}")
        case "sample":
            await session.create_message(
                messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="hi"))],
                max_tokens=10,
            )
            return said("sampled")
        case "change":
            Path(os.environ["DEFINE"]).write_text(args["text"])
            await session.send_tool_list_changed()
            return said("changed")
        case _:
            return said(f"no tool {name}", is_error=True)


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri="note://one", name="one")])


async def read_resource(context: Any, params: Any) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=str(params.uri), text="a \x07note")]
    )


def build() -> Server[Any]:
    return Server(
        "a-server", version="1", on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_read_resource=read_resource,
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
    if os.environ.get("STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ.get("CHILD"):  # like the wrappers of package managers: the real server is a grandchild
        subprocess.Popen(["sleep", "600"])
    if os.environ.get("HANG"):
        signal.pause()
    if message := os.environ.get("DIE"):
        print(message, file=sys.stderr, flush=True)
        sys.exit(7)
    kind = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if kind == "stdio":
        print("a banner that does not belong on stdout", flush=True)
        anyio.run(stdio)
        if os.environ.get("STUBBORN"):
            signal.pause()
    else:
        web(kind)


if __name__ == "__main__":
    main()
