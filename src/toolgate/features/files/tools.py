"""The tools of this feature, made from its context."""

from __future__ import annotations

from typing import Any

from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext, load


def file_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.files import fs

    files = context.files
    assert files is not None

    async def remarks(path: MountPath, persona: str) -> list[dict[str, Any]]:
        place = files.mounts.kind(path.mount).remarks
        if not place:
            return []
        spoil()  # they may differ for another persona, whom a kept result would be given too
        found: list[dict[str, Any]] = await load(place)(context, path, persona)
        return found

    return fs.toolset(files, remarks)


def patch_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.files import fs_patch

    assert context.files is not None
    return list(fs_patch.toolset(context.files))


def undo_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.files import undo

    assert context.files is not None
    return list(undo.toolset(context.services.registry, context.services.ledger, context.files))


def artifact_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.files import artifacts

    assert context.files is not None
    return list(
        artifacts.toolset(
            context.services.ledger, context.files, lambda persona: context.gate.policy.foreign(persona)
        )
    )
