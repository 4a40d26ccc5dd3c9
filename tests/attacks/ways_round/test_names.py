"""Programs as ways round the gate: by another name, spelling or moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolgate.gate import gate as pipeline
from toolgate.gate.execute import execute
from toolgate.gate.flow import Flow, Services
from toolgate.storage.executions import Executions

from .gates_to_pass import VALUE, approved, opened


@pytest.mark.parametrize("tool", ["code.execute", "code", "code/execute", "code_execute"])
@pytest.mark.parametrize(
    "word",
    [
        {"personas": {"builder": {"phase": "contribute", "deny": ["exec.*"]}}},
        {"policy": {"rules": [{"tools": ["exec.python"], "decision": "deny"}]}},
        {"policy": {"rules": [{"tools": ["exec.*"], "decision": "ask"}]}},
    ],
)
async def test_what_is_denied_of_exec_is_not_done_by_code(
    tmp_path: Path, tool: str, word: dict[str, Any]
) -> None:
    async with opened(tmp_path, **word) as gate:
        args = {"code": "output(1)", "language": "python"} | ({"action": "execute"} if tool == "code" else {})
        result = await gate.call(tool, args, wait=False)
        assert result.error is not None
        assert result.error.code == "not_allowed"
        assert await gate.traces.find(Executions()) == []


async def test_code_runs_in_the_language_that_nobody_denied(tmp_path: Path) -> None:
    async with opened(tmp_path, {"tools": ["exec.javascript"], "decision": "deny"}) as gate:
        assert (await gate.call("code.execute", {"code": "output(1)", "language": "python"})).ok
        denied = await gate.call("code.execute", {"code": "output(1)", "language": "javascript"})
        assert denied.error is not None
        assert denied.error.code == "not_allowed"


async def test_a_stored_script_runs_as_it_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.py").write_text("output('shown')")

    def swap(services: Services, flow: Flow) -> None:
        """After the last look of the gate, before the tool's."""
        (tmp_path / "job.py").write_text("output('swapped')")

    order = list(pipeline.ORDER)
    order.insert(order.index(execute), swap)
    async with opened(tmp_path, {"tools": ["code.execute"], "decision": "ask"}) as gate:
        monkeypatch.setattr(pipeline, "ORDER", tuple(order))
        found = await approved(gate, "code.execute", {"script": "job.py", "language": "python"})
        assert found["result"] == "shown"


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("\u0430pple.com", "xn--pple-43d.com"),
        ("a\u200bpple.com", "apple.com"),
        ("\uff27\uff4f\uff4fgle.COM.", "google.com"),
    ],
)
async def test_a_question_names_the_host_that_would_be_reached(tmp_path: Path, host: str, shown: str) -> None:
    async with opened(tmp_path) as gate:
        await gate.call("exec.python", {"code": "", "network": [host]}, wait=False)
        (question,) = await gate.approvals()
        assert question.args["network"] == [shown]
        assert f"it may reach the host {shown}" in question.preview.splitlines()


@pytest.mark.parametrize(
    "network",
    [
        ["evil.example"],
        ["EVIL.example."],
        ["\uff45vil.example"],
        {"hosts": ["evil.example"]},
        {"hosts": ["good.example", "Evil.Example"], "methods": ["get"]},
    ],
)
async def test_a_rule_about_a_host_holds_for_every_way_to_ask_for_it(tmp_path: Path, network: Any) -> None:
    rule = {"tools": ["exec.*"], "when": {"args": {"network": {"glob": "evil.example"}}}, "decision": "deny"}
    async with opened(tmp_path, rule) as gate:
        result = await gate.call("exec.python", {"code": "", "network": network}, wait=False)
        assert result.error is not None
        assert result.error.code == "not_allowed"


async def test_no_line_of_a_question_is_written_by_the_program(tmp_path: Path) -> None:
    forged = "x\nfor at most 1 s, in the sandbox\r\u2028it may reach nothing\u202e\x1b[2K"
    async with opened(tmp_path) as gate:
        for args in ({"argv": ["true", forged]}, {"script": forged.replace("\n", "\x0b")}):
            await gate.call("exec.shell", args | {"secrets": ["TOKEN"]}, wait=False)
        for question in await gate.approvals():
            lines = question.preview.split("\n")
            assert [line for line in lines if line.startswith("it may reach")] == [
                "it may reach the secret TOKEN"
            ]
            assert len([line for line in lines if line.startswith("for at most")]) == 1
            assert not set(question.preview) & set("\r\x0b\x1b\u2028\u202e")


async def test_no_two_calls_look_alike_to_whoever_is_asked(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = [
        {}, {"background": True}, {"timeout": 31}, {"stdin": "x"}, {"files": {"a": "1"}}, {"files": {"a b": "1"}},
        {"network": ["a.example"]}, {"network": {"hosts": ["a.example"], "methods": ["GET"]}}, {"secrets": ["A"]},
        {"project": "read"}, {"project": "overlay"}, {"packages": ["pytest"]},
    ]  # fmt: skip
    asks = {"tools": ["exec.*"], "decision": "ask"}
    allowed = {"sandbox": {"packages": ["pytest"]}, "consent": {"max_open": 50}}
    async with opened(tmp_path, asks, **allowed) as gate:
        await gate.set_secret("A", VALUE)
        for args in calls:
            await gate.call("exec.python", {"code": "1"} | args, wait=False)
        assert len({question.preview for question in await gate.approvals()}) == len(calls)
