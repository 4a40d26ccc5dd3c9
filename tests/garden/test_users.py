"""One user's agent sees nothing of another's garden: in no tool, search, list or event query."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.garden.plot import PROFILE, plot

from toolgate.core.names import HUMAN

SECRET = "MARIGOLD-77"
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("fs.read", {"path": "garden:users/me/notes.md"}),
    ("fs.hash", {"path": "garden:users/me/notes.md"}),
    ("fs.list", {"path": "garden:."}),
    ("fs.list", {"path": "garden:users"}),
    ("fs.list", {"path": "garden:users/me"}),
    ("fs.find", {"base": "garden:.", "pattern": "**/*.md"}),
    ("code.search", {"pattern": "MARI.OLD", "paths": ["garden:."]}),
    ("code.search", {"pattern": "MARI.OLD", "paths": ["garden:users/me"]}),
    ("code.search", {"pattern": "MARI.OLD"}),
    ("fs.search", {"pattern": "MARI.OLD", "root": "garden:users"}),
    ("code.read", {"path": "garden/users/me/notes.md"}),
    ("code.list", {"path": "garden:users"}),
    ("code.log", {"path": "garden:users/bob"}),
    ("md.list_sections", {"path": "users/me/overview.md"}),
    ("md.lint", {"path": PROFILE}),
    ("md.propose_change", {"path": PROFILE, "section_anchor": "concerns v1", "append": "x"}),
    ("md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "x"}),
    ("md.snapshot_history", {"path": PROFILE}),
    ("garden.add", {"kind": "part", "id": "mine", "user": "me"}),
    ("fs.write", {"path": "garden:users/me/notes.md", "content": "x"}),
    ("fs.read", {"path": "garden:users/bob/link.md"}),
    ("fs.list", {"path": "garden:users/bob/inside"}),
    ("fs.read", {"path": "garden:users/bob/inside/notes.md"}),
    ("events.query", {"limit": 1000}),
    ("events.query", {"persona": "tender", "limit": 1000}),
    ("events.query", {"file_path": "garden:users/me/notes.md"}),
    ("events.artifacts", {}),
    ("tools.help", {"name": "md.patch_section"}),
]


@pytest.mark.attack
async def test_one_users_agent_sees_nothing_of_another(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data("fs.append", path="garden:users/me/notes.md", text=f"- {SECRET}\n")
        await at.data(
            "md.patch_section", path=PROFILE, section_anchor="concerns v1", append=SECRET, rationale=SECRET
        )
        await at.data("events.log", type="observation", file_path="users/me/notes.md", rationale=SECRET)
        await at.gate.call("garden.fix", {"path": PROFILE}, persona=HUMAN)
        before = at.text()
        (tmp_path / "garden/users/bob/link.md").symlink_to("../me/notes.md")
        (tmp_path / "garden/users/bob/inside").symlink_to("../me")
        for tool, args in ASKED:
            result = await at.gate.call(tool, args, persona="stranger")
            told = json.dumps(asdict(result), default=str)
            assert SECRET not in told, (tool, args, told)
            assert "Concerns" not in told, (tool, args, told)
        assert at.text() == before
        own = await at.gate.call("fs.list", {"path": "garden:users/bob"}, persona="stranger")
        assert own.ok, own.error
        assert "notes.md" in json.dumps(own.data)
        mine = await at.data("events.query", limit=1000)
        assert SECRET in json.dumps(mine)
        assert "stranger" not in json.dumps(mine)


@pytest.mark.attack
async def test_a_citation_tells_nothing_about_what_its_reader_may_not_read(tmp_path: Path) -> None:
    confined = {"phase": "collaborate", "allow": ["*"], "mounts": ["garden"]}
    mounts = {
        "garden": {"path": "garden"},
        "second": {"path": "second", "kind": "garden"},
        "priv": {"path": "priv"},
    }
    for name in ("second", "priv"):
        (tmp_path / name).mkdir()
    (tmp_path / "priv/pin.txt").write_text("title\n4711\n")
    (tmp_path / "priv/.env").write_text("x\n")
    guesses = [hashlib.sha256(str(pin).encode()).hexdigest()[:16] for pin in (4710, 4711)]
    cited = [
        *(f"priv:pin.txt:2@{guess}" for guess in guesses), "priv:pin.txt:99", "priv:none.txt", "priv:.env:9",
        "second:users/bob/overview.md:999", "second:users/me/none.md", "garden:users/bob/overview.md:999",
    ]  # fmt: skip
    own = "garden:users/me/overview.md:999"
    personas = {"tender": confined, "open": {**confined, "mounts": ["garden", "second", "priv"]}}
    async with plot(tmp_path, personas=personas, mounts=mounts) as at:
        await at.gate.call("garden.add", {"kind": "user", "user": "bob", "mount": "second"}, persona=HUMAN)
        text = "\n".join(f"x {one}" for one in [*cited, own])
        await at.data("md.patch_section", path=PROFILE, section_anchor="summary v1", replace=text)
        told = (await at.data("md.list_sections", path=PROFILE))["stale"]
        assert [one["cites"] for one in told] == [own]
        read = (await at.data("fs.read", path=PROFILE))["stale"]
        assert [one["cites"] for one in read] == [own]
        wider = await at.gate.call("md.list_sections", {"path": PROFILE}, persona="open")
        assert [one["cites"] for one in wider.data["stale"]] == [cited[0], *cited[2:4], cited[6], own]
        read = (await at.gate.call("fs.read", {"path": PROFILE}, persona="open")).data["stale"]
        assert len(read) == 5, "and no kept result of the other"


@pytest.mark.attack
async def test_nobody_learns_which_parts_another_user_has(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        told = []
        for ident in ("work", "none"):
            args = {"kind": "part", "id": ident, "user": "me"}
            result = await at.gate.call("garden.add", args, persona="stranger")
            assert result.error is not None
            told.append((result.error.code, result.error.message.replace(ident, "X")))
        assert told[0] == told[1]


@pytest.mark.attack
async def test_the_log_tells_nobody_of_another_users_files(tmp_path: Path) -> None:
    async with plot(tmp_path, None) as at:
        await at.data(
            "md.patch_section", path=PROFILE, section_anchor="summary", append="x", rationale=SECRET
        )
        logging.getLogger("toolgate.garden").warning("%s: the Change Log would lose %r", PROFILE, SECRET)
        assert SECRET in json.dumps(await at.data("system.logs", lines=1000))
        told = await at.gate.call("system.logs", {"lines": 1000}, persona="stranger")
        assert told.ok
        assert PROFILE not in json.dumps(told.data)
