"""A name that there is not: the tools that may have been meant, also by what others call them."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate

MEANT = {
    "grep": "code.search", "rg": "code.search", "Grep": "code.search", "search_files": "code.search",
    "cat": "fs.read", "Read": "fs.read", "read_file": "fs.read", "view": "fs.read", "ls": "fs.list",
    "bash": "exec.shell", "sh": "exec.shell", "run_terminal_cmd": "exec.shell", "python": "exec.python",
    "sed": "fs.edit", "str_replace": "fs.edit", "Edit": "fs.edit", "write_file": "fs.write", "rm": "fs.delete",
    "mv": "fs.move", "mkdir": "fs.ensure_dir", "Glob": "fs.find", "apply_patch": "fs.patch", "git_log": "code.log",
    "git.blame": "code.blame", "undo": "ledger.undo", "code.serch": "code.search", "fs.reed": "fs.read",
}  # fmt: skip


async def test_a_name_from_elsewhere_leads_to_the_tool_that_is_meant(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, {"version": 1}, "memory") as gate:
        near = {name: gate.services.registry.near(name) for name in (*MEANT, "weather", "")}
        assert {
            name: found for name, found in near.items() if name in MEANT and MEANT[name] not in found
        } == {}
        assert near["weather"] == near[""] == []
        refused = await gate.call("grep", {"pattern": "x"})
        assert refused.error is not None
        assert refused.error.fix.startswith("did you mean code.search or ")
        assert refused.data["near"][0] == "code.search"


@pytest.mark.parametrize("name", ["x" * 10_000, "\x00\u202e", "grep grep grep " * 50])
async def test_a_hostile_name_costs_nothing(tmp_path: Path, name: str) -> None:
    async with toolgate.open(tmp_path, {"version": 1}, "memory") as gate:
        assert len(gate.services.registry.near(name)) <= 3
