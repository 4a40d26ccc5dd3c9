"""Programs: `exec.*` and `code.execute` run them in the sandbox, `fs.apply` takes over what they wrote."""

from __future__ import annotations

from toolgate.feature import Command, Family, Feature

FEATURE = Feature(
    name="programs",
    summary="Run programs in a sandbox",
    sections={
        "sandbox": "toolgate.features.programs.config:SandboxSpec",
        "traces": "toolgate.features.programs.config:TracesSpec",
    },
    families=(
        Family(
            "toolgate.features.programs.programs:tools",
            (
                "code.action",
                "code.execute",
                "code.status",
                "exec.javascript",
                "exec.python",
                "exec.shell",
                "fs.apply",
            ),
            {
                "code": "code.action",
                "code/execute/javascript": "exec.javascript",
                "code/execute/python": "exec.python",
                "code/execute/shell": "exec.shell",
            },
            needs_files=True,
        ),
    ),
    opens="toolgate.features.programs.programs:open_traces",
    renderings="toolgate.features.programs.rendering:RENDERINGS",
    routes="toolgate.features.programs.routes:routes",
    commands=(
        Command(
            "failures",
            "toolgate.features.programs.commands:failures",
            "The last programs that failed, with code and error.",
            "The record",
        ),
    ),
    drawings="toolgate.features.programs.rendering:DRAWINGS",
    checks="toolgate.features.programs.commands:CHECKS",
    docs="docs/tools-exec.md",
)
