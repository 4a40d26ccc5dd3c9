"""`toolgate mcp --help`, and its usage errors. Serving itself does not come through here: see `main`."""

from __future__ import annotations

from typing import Annotated

from toolgate.faces.mcp import command as serving
from toolgate.kits.terminal import options
from toolgate.kits.terminal.command import Argument, Option, command


@command(epilog="Example: toolgate mcp . --persona reviewer")
def mcp(
    directory: Annotated[str, Argument(metavar="ROOT", help="The project.")] = "",
    persona: options.Persona = "",
    root: options.Root = None,
    profile: Annotated[str, Option("--profile", help="What is listed: minimal, code or full.")] = "",
) -> None:
    """Serve the tools to an MCP client on stdio.

    The client starts this itself; `.mcp.json` names the command. Calls that ask are answered in the client, or with
    `toolgate approvals`.
    """
    code = serving.run(serving.McpArguments(directory or str(root or ""), persona, profile))
    if code:
        raise SystemExit(code)
