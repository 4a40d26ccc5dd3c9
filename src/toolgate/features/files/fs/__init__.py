"""`fs.*`: the files of the mounts, for reading and for changing. `fs.patch` joins the list with its engine."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.features.files.fs import look, place, read, write
from toolgate.workspace.files import WorkspaceFiles


def toolset(files: WorkspaceFiles, remarks: read.Remarks = read.none) -> list[Tool]:
    return [*look.tools(files), *read.tools(files, remarks), *write.tools(files), *place.tools(files)]
