"""Proposals as ways round the gate: applied twice, by others, damaged, pushed out, put off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faces.mcp.clients import User, client
from toolgate import Gate
from toolgate.faces.mcp.server import McpServer
from toolgate.features.programs import applying
from toolgate.storage.port import Filter

from .gates_to_pass import approved, opened

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
    monkeypatch.setattr(applying, "MOST_PROPOSALS", 2)
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
        server = McpServer(gate)
        try:
            async with client(server, "stdio", era, "builder", elicitation_callback=user) as mcp:
                args = WRITES | {"code": f"open('/project/a.txt', 'w').write('x' * {length})\nprint('ran')"}
                result = await mcp.call_tool("exec.python", args)
        finally:
            server.close()
        told = result.content[0].text
        assert not result.is_error, told
        assert told.startswith("ran\n")
        assert "pending" in told
        assert len(user.shown) == (shown if era == "handshake" else 0)
        ran = [row for row in await gate.events(Filter(tool="exec.python")) if row.kind == "started"]
        assert len(ran) == 1
        assert len(await gate.approvals()) == 1
