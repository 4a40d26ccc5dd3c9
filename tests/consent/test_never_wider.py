"""A grant is never for more than the call that a human saw: no network, secret, package or view that it did not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.consent import grants
from toolgate.core.effects import Effects
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.features.programs.arguments import effects_of

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute"}},
    "policy": {"rules": [{"name": "asks", "persona": "*", "tools": ["p.*"], "decision": "ask"}]},
}
CLOSED = {"code": "1", "network": None, "secrets": None, "project": "none", "packages": None}
OPEN = CLOSED | {
    "network": ["api.example.com", "b.example.com:8443"],
    "secrets": ["A", "B"],
    "project": "overlay",
    "packages": ["x"],
}
GET = CLOSED | {"network": {"hosts": ["api.example.com"], "methods": ["GET"]}}
CASES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    (CLOSED, {"code": "2"}, True),
    (CLOSED, {"network": ["api.example.com"]}, False),
    (CLOSED, {"network": {"hosts": ["api.example.com"], "methods": ["GET"]}}, False),
    (CLOSED, {"network": []}, True),
    (CLOSED, {"secrets": ["A"]}, False),
    (CLOSED, {"project": "read"}, False),
    (CLOSED, {"project": "overlay"}, False),
    (CLOSED, {"packages": ["x"]}, False),
    (CLOSED, {"background": True, "network": ["api.example.com"]}, False),
    (OPEN, {"code": "2"}, True),
    (OPEN, {"network": ["api.example.com"], "secrets": ["B"], "project": "read"}, True),
    (OPEN, {"network": {"hosts": ["api.example.com"], "methods": ["GET", "POST"]}}, True),
    (OPEN, {"network": None, "secrets": None, "project": "none", "packages": None}, True),
    (OPEN, {"network": ["api.example.com", "c.example.com"]}, False),
    (OPEN, {"network": ["api.example.com:8443"]}, False),
    (OPEN, {"network": ["*.example.com"]}, False),
    (OPEN, {"secrets": ["A", "C"]}, False),
    (OPEN, {"packages": ["x", "y"]}, False),
    (OPEN | {"project": "read"}, {"project": "overlay"}, False),
    (GET, {"code": "2"}, True),
    (GET, {"network": {"hosts": ["api.example.com"], "methods": ["GET", "POST"]}}, False),
    (GET, {"network": ["api.example.com"]}, False),
]  # fmt: skip


@toolgate.tool("p.run", writes=["process"], effects_of=effects_of)
def run(
    code: str, network: Any = None, secrets: Any = None, project: str = "none", packages: Any = None, background: bool = False,
) -> str:  # fmt: skip
    """Does nothing, with the effects that a program would have."""
    return code


@pytest.mark.parametrize(("asked", "changed", "covered"), CASES)
async def test_a_grant_for_any_arguments_covers_no_call_that_reaches_more(
    tmp_path: Path, asked: dict[str, Any], changed: dict[str, Any], covered: bool
) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", tools=[run]) as gate:
        first = await gate.call("p.run", asked, wait=False)
        await gate.answer(first.data["question"], "approve", scope={})
        assert (await gate.call("p.run", asked)).ok
        again = await gate.call("p.run", asked | {"code": "other"} | changed, wait=False)
        assert again.ok is covered, again.error
        if not covered:
            assert again.error is not None
            assert again.error.code.value == "pending"


async def test_what_a_grant_keeps_is_said_where_it_is_listed(tmp_path: Path) -> None:
    from toolgate.kits.words import grant_in_words

    async with toolgate.open(tmp_path, CONFIG, "memory", tools=[run]) as gate:
        wide = "host api.example.com, host b.example.com:8443, project read, project overlay, secret A, secret B, package x"
        for args, said in ((CLOSED, "no network, secrets or project"), (OPEN, f"at most {wide}")):
            first = await gate.call("p.run", args, wait=False)
            await gate.answer(first.data["question"], "approve", scope={})
            grant = (await gate.grants())[-1]
            told = grant_in_words(grant.row.persona, grant.row.tool, grant.body, grant.expires)
            assert f"reaching {said}" in told
            assert "any code" in told


async def test_a_grant_of_an_older_version_covers_what_its_tool_always_does(tmp_path: Path) -> None:
    """It does not say what its call could reach, so it is for the least."""
    from toolgate.consent.grants import _given_with

    older = {"args": {}, "paths": [], "takes": ["code"]}
    for args, covered in ((CLOSED, True), (OPEN, False), (CLOSED | {"project": "read"}, False)):
        assert _given_with(older, run).cover(effects_of(args)) is covered


def question(tool: str, args: dict[str, Any]) -> Question:
    return Question("q_1", "d", tool, args, "ada", "", Effects(), "why", "rule:x", 0, 1, False)


def test_a_command_is_offered_as_it_is_and_as_its_program_alone() -> None:
    asked = question("exec.shell", {"argv": ["pytest", "-q"], "script": "", "stdin": "", "files": None})
    same, program = grants.choices(asked)
    assert (same.key, program.key) == ("same", "program")
    assert program.args["argv"] == {"begins": ["pytest"]}
    assert program.args["files"] == {"exists": False}
    assert "sha256" in same.args["argv"]


def test_files_are_offered_by_their_paths() -> None:
    asked = question("fs.write", {"path": "project:a,*.md", "content": "x"})
    found = {choice.key: choice for choice in grants.choices(asked, [MountPath("project:a,*.md")])}
    assert found["paths"].paths == ("a,[*].md",)
    assert found["paths"].args == {}


ARGVS: list[tuple[Any, bool]] = [
    (["pytest"], True), (["pytest", "-x", "tests"], True), (["pytest2"], False), (["env", "pytest"], False), ([], False),
    ("pytest", False), (None, False), (["PYTEST"], False), ([["pytest"]], False), (["./pytest"], False),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "covered"), ARGVS)
def test_this_program_is_no_other_program(argv: Any, covered: bool) -> None:
    from toolgate.consent.grants import fits

    asked = question("exec.shell", {"argv": ["pytest", "-q"], "stdin": ""})
    chosen = next(one for one in grants.choices(asked) if one.key == "program")
    body = {"args": chosen.args}
    assert fits(body, "", (), {"argv": argv, "stdin": ""}) is covered
    assert not fits(body, "", (), {"argv": ["pytest"], "stdin": "other"})
