"""Files that the configuration names, and directories that are mounts of their own."""

from __future__ import annotations

from typing import Any

import pytest
from policy_world import facts, policy

from toolgate.policy.simulation import render_explanation

ALL = {"personas": {"p": {"allow": ["*"], "mounts": ["project", "tools"]}}}
MOUNTS = {"tools": {"path": "./lib/tools", "writable": "**"}}


def made(**more: Any) -> Any:
    return policy(
        **ALL,
        mounts=MOUNTS,
        plugins=["./ext/x.py", "./lib/tools/y.py"],
        ledger={"key_file": "k/k.json"},
        **more,
    )


@pytest.mark.parametrize("path", ["ext/x.py", "Ext/X.PY", "./ext//x.py.", "tools:y.py"])
def test_a_plugin_file_is_read_and_never_written(path: str) -> None:
    assert made().decide(facts("fs.write", {"path": path})).rule == "hard:blocked-name"
    assert made().decide(facts("code.read", {"path": path})).rule == "allow:p"


def test_only_the_named_file_is_shut() -> None:
    for path in ("x.py", "ext/x.pyi", "ext/other.py", "ext", "tools:x.py"):
        assert made().decide(facts("fs.write", {"path": path})).verdict == "allow", path


@pytest.mark.parametrize("tool", ["fs.write", "code.read"])
def test_the_key_file_is_neither_read_nor_written(tool: str) -> None:
    assert made().decide(facts(tool, {"path": "K/k.json"})).rule == "hard:blocked-name"


def test_explain_says_why_a_plugin_is_not_written() -> None:
    page = render_explanation(made().explain(facts("fs.write", {"path": "ext/x.py"})))
    assert "DENY by hard:blocked-name" in page
    assert "is a plugin of toolgate.yaml" in page


@pytest.mark.parametrize("path", ["lib/tools/s.md", "LIB/Tools/s.md"])
def test_a_directory_that_is_a_mount_is_reached_as_that_mount_only(path: str) -> None:
    decision = made().decide(facts("code.read", {"path": path}))
    assert decision.rule == "hard:mount"
    assert "use tools:s.md" in decision.reason
    assert made().decide(facts("code.read", {"path": "tools:s.md"})).verdict == "allow"
    assert made().decide(facts("code.read", {"path": "lib/other.md"})).verdict == "allow"
    assert "use tools:." in made().decide(facts("code.read", {"path": "lib/tools"})).reason
