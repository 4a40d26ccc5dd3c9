"""Programs, jobs and proposals as ways round the gate: by another name, key, spelling or moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from faces.mcp.clients import User, client
from toolgate import Gate
from toolgate.faces.mcp.server import Server
from toolgate.gate import gate as pipeline
from toolgate.gate.execute import execute
from toolgate.gate.flow import Flow, Services
from toolgate.gate.reconcile import what_happened
from toolgate.secrets.redactor import VaultRedactor
from toolgate.storage.executions import Executions
from toolgate.storage.port import Filter, Row
from toolgate.toolsets.exec import background, kept

PERSONAS: dict[str, Any] = {"builder": {"phase": "contribute"}, "other": {"phase": "contribute"}}
VALUE = "hunter2-Zq83kfPw"


@asynccontextmanager
async def opened(root: Path, *rules: dict[str, Any], **more: Any) -> AsyncIterator[Gate]:
    config = {
        "version": 1,
        "default_persona": "builder",
        "personas": PERSONAS,
        "policy": {"rules": list(rules)},
    }
    async with toolgate.open(root, config | more) as gate:
        yield gate


async def approved(gate: Gate, tool: str, args: dict[str, Any]) -> Any:
    """The data of a call that a human approves, whatever it asks."""
    calling = asyncio.ensure_future(gate.call(tool, args))
    while not calling.done():
        for question in await gate.approvals():
            await gate.answer(question.id, "approve")
        await asyncio.sleep(0.01)
    result = calling.result()
    assert result.ok, result.error
    return result.data


async def started(gate: Gate, call: str) -> Row:
    (row,) = [row for row in await gate.events(Filter(call=call)) if row.kind == "started"]
    return row


# --- another name ---------------------------------------------------------------------------------------------


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


# --- another moment -------------------------------------------------------------------------------------------


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


# --- another spelling -----------------------------------------------------------------------------------------


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


# --- another key ----------------------------------------------------------------------------------------------


async def test_nobody_has_a_job_pass_for_done_by_using_its_key_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    async with opened(tmp_path) as gate:
        job = await gate.jobs.submit("call", {"tool": "code.list", "args": {}}, "builder")
        for key in (f"{job}:1", f"{job}:1/follow", "sched-nightly-2026-01-01T00:00:00+00:00:1"):
            taken = await gate.call("code.read", {"path": "a.txt"}, key=key)
            assert taken.error is not None
            assert taken.error.code == "invalid_args"
        async with gate.jobs.running():
            ended = await asyncio.wait_for(gate.jobs.wait(job), 20)
        assert (ended.state, ended.error) == ("done", None)
        assert ended.result is not None
        assert (await started(gate, ended.call)).tool == "code.list"


# --- in the background ----------------------------------------------------------------------------------------


async def test_a_program_that_was_handed_to_a_job_is_never_said_not_to_run(tmp_path: Path) -> None:
    """Killed between handing it over and saying so, with a key, it would be handed over twice."""
    async with opened(tmp_path) as gate:
        tool = gate.services.registry.resolve("exec.python")
        for more in ({}, {"network": ["example.com"]}):
            handed = await gate.call("exec.python", {"code": "output(1)", "background": True} | more)
            assert handed.ok, handed.error
            row = await started(gate, handed.meta.call_id)
            outcome, how = await what_happened(gate.services, tool, row)
            assert (outcome, how) == ("happened", f"it was handed to the job {handed.data['job_id']}")


@pytest.mark.parametrize("more", [{}, {"network": ["example.com"], "secrets": ["TOKEN"]}])
async def test_what_could_not_be_handed_to_a_job_has_failed_and_is_not_unknown(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    async with opened(tmp_path) as gate:
        args = {"code": "output(1)", "background": True} | more
        nobody = await gate.call("exec.python", args, persona="human")
        assert nobody.error is not None
        assert nobody.error.code == "not_allowed"
        assert "unknown" not in [row.kind for row in await gate.events()]


async def test_a_persona_can_fill_neither_the_queue_nor_the_disk_with_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_OPEN", 2)
    async with opened(tmp_path) as gate:
        args = {"code": "output(1)", "background": True}
        codes = [
            result.error.code if result.error else "ok"
            for result in [await gate.call("exec.python", args) for _ in range(3)]
        ]
        assert codes == ["ok", "ok", "rate_limited"]
        assert (await gate.call("exec.python", args, persona="other")).ok
        assert len(await gate.jobs.find("builder")) == 2


async def test_a_job_is_judged_by_what_holds_when_it_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        handed = await gate.call("exec.python", {"code": "output(1)", "background": True})
        await gate.pause("builder")
        async with gate.jobs.running():
            job = await asyncio.wait_for(gate.jobs.wait(handed.data["job_id"]), 20)
        assert job.state == "failed"
        assert job.error is not None
        assert job.error["code"] == "not_allowed"
        assert await gate.traces.find(Executions()) == []


@pytest.mark.parametrize("tool", ["jobs.status", "code.status"])
async def test_what_a_persona_runs_does_not_exist_for_others(tmp_path: Path, tool: str) -> None:
    async with opened(tmp_path) as gate:
        args = {"code": "print('mine')", "background": True}
        handed = await gate.call("exec.python", args)
        ran = await gate.call("exec.python", {"code": "print('mine')"})
        for ident in (handed.data["job_id"], ran.meta.call_id):
            named = {"job": ident} if tool == "jobs.status" else {"job_id": ident}
            seen = await gate.call(tool, named, persona="other")
            assert seen.error is not None
            assert seen.error.code == "not_found"
            assert "mine" not in seen.error.message


# --- secrets --------------------------------------------------------------------------------------------------

NAMES = """
token = get_secret("TOKEN").encode().decode()
import os
open(token, "w").write("x")
os.makedirs("d/" + token.encode().hex())
open("d/" + token.encode().hex() + "/e", "w").write("x")
open("good", "w").write("x")
"""


async def test_no_file_that_a_program_leaves_is_named_by_a_secret(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE, reveal=True)
        found = await approved(gate, "exec.python", {"code": NAMES, "secrets": ["TOKEN"]})
        assert [each["name"] for each in found["files"]] == ["good"]
        assert found["warnings"][-1] == "2 files were not saved: their names hold a secret"
    names = " ".join(str(path) for path in tmp_path.rglob("*"))
    assert VALUE not in names
    assert VALUE.encode().hex() not in names


async def test_what_takes_long_to_search_for_secrets_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes take the longest, most of a second for a megabyte."""
    searched: list[bool] = []
    real = VaultRedactor.redact

    def watched(self: VaultRedactor, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        if isinstance(value, bytes) and value.startswith(b"%61%61"):
            searched.append(threading.current_thread() is threading.main_thread())
        return real(self, value, hidden)

    monkeypatch.setattr(VaultRedactor, "redact", watched)
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE)
        left = await gate.call("exec.python", {"code": "open('a', 'w').write('%61' * 100_000)"})
        assert left.ok, left.error
    assert searched == [False]


async def test_a_job_keeps_no_secret_of_the_vault_in_any_form(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE)
        for args in (
            {"code": f"print('{VALUE}')"}, {"code": "", "stdin": VALUE[::-1]}, {"code": "", "files": {"a": VALUE}},
        ):  # fmt: skip
            refused = await gate.call("exec.python", args | {"background": True})
            assert refused.error is not None
            assert refused.error.code == "invalid_args"
        said = {"reason": f"because {VALUE}", "conversation": VALUE}
        assert (await gate.call("exec.python", {"code": "", "background": True}, **said)).ok
    stored = b"".join(file.read_bytes() for file in (tmp_path / ".toolgate").rglob("*") if file.is_file())
    assert VALUE.encode() not in stored
    assert VALUE[::-1].encode() not in stored


# --- proposals ------------------------------------------------------------------------------------------------

WRITES = {"code": "open('/project/a.txt', 'w').write('new\\n')", "project": "overlay"}
VIEWS = {"persona": "*", "tools": ["exec.python"], "decision": "allow"}


async def test_a_proposal_is_applied_once_and_undone_and_that_undone_again(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old\n")
    async with opened(tmp_path, VIEWS) as gate:
        ran = await gate.call("exec.python", WRITES, wait=False)
        args = {"execution": ran.data["proposal"]["execution"]}
        for persona in ("other", "human"):
            strange = await gate.call("fs.apply", args, persona=persona, wait=False)
            assert strange.error is not None
            assert strange.error.code == "not_found"
        assert file.read_text() == "old\n"
        applied = await approved_result(gate, "fs.apply", args)
        assert file.read_text() == "new\n"
        again = await gate.call("fs.apply", args, wait=False)
        assert again.error is not None
        assert again.error.code == "conflict"
        back = await gate.undo(applied)
        assert file.read_text() == "old\n"
        assert back.meta.event_id is not None
        await gate.undo(back.meta.event_id)
        assert file.read_text() == "new\n"


async def approved_result(gate: Gate, tool: str, args: dict[str, Any]) -> int:
    await approved(gate, tool, args)
    (row,) = await gate.events(Filter(tool=tool, kinds=("committed",)))
    return row.seq


async def test_a_damaged_proposal_stops_no_other_write(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    allowed = {"persona": "*", "tools": ["exec.python", "fs.write"], "decision": "allow"}
    small = {"images": {"total_bytes": 1 << 20, "change_bytes": 1 << 20}}
    async with opened(tmp_path, allowed, **small) as gate:
        ran = await gate.call("exec.python", WRITES, wait=False)
        ident = ran.data["proposal"]["execution"]
        (tmp_path / ".toolgate" / "proposals" / "builder" / f"{ident}.json").write_bytes(b"")  # a power cut's
        for name in ("b", "c", "d"):
            written = await gate.call("fs.write", {"path": f"{name}.txt", "content": name * 600_000})
            assert written.ok, written.error


async def test_nobody_pushes_out_what_another_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    monkeypatch.setattr(kept, "MOST", 2)
    async with opened(tmp_path, VIEWS) as gate:
        mine = (await gate.call("exec.python", WRITES, wait=False)).data["proposal"]
        for name in "bcd":
            args = WRITES | {"code": f"open('/project/{name}.txt', 'w').write('x')"}
            await gate.call("exec.python", args, persona="other", wait=False)
        await gate.answer(mine["question"], "approve")
        assert (await gate.call("fs.apply", {"execution": mine["execution"]}, wait=False)).ok
    assert (tmp_path / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize(("length", "shown"), [(1, 1), (60_000, 0)])
async def test_a_program_runs_once_if_the_client_puts_off_what_it_changed(
    tmp_path: Path, era: str, length: int, shown: int
) -> None:
    """Whether the user of an MCP client cancels the question, or it is too long to be asked there."""
    user = User(["cancel"])
    async with opened(tmp_path, VIEWS) as gate:
        server = Server(gate)
        try:
            async with client(server, "stdio", era, "builder", elicitation_callback=user) as mcp:
                args = WRITES | {"code": f"open('/project/a.txt', 'w').write('x' * {length})\nprint('ran')"}
                result = await mcp.call_tool("exec.python", args)
        finally:
            server.close()
        assert not result.is_error, result.structured_content
        assert result.structured_content is not None
        found = result.structured_content["data"]
        assert (found["stdout"], found["proposal"]["state"]) == ("ran\n", "pending")
        assert len(user.shown) == (shown if era == "handshake" else 0)
        ran = [row for row in await gate.events(Filter(tool="exec.python")) if row.kind == "started"]
        assert len(ran) == 1
        assert len(await gate.approvals()) == 1
