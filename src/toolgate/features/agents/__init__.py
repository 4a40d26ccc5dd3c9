"""Runs, conversations and rooms of personas: a model asks for calls, the gate decides about each."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature, Page

_HERE = "toolgate.features.agents"
FEATURE = Feature(
    name="agents",
    summary="Runs, conversations and rooms of personas",
    sections={"models": f"{_HERE}.config:ModelsSection", "agents": f"{_HERE}.config:AgentsSpec"},
    families=(
        Family(
            f"{_HERE}.tools:tools",
            ("ai.ask", "ai.report", "data.list", "data.read", "plan.make", "plan.update"),
        ),
        Family(f"{_HERE}.metrics:tools", ("ai.metrics",)),
        Family(f"{_HERE}.suggesting:tools", ("ai.suggest",)),
        Family(f"{_HERE}.tools:room_tools", ("room.post", "room.read")),
    ),
    human_tools=("room.post", "room.read"),
    opens=f"{_HERE}.runs:open_agents",
    background=f"{_HERE}.runs:go_on",
    tables=f"{_HERE}.store:MIGRATIONS",
    commands=(
        Command("run", f"{_HERE}.commands:run", "Ask a persona something; it works with tools through the gate.", "Agents"),
        Command("chat", f"{_HERE}.commands:chat", "Talk with a persona at the terminal.", "Agents"),
        Command("runs", f"{_HERE}.commands:app", "Runs of personas: list, show, resume, cancel.", "Agents"),
        Command("suggest", f"{_HERE}.suggesting:suggest_calls", "Which calls would answer a question.", "Agents"),
        Command("room", f"{_HERE}.room_commands:room", "Have several personas look into something together.", "Agents"),
        Command("rooms", f"{_HERE}.room_commands:app", "Rooms of personas: list, show, resume, say, judge.", "Agents"),
    ),
    pages=(
        Page("/runs", "Agents", f"{_HERE}.pages:add_runs", "M10 3a3 3 0 1 1 0 6 3 3 0 0 1 0-6M4 17c0-4 3-6 6-6s6 2 6 6"),
        Page("/metrics", "", f"{_HERE}.pages:add_metrics"),
        Page("/rooms", "Rooms", f"{_HERE}.pages:add_rooms", "M3 4h9v6H6l-3 3zM14 8h3v8l-3-2H8v-2"),
    ),
    renderings=f"{_HERE}.rendering:RENDERINGS",
    checks=f"{_HERE}.checks:CHECKS",
    docs="docs/agents.md",
)  # fmt: skip
