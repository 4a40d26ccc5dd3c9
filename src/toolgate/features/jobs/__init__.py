"""Jobs: long work and schedules that survive a crash, on DBOS. What a job does are calls through the gate."""

from __future__ import annotations

from toolgate.feature import Family, Feature

FEATURE = Feature(
    name="jobs",
    summary="Long work and schedules",
    sections={"jobs": "toolgate.features.jobs.config:JobsSpec"},
    families=(Family("toolgate.features.jobs.tools:tools", ("jobs.list", "jobs.status")),),
    opens="toolgate.features.jobs.wiring:open_jobs",
    routes="toolgate.features.jobs.routes:routes",
    background="toolgate.features.jobs.wiring:run",
    docs="docs/jobs.md",
)
