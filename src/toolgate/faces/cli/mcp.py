"""`toolgate mcp --help`, and its usage errors. Serving itself does not come through here: see `main`."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgate.faces.cli import options
from toolgate.faces.mcp import command

app = options.family()


@app.command(epilog="Example: toolgate mcp . --persona reviewer")
def mcp(
    directory: Annotated[str, typer.Argument(metavar="ROOT", help="The project.")] = "",
    persona: options.Persona = "",
    root: options.Root = None,
    profile: Annotated[str, typer.Option("--profile", help="What is listed: minimal, code or full.")] = "",
) -> None:
    """Serve the tools to an MCP client on stdio.

    The client starts this itself; `.mcp.json` names the command. Calls that ask are answered in the client, or with
    `toolgate approvals`.
    """
    code = command.run(command.McpArguments(directory or str(root or ""), persona, profile))
    if code:
        raise typer.Exit(code)
