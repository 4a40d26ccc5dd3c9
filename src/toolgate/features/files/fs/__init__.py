"""`fs.*`: the files of the mounts, for reading and for changing. `fs.patch` joins the list with its engine."""

from __future__ import annotations

from typing import Any

from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext, load
from toolgate.features.files.fs import read, tree, write


def tools(context: FeatureContext) -> list[Tool]:
    files = context.files
    assert files is not None

    async def remarks(path: MountPath, persona: str) -> list[dict[str, Any]]:
        place = files.mounts.kind(path.mount).remarks
        if not place:
            return []
        spoil()  # they may differ for another persona, whom a kept result would be given too
        found: list[dict[str, Any]] = await load(place)(context, path, persona)
        return found

    return [*tree.looking(files), *read.tools(files, remarks), *write.tools(files), *tree.moving(files)]
