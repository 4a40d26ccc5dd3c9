"""Servers: other MCP servers behind the gate. Their SDK is imported only when one is needed."""

from __future__ import annotations

from toolgate.feature import Command, Feature, Page

FEATURE = Feature(
    name="servers",
    summary="MCP servers behind the gate",
    sections={"servers": "toolgate.features.servers.config:ServersSection"},
    opens="toolgate.features.servers.servers:open_servers",
    opens_early=True,
    holds="toolgate.features.servers.filepins:held",
    human_tools=("servers.approve",),
    pages=(
        Page(
            "/servers",
            "Servers",
            "toolgate.features.servers.pages:add",
            "M3 4h14v5H3zM3 11h14v5H3zM6 6.500h.01M6 13.500h.01",
        ),
    ),
    commands=(
        Command(
            "import",
            "toolgate.features.servers.commands:import_",
            "Put an MCP client's servers behind the gate.",
        ),
        Command(
            "servers",
            "toolgate.features.servers.commands:servers",
            "MCP servers behind the gate: health, held tools, approval.",
        ),
    ),
    checks="toolgate.features.servers.checks:CHECKS",
    docs="docs/servers.md",
)
