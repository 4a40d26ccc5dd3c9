"""`code.*`: reading, listing, searching and outlining source files. They change nothing."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.toolsets.code import listing, outlining, reading, searching
from toolgate.workspace.mounts import Mounts


def toolset(mounts: Mounts) -> list[Tool]:
    return [
        *reading.tools(mounts),
        *listing.tools(mounts),
        *searching.tools(mounts),
        *outlining.tools(mounts),
    ]
