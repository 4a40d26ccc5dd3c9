"""Gardens in bad places and bad shape: nothing is lost, nothing is followed, and what is wrong is said with its line."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.garden.plot import PROFILE, Plot, plot

from repositories import Repo
from toolgate.features.garden.layout import template
from toolgate.features.garden.watching import status_of
from toolgate.workspace import write

CONCERNS = {"path": PROFILE, "section_anchor": "concerns v1"}


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda text: text.replace("garden/1\n---\n", "garden/1\n"), "identity"),
        (lambda text: text.partition("---\n# ")[2], "identity"),
        (lambda text: text.replace("id: work\n", "id work\n", 1), "identity"),
        (lambda text: text + "\n## Again\n<!-- @anchor: concerns v1 -->\n", "anchors"),
        (lambda text: text + "<<<<<<< mine\nx\n=======\ny\n>>>>>>> theirs\n", "conflict-marker"),
    ],
)
async def test_a_file_that_is_broken_can_be_read_and_is_never_made_worse(
    tmp_path: Path, spoil: Any, rule: str
) -> None:
    async with plot(tmp_path) as at:
        at.file().write_text(spoil(at.text()))
        found = await at.garden.lint(PROFILE)
        assert rule in {one.rule for one in found if one.severity == "blocked"}
        assert (await at.data("fs.read", path=PROFILE))["path"]
        edited = await at.call("md.patch_section", **CONCERNS, append="Late.")
        assert edited.ok or edited.error is not None
        now = await at.garden.lint(PROFILE)
        assert len([one for one in now if one.severity == "blocked"]) == len(
            [one for one in found if one.severity == "blocked"]
        )
        assert (await at.garden.provenance(PROFILE))[0].event


async def test_a_file_whose_open_fence_hides_an_anchor_is_not_edited_until_that_is_mended(
    tmp_path: Path,
) -> None:
    async with plot(tmp_path) as at:
        await at.data("md.patch_section", **CONCERNS, append="Late.")
        at.file().write_text(at.text().replace("evidence v1 -->\n", "evidence v1 -->\n```\n"))
        before = at.text()
        item = {
            "path": PROFILE,
            "section_anchor": "evidence v1",
            "ops": "append",
            "items": ["2026-01-01 approved"],
        }
        for tool, args in (
            ("md.curate_list", item | {"reason": "x"}),
            ("fs.append", {"path": PROFILE, "text": "- 2026-01-01 approved\n"}),
        ):
            refused = await at.call(tool, **args)
            assert refused.error is not None
            assert "line 23: a fence or an element before the anchor `change_log v1`" in refused.error.message
            assert at.text() == before
        await at.garden.notice("me")
        (found,) = await status_of(at.garden, "me", "garden")
        assert "garden restore" in found.repair, "`fix` would write into the fence"


@pytest.mark.parametrize("shape", [("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff"), ("\r", "")])
async def test_line_ends_byte_order_mark_tabs_and_emoji_survive_every_edit(
    tmp_path: Path, shape: tuple[str, str]
) -> None:
    end, bom = shape
    async with plot(tmp_path) as at:
        text = at.text().replace(
            "concerns v1 -->\n", "concerns v1 -->\n-\ttab\n- \u05e9\u05dc\u05d5\u05dd \U0001f33b\n"
        )
        at.file().write_bytes((bom + text.replace("\n", end)).encode())
        await at.data("md.patch_section", path=PROFILE, section_anchor="summary v1", append="one\ntwo")
        await at.data("md.curate_list", **CONCERNS, ops="append", items=["\U0001f4a1 new"], reason="x")
        raw = at.file().read_bytes().decode()
        assert raw.startswith(bom + "---" + end)
        assert len(re.findall("\r\n|\r|\n", raw)) == raw.count(end)
        assert f"-\ttab{end}- \u05e9\u05dc\u05d5\u05dd \U0001f33b{end}- \U0001f4a1 new{end}" in raw
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}


async def test_a_file_of_a_newer_schema_is_read_and_not_edited(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        at.file().write_text(template("part", "me", "work").replace("garden/1", "garden/2"))
        text = at.text()
        assert [one.rule for one in await at.garden.lint(PROFILE)] == ["schema"]
        for tool, args in (
            ("md.patch_section", CONCERNS | {"append": "x"}),
            ("fs.append", {"path": PROFILE, "text": "x"}),
        ):
            refused = await at.call(tool, **args)
            assert refused.error is not None
            assert "garden:schema" in refused.error.message
            assert "upgrade toolgate" in refused.error.fix
        assert at.text() == text


async def test_what_a_person_saves_between_plan_and_write_is_not_overwritten(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        apply, mine = at.garden.editor.apply, at.text().replace("# Work\n", "# Work\n\nMine.\n")

        async def saved(change: Any) -> None:
            at.file().write_text(mine)
            await apply(change)

        at.garden.editor.apply = saved  # type: ignore[method-assign]
        done = await at.call("md.patch_section", **CONCERNS, append="Late.")
        assert done.error is not None
        assert done.error.code == "conflict"
        assert at.text() == mine
        at.garden.editor.apply = apply  # type: ignore[method-assign]
        await at.data("md.patch_section", **CONCERNS, append="Late.")
        assert "Mine.\n" in at.text()
        who = {one.text: one.who for one in await at.garden.provenance(PROFILE)}
        assert (who["Mine."], who["Late."]) == ("a person", "tender")


async def test_a_garden_in_a_git_repository_keeps_its_record_whatever_git_does(tmp_path: Path) -> None:
    repository = Repo(tmp_path)
    async with plot(tmp_path) as at:
        repository.git("add", "garden")
        repository.git("commit", "-qm", "before")
        await at.data("md.patch_section", **CONCERNS, append="Late.")
        repository.git("stash", "-q", "-u", "--", "garden")  # the edit goes away behind the gate's back
        assert "Late." not in at.text()
        states = {one.path: one.state for one in await at.garden.verify("me")}
        assert states[PROFILE] == "changed"
        (edit,) = [one for one in await at.garden.notice("me") if one.path == PROFILE]
        assert [one for one in edit.lint if "rule garden" in one] == [], (
            "it is a version that was there before"
        )
        repository.git("stash", "pop", "-q")
        await at.garden.notice("me")
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        assert [one.who for one in await at.garden.history(PROFILE)] == [
            "a person", "a person", "tender", "tender",
        ]  # fmt: skip


@pytest.mark.parametrize("what", ["file", "directory"])
async def test_a_link_in_the_garden_leads_nowhere(tmp_path: Path, what: str) -> None:
    async with plot(tmp_path) as at:
        outside = tmp_path / "outside"
        at.file().parent.rename(outside)
        if what == "directory":
            at.file().parent.symlink_to(outside)
        else:
            at.file().parent.mkdir()
            at.file().symlink_to(outside / "profile.md")
        before = (outside / "profile.md").read_bytes()
        for tool, args in (
            ("md.patch_section", CONCERNS | {"append": "x"}),
            ("md.list_sections", {"path": PROFILE}),
            ("fs.append", {"path": PROFILE, "text": "x"}),
            ("md.snapshot_history", {"path": PROFILE}),
        ):
            assert not (await at.call(tool, **args)).ok, tool
        assert (outside / "profile.md").read_bytes() == before
        assert PROFILE not in await at.garden.lint_all("me")
        states = {one.path: one.state for one in await at.garden.verify("me")}
        assert states[PROFILE] != "ok"


async def test_on_a_full_disk_an_edit_happens_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plot(tmp_path) as at:
        await at.data("md.patch_section", **CONCERNS, append="First.")
        before = tree(at)
        for place in ("prepare", "put_in_place"):
            real, room = getattr(write, place), [False, True]  # for the copy, and then not for the file

            def full(*args: Any, real: Any = real, room: list[bool] = room, **more: Any) -> Any:
                if room and not room.pop():
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(*args, **more)

            with monkeypatch.context() as patch:
                patch.setattr(write, place, full)
                done = await at.call("md.patch_section", **CONCERNS, append="Second.")
            assert done.error is not None
            assert not room, "it got as far as the file"
            assert tree(at) == before
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        await at.data("md.patch_section", **CONCERNS, append="Second.")


def tree(at: Plot) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in sorted((at.root / "garden").rglob("*")) if path.is_file()
    }
