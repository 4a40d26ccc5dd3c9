"""`code.*`: reading, listing, searching and outlining source files. They change nothing."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.features.code import listing, outlining, reading, searching
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import Outliner


def toolset(mounts: Mounts, outliner: Outliner) -> list[Tool]:
    return [
        *reading.tools(mounts, outliner),
        *listing.tools(mounts),
        *searching.tools(mounts),
        *outlining.tools(mounts, outliner),
    ]
