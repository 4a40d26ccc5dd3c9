"""The tools of this feature, made from its context."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext


def file_tools(context: FeatureContext) -> list[Tool]:
    from toolgate.features.files import fs

    assert context.files is not None
    return fs.toolset(context.files)


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
