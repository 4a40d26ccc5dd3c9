"""Jobs: long work and schedules that survive a crash, on DBOS. What a job does are calls through the gate."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature

FEATURE = Feature(
    name="jobs",
    summary="Long work and schedules",
    sections={"jobs": "toolgate.features.jobs.config:JobsSpec"},
    families=(Family("toolgate.features.jobs.tools:tools", ("jobs.list", "jobs.status")),),
    opens="toolgate.features.jobs.jobs:open_jobs",
    routes="toolgate.features.jobs.routes:routes",
    background="toolgate.features.jobs.jobs:run",
    commands=(
        Command(
            "jobs",
            "toolgate.features.jobs.commands:app",
            "Long work and schedules: list, submit, cancel, run.",
            "Humans decide",
        ),
    ),
    checks="toolgate.features.jobs.commands:CHECKS",
    docs="docs/jobs.md",
)
