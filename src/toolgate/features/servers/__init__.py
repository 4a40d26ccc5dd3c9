"""Servers: other MCP servers behind the gate. Their SDK is imported only when one is needed."""

from __future__ import annotations

from toolgate.feature import Feature

FEATURE = Feature(
    name="servers",
    summary="MCP servers behind the gate",
    sections={"servers": "toolgate.features.servers.config:ServersSection"},
    opens="toolgate.features.servers.wiring:open_servers",
    opens_early=True,
    holds="toolgate.features.servers.filepins:held",
    human_tools=("servers.approve",),
    docs="docs/servers.md",
)
