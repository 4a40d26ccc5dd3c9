"""Files: `fs.*`, patches, undo and the list of what was written."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature, Page

FEATURE = Feature(
    name="files",
    summary="Read, write, patch and undo files",
    families=(
        Family(
            "toolgate.features.files.fs:tools",
            ("fs.append", "fs.delete", "fs.edit", "fs.ensure_dir", "fs.find", "fs.hash", "fs.list", "fs.move", "fs.read",
             "fs.save", "fs.write"),
            {"file/save": "fs.save", "file.save": "fs.save"},
            needs_files=True,
        ),
        Family("toolgate.features.files.fs_patch:tools", ("fs.patch",), needs_files=True),
        Family("toolgate.features.files.undo:tools", ("ledger.undo",), needs_files=True),
        Family("toolgate.features.files.artifacts:tools", ("events.artifacts",), needs_files=True),
    ),
    human_tools=("ledger.undo",),
    renderings="toolgate.features.files.rendering:RENDERINGS",
    routes="toolgate.features.files.web:routes",
    pages=(Page("/undo", "", "toolgate.features.files.web:add"),),
    commands=(
        Command("undo", "toolgate.features.files.commands:undo", "Take back what calls did.", "Humans decide"),
        Command(
            "artifacts", "toolgate.features.files.commands:artifacts", "List the files that calls changed.", "The record"
        ),
    ),
    drawings="toolgate.features.files.commands:DRAWINGS",
    docs="docs/tools-fs.md",
)  # fmt: skip
