"""Garden: Markdown memory about a user, whose identity, anchors and history survive whatever an agent does."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature, MountKind, Page

FEATURE = Feature(
    name="garden",
    summary="Markdown memory whose identity and history survive",
    families=(
        Family(
            "toolgate.features.garden.tools:tools",
            ("garden.add", "garden.fix", "garden.restore", "md.curate_list", "md.lint", "md.list_sections",
             "md.patch_section", "md.propose_change", "md.snapshot_history"),
            {"lint.check": "md.lint", "propose_change": "md.propose_change"},
            needs_files=True,
        ),
    ),
    opens="toolgate.features.garden.service:open_garden",
    human_tools=("garden.add", "garden.fix", "garden.restore"),
    renderings="toolgate.features.garden.rendering:RENDERINGS",
    tables="toolgate.features.garden.tables:MIGRATIONS",
    commands=(
        Command(
            "garden", "toolgate.features.garden.commands:app", "Markdown memory: init, add, lint, fix, blame, history, status, verify.",
            "The project",
        ),
    ),
    pages=(
        Page(
            "/garden", "Garden", "toolgate.features.garden.pages:add",
            "M10 18V9M10 12C6 12 4 9.500 4 6c4 0 6 2 6 6zM10 9c0-4 2-6 6-6 0 4-2 6-6 6z",
        ),
    ),
    checks="toolgate.features.garden.watching:CHECKS",
    watch="toolgate.features.garden.watching:run",
    docs="docs/garden.md",
    mount_kinds=(
        MountKind(
            "garden", "garden", whole=True, deletes=False, links=False, scope="users/{user}", camel_case=True,
            guard="toolgate.features.garden.guard:check", section="toolgate.features.garden.grammar:section_text",
            remarks="toolgate.features.garden.service:remarks", completes="toolgate.features.garden.editor:with_copies",
        ),
    ),
)  # fmt: skip
