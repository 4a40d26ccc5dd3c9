"""A human is asked only about a call that could run: what it names is looked for first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .running import POLICY, SANDBOX, opened

ASKING = POLICY | {
    "sandbox": SANDBOX
    | {"packages": ["no-such-package-anywhere"], "network": {"private": ["127.0.0.1:8000"]}},
    "policy": {"rules": [{"name": "asks", "persona": "*", "tools": ["*"], "decision": "ask"}]},
}
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("exec.shell", {"argv": ["no-such-program"]}, "no-such-program"),
    ("exec.shell", {"argv": ["/usr/bin/no-such-program"]}, "/usr/bin/no-such-program"),
    ("exec.shell", {"argv": ["/opt/tool"]}, "/opt/tool"),
    ("exec.shell", {"argv": ["/project/run.sh"]}, "/project/run.sh"),
    ("exec.shell", {"argv": ["/project/no.sh"], "project": "read"}, "/project/no.sh"),
    ("exec.shell", {"argv": ["./no.sh"], "project": "read"}, "./no.sh"),
    ("exec.shell", {"argv": ["./.env"], "project": "read"}, "./.env"),
    ("exec.shell", {"argv": ["ls"], "packages": ["requests"]}, "requests"),
    ("exec.python", {"code": "1", "packages": ["requests"]}, "requests"),
    ("exec.python", {"code": "1", "packages": ["no-such-package-anywhere"]}, "no-such-package-anywhere"),
    ("exec.python", {"code": "1", "secrets": ["NO_SUCH"]}, "NO_SUCH"),
    ("exec.python", {"code": "1", "network": ["localhost:9"]}, "localhost"),
    ("exec.python", {"code": "1", "network": ["169.254.169.254"]}, "169.254.169.254"),
    ("exec.python", {"code": "1", "network": ["[::1]:80"]}, "::1"),
    ("exec.python", {"code": "1", "network": ["127.0.0.1:8001"]}, "127.0.0.1"),
    ("code.execute", {"script": "no.js"}, "no.js"),
    ("fs.edit", {"path": "no.txt", "find": "a", "replace": "b"}, "no.txt"),
    ("fs.delete", {"path": "no.txt"}, "no.txt"),
    ("fs.write", {"path": ".env", "content": "x"}, ".env"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "args", "named"), CALLS)
async def test_what_could_not_run_is_refused_before_anybody_is_asked(
    root: Path, tool: str, args: dict[str, Any], named: str
) -> None:
    async with opened(root, policy=ASKING, human=False) as (gate, _):
        result = await gate.call(tool, args, wait=False)
        assert result.error is not None
        assert result.error.code.value != "pending"
        assert named in result.error.message
        assert result.error.fix
        assert await gate.approvals() == []


@pytest.mark.parametrize(
    "args",
    [
        {"argv": ["ls"]}, {"argv": ["/bin/ls"]}, {"argv": ["./src/app.py"], "project": "read"}, {"script": "anything"},
        {"argv": ["/project/src/app.py"], "project": "overlay"}, {"argv": ["ls"], "network": ["127.0.0.1:8000"]},
        {"argv": ["ls"], "network": ["api.example.org", "*.example.com"]},
    ],
)  # fmt: skip
async def test_what_could_run_is_asked_about(root: Path, args: dict[str, Any]) -> None:
    async with opened(root, policy=ASKING, human=False) as (gate, _):
        result = await gate.call("exec.shell", args, wait=False)
        assert result.error is not None
        assert result.error.code.value == "pending", result.error
        assert len(await gate.approvals()) == 1
