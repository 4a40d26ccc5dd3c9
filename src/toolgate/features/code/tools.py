"""The tools of this feature, made from its context."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext


def source_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.code import listing, outlining, reading, searching
    from toolgate.workspace.outline.outline import Outliner

    assert context.files is not None
    mounts = context.files.mounts
    outliner = context.stack.enter_context(Outliner())
    return [
        *reading.tools(mounts, outliner),
        *listing.tools(mounts),
        *searching.tools(mounts),
        *outlining.tools(mounts, outliner),
    ]


def history_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.code import history
    from toolgate.workspace.git.repositories import Repositories

    assert context.files is not None
    repositories = Repositories(
        context.files.mounts, context.directory / "cache" / "git", lambda: context.gate.policy.mounts
    )
    context.stack.push_async_callback(repositories.close)
    return history.toolset(repositories)
