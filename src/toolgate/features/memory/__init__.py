"""Memory: what an agent remembers for its user, with its source; found when needed, correctable, undoable."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature, Page

FEATURE = Feature(
    name="memory",
    summary="What an agent remembers, with its source",
    sections={"memory": "toolgate.features.memory.config:MemorySpec"},
    families=(
        Family(
            "toolgate.features.memory.tools:tools",
            (
                "memory.action",
                "memory.store",
                "memory.update",
                "memory.forget",
                "memory.purge",
                "memory.recall",
                "memory.list",
                "memory.audit",
                "memory.rollup",
                "memory.import",
                "session.new",
            ),
            {"memory": "memory.action"},
        ),
        Family(
            "toolgate.features.memory.knowledge_tools:tools",
            ("knowledge.search", "knowledge.add", "knowledge.reset"),
        ),
    ),
    opens="toolgate.features.memory.memory:open_memory",
    human_tools=("memory.*", "knowledge.*", "session.new"),
    background="toolgate.features.memory.upkeep:run",
    commands=(
        Command(
            "memory",
            "toolgate.features.memory.commands:app",
            "What is remembered: store, recall, forget, audit, export.",
        ),
        Command(
            "knowledge",
            "toolgate.features.memory.knowledge_commands:app",
            "Documents that agents can search: add, search, sync, reset.",
        ),
        Command(
            "models",
            "toolgate.features.memory.models:app",
            "Embedding models for search by meaning: list, pull, status.",
        ),
    ),
    pages=(
        Page(
            "/memory",
            "Memory",
            "toolgate.features.memory.pages:add",
            "M10 3.5a3 3 0 0 0-3 2.6A3 3 0 0 0 5 11.5a3 3 0 0 0 5 3.4 3 3 0 0 0 5-3.4 3 3 0 0 0-2-5.4 3 3 0 0 0-3-2.6z"
            "M10 3.5v11.4",
        ),
    ),
    renderings="toolgate.features.memory.rendering:RENDERINGS",
    drawings="toolgate.features.memory.knowledge_commands:DRAWINGS",
    checks="toolgate.features.memory.checks:CHECKS",
    docs="docs/memory.md",
    tables="toolgate.features.memory.schema:MIGRATIONS",
)
