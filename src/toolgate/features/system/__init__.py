"""The gate about itself: `tools.*`, `events.*` and `system.*`."""

from __future__ import annotations

from toolgate.feature import Family, Feature

FEATURE = Feature(
    name="system",
    summary="What there is, what happened, how the machine is",
    families=(
        Family(
            "toolgate.features.system.tools:tools", ("tools.call", "tools.find", "tools.help", "tools.list")
        ),
        Family("toolgate.features.system.events:tools", ("events.log", "events.query")),
        Family("toolgate.features.system.system:tools", ("system.logs", "system.monitor", "system.ping")),
    ),
    renderings="toolgate.features.system.rendering:RENDERINGS",
    docs="docs/library.md",
)
