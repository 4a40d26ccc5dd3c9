"""A person's edits are recorded within seconds and what they break is said; what is kept about files is never believed blindly."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.garden.plot import PROFILE, plot

from toolgate.core.errors import LedgerBroken
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.features.garden import grammar, lint_cache, watching
from toolgate.features.garden.watching import GardenWatch, status_of

NOTES = "garden:users/me/notes.md"


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old at once, so that their status is enough to know them again."""
    monkeypatch.setattr(lint_cache, "_YOUNG_NS", -1_000_000_000)


async def test_what_a_person_saves_is_recorded_once_by_those_who_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "EVERY_S", 0.01)
    async with plot(tmp_path) as at:
        run = watching.run(at.gate.features["garden"])
        assert run is not None
        tasks = [asyncio.create_task(run), asyncio.create_task(GardenWatch(at.garden).run())]
        try:
            at.file().write_text(at.text().replace("concerns v1 -->\n", "concerns v1 -->\nMine.\n"))
            async with asyncio.timeout(20):
                while not await at.garden.record.last(MountPath(PROFILE)) or (
                    (await at.garden.record.edits(MountPath(PROFILE)))[-1].op != "person_edit"
                ):
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        edits = await at.garden.record.edits(MountPath(PROFILE))
        assert [one.op for one in edits] == ["add", "person_edit"]
        assert {one.state for one in await at.garden.verify()} == {"ok"}
        assert (await at.garden.provenance(PROFILE))[12].who == "a person"


async def test_an_edit_that_is_under_way_is_nobody_elses(tmp_path: Path) -> None:
    """The files are written, and the event is not: whoever looks now must not take it for a person's edit."""
    async with plot(tmp_path) as at:
        apply, seen = at.garden.editor.apply, []

        async def applied(change: Any) -> None:
            await apply(change)
            seen.append(await at.garden.notice("me"))
            seen.append(await GardenWatch(at.garden).look())

        at.garden.editor.apply = applied  # type: ignore[method-assign]
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", append="Late.")
        assert seen == [[], []]
        assert [one.who for one in await at.garden.history(PROFILE)] == ["tender", "tender"]
        assert {one.state for one in await at.garden.verify()} == {"ok"}


async def test_status_names_what_a_person_broke_and_the_repair_mends_it(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", append="Late.")
        whole = at.text()
        cases = {
            "lost its anchor `concerns v1`": whole.replace("<!-- @anchor: concerns v1 -->\n", ""),
            "the Change Log would lose": "".join(
                line for line in whole.splitlines(keepends=True) if " by tender" not in line
            ),
            "`id` is 'play'": whole.replace("id: work", "id: play", 1),
            "`schema` is missing": whole.partition("---\n# ")[2],
            "`id` is missing": "",
            "a merge was not finished": whole.replace("Late.", "<<<<<<< mine\nLate."),
        }
        for told, text in cases.items():
            at.file().write_text(text)
            await at.garden.notice("me")
            (found,) = [one for one in await status_of(at.garden, "me", "garden") if one.broken]
            assert found.path == PROFILE
            assert found.by_person
            assert any(told in one for one in found.broken), (told, found.broken)
            _, _, tool, path, *version = found.repair.split()
            args = {"path": path} | ({"version": version[0]} if version else {})
            done = await at.gate.call(f"garden.{tool}", args, persona=HUMAN)
            assert done.ok, done.error
            assert [one for one in await status_of(at.garden, "me", "garden") if one.broken] == [], told
            assert "Late." in at.text(), told
        at.file().unlink()
        (found,) = await status_of(at.garden, "me", "garden")
        assert found.broken == ["it was deleted"]
        version = found.repair.split()[-1]
        assert (await at.gate.call("garden.restore", {"path": PROFILE, "version": version}, persona=HUMAN)).ok
        assert "Late." in at.text()
        assert {one.state for one in await at.garden.verify()} == {"ok"}


async def test_only_a_file_that_changed_is_linted_again(
    tmp_path: Path, old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plot(tmp_path) as at:
        first = await at.garden.lint_all()
        assert len(first) == 6
        parsed: list[str] = []
        read = grammar.read
        monkeypatch.setattr(grammar, "read", lambda raw, shown="": parsed.append(shown) or read(raw, shown))
        assert await at.garden.lint_all() == first
        assert parsed == []
        at.file().write_text(at.text() + "\n## More\n")
        now = await at.garden.lint_all()
        assert parsed == [PROFILE]
        assert now == first | {PROFILE: await at.garden.lint(PROFILE)} != first
        os.utime(at.file(), (1, 1))
        assert await at.garden.lint_all() == now
        assert parsed == [PROFILE], "the same bytes were read, and known again by their hash"


async def test_what_lint_says_of_other_files_is_never_old(tmp_path: Path, old: None) -> None:
    async with plot(tmp_path) as at:
        await at.data("fs.append", path=NOTES, text="See rel:eve.\n")
        assert [one.rule for one in (await at.garden.lint_all())[NOTES]] == ["dangling"]
        await at.data("garden.add", kind="relationship", id="eve")
        assert (await at.garden.lint_all())[NOTES] == []


async def test_a_finding_that_somebody_took_out_of_the_database_is_found_again(
    tmp_path: Path, old: None
) -> None:
    async with plot(tmp_path) as at:
        at.file().write_text(at.text() + "<<<<<<< mine\n")
        said = await at.garden.lint_all()
        assert [one.rule for one in said[PROFILE]] == ["conflict-marker"]
        tables = await at.gate.features["garden"].tables()
        assert await tables.execute("UPDATE garden_lint SET findings = ? WHERE path = ?", "[[], []]", PROFILE)
        assert await at.garden.lint_all() == said


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE garden_edits SET rationale = 'she asked for it' WHERE path = ?",
        "UPDATE garden_edits SET persona = 'somebody', trust = 'person' WHERE path = ?",
        "UPDATE garden_edits SET seal = '' WHERE path = ?",
        "DELETE FROM garden_edits WHERE number > 1 AND path = ?",
        "DELETE FROM garden_edits WHERE path = ?",
    ],
)
async def test_who_wrote_what_cannot_be_forged_in_the_database_and_is_made_again(
    tmp_path: Path, forgery: str
) -> None:
    async with plot(tmp_path) as at:
        await at.data(
            "md.patch_section", path=PROFILE, section_anchor="concerns", append="Late.", rationale="true"
        )
        before = await at.garden.history(PROFILE)
        tables = await at.gate.features["garden"].tables()
        assert await tables.execute(forgery, PROFILE)
        found = [one for one in await at.garden.verify("me") if one.state != "ok"]
        assert [(one.path, one.state) for one in found] == [(PROFILE, "forged")]
        await at.data("fs.append", path=NOTES, text="Others go on.\n")
        assert (await at.garden.history(NOTES))[0].who == "tender"
        if "UPDATE" in forgery:
            with pytest.raises(LedgerBroken, match="was not recorded by the garden"):
                await at.garden.history(PROFILE)
        await at.garden.record.remake([PROFILE])
        assert await at.garden.history(PROFILE) == before
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}


async def test_a_file_too_large_or_no_text_is_told_and_stops_nothing(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        at.file(NOTES).write_bytes(b"x" * 10_000_000)
        at.file("garden:users/me/overview.md").write_bytes(b"\xff\n")
        said = await at.garden.lint_all("me")
        assert [one.rule for one in said[NOTES]] == ["unreadable"]
        assert [one.rule for one in said["garden:users/me/overview.md"]] == ["unreadable"]
        states = {one.path: one.state for one in await at.garden.verify("me")}
        assert (states[NOTES], states[PROFILE]) == ("changed", "ok")
        assert json.dumps([one.shown() for one in said[PROFILE]]) == "[]"
