"""Edits by section through the gate: one Change, with its copy, its Change Log line and its hashes."""

from __future__ import annotations

from pathlib import Path

from tests.garden.plot import PROFILE, plot

from toolgate.core.names import HUMAN
from toolgate.features.garden.watching import status_of
from toolgate.kits.words import undo_in_words

NOTES = "garden:users/me/notes.md"


async def test_a_section_is_replaced_with_a_copy_and_a_log_line_in_one_change(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        before = at.text()
        found = await at.data("md.list_sections", path=PROFILE)
        concerns = next(one for one in found["sections"] if one["anchor"] == "concerns v1")
        done = await at.call(
            "md.patch_section", path=PROFILE, sectionAnchor="concerns v1", change={"replace": "Too many meetings."},
            opts={"ifMatch": concerns["hash"]}, rationale="said so on Monday",
        )  # fmt: skip
        assert done.ok, done.error
        assert done.data["before_hash"] == concerns["hash"] != done.data["after_hash"]
        assert "## Concerns\n<!-- @anchor: concerns v1 -->\nToo many meetings.\n" in at.text()
        assert (
            "replace_section concerns v1 by tender; said so on Monday"
            in at.text().partition("## Change Log")[2]
        )
        assert at.text(done.data["history_path"]) == before
        undone = await at.gate.undo(done.meta.event_id)
        assert undone.ok, undone.error
        assert at.text() == before


async def test_who_put_a_line_there_is_told_and_a_persons_edit_is_theirs(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data(
            "md.patch_section", path=PROFILE, section_anchor="concerns", append="First.", rationale="because"
        )
        at.file().write_text(at.text().replace("First.", "First.\nMine."))
        assert [one.state for one in await at.garden.verify("me")].count("changed") == 1
        await at.data(
            "md.patch_section",
            path=PROFILE,
            section_anchor="summary v1",
            append="Second.",
            evidence_refs=["https://x.org"],
        )
        lines = {one.text: one for one in await at.garden.provenance(PROFILE)}
        assert (lines["First."].who, lines["First."].rationale) == ("tender", "because")
        assert (lines["Mine."].who, lines["Mine."].trust) == ("a person", "person")
        assert lines["Second."].trust == "outside"
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        first = (await at.garden.history(PROFILE))[-1]
        assert (await at.garden.restore(PROFILE, str(first.event))).ok
        assert "First." not in at.text()
        assert (await at.garden.history(PROFILE))[0].who == HUMAN


async def test_front_matter_that_is_no_identity_is_changed_by_a_tool_and_by_a_person(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data(
            "fs.edit",
            path=PROFILE,
            find="---\n# Work",
            replace="mood: calm, so far\ntags: [a, b]\n---\n# Work",
        )
        await at.data("fs.edit", path=PROFILE, find="mood: calm, so far\n", replace="mood: tired\n")
        at.file().write_text(at.text().replace("mood: tired", "mood: rested").replace("tags: [a, b]\n", ""))
        (edit,) = await at.garden.notice("me")
        assert edit.lint == []
        assert [one.broken for one in await status_of(at.garden, "me", "garden")] == [[]]
        assert "schema: garden/1\nmood: rested\n---\n# Work" in at.text()
        at.file("garden:users/me/relationships/ana/profile.md").write_text(
            at.text("garden:users/me/relationships/ana/profile.md").replace("[me, ana]", "[me, eve]")
        )
        (edit,) = await at.garden.notice("me")
        assert "garden:identity" in edit.lint[0], "participants are identity"


async def test_what_stays_after_an_undo_is_said_before(tmp_path: Path) -> None:
    new = "garden:users/me/parts/play/notes.md"
    diff = (
        f"--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+Hello.\n"
        f"--- a/{NOTES}\n+++ b/{NOTES}\n@@ -5 +5,2 @@\n # Me\n+More.\n"
    )
    async with plot(
        tmp_path, policy={"rules": [{"name": "asks", "tools": ["fs.patch"], "decision": "ask"}]}
    ) as at:
        await at.gate.call("fs.patch", {"diff": diff}, wait=False)
        (question,) = await at.gate.approvals()
        said = f"partly: {new} stays, nothing is deleted in the mount garden"
        assert (question.undoable, undo_in_words(question)) == (True, said)
        for name, undoable in (
            ("garden.add", False),
            ("md.snapshot_history", False),
            ("md.patch_section", True),
        ):
            assert (await at.data("tools.help", name=name))["undoable"] is undoable


async def test_what_comes_from_outside_stays_so_however_it_is_taken_over(tmp_path: Path) -> None:
    uncle, rich, web = '"a rich uncle" (ev:w1)', "Will inherit.", "so says https://x.org/a (ev:w2)"
    evidence = {"path": PROFILE, "section_anchor": "evidence v1", "ops": "append", "reason": "read it"}

    async with plot(tmp_path) as at:

        async def trust_of(text: str) -> set[str]:
            lines = await at.garden.provenance(PROFILE)
            return {line.trust for line in lines if line.text.removeprefix("- ") == text}

        async def patch(anchor: str, text: str, **more: object) -> int:
            done = await at.call(
                "md.patch_section", path=PROFILE, section_anchor=anchor, replace=text, **more
            )
            assert done.meta.event_id
            return done.meta.event_id

        await at.data("md.curate_list", **evidence, items=[uncle], evidence_refs=["https://x.org"])
        await at.data("md.curate_list", **evidence, items=[web])
        assert await trust_of(web) == {"outside"}, "its own words name the address"
        await patch("summary v1", "Rich (ev:w2).")
        assert await trust_of("Rich (ev:w2).") == {"outside"}, "the line cites it"
        await patch("summary v1", "Calm.", evidence_refs=["ev:none"])
        await patch("strengths v1", rich, evidence_refs=["ev:w1"])
        assert await trust_of(rich) == {"outside"}, "the edit cites it"
        changed = await patch("strengths v1", "Patient.")
        assert (await at.gate.undo(changed)).ok
        assert await trust_of(rich) == {"outside"}, "a human brought it back, and did not say it"
        at.file().write_text(
            at.text().replace(f"{rich}\n", "").replace("# Work\n", f"# Work\n{rich}\nMine.\n")
        )
        assert (await trust_of(rich), await trust_of("Mine.")) == ({"outside"}, {"person"}), "moved by hand"
        version = (await at.garden.history(PROFILE))[0].event
        await patch("concerns v1", "None.")
        assert (await at.garden.restore(PROFILE, str(version))).ok
        assert (await trust_of(rich), await trust_of("Mine.")) == ({"outside"}, {"person"})
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}


async def test_a_copy_that_somebody_altered_is_not_taken_for_the_version_that_its_name_says(
    tmp_path: Path,
) -> None:
    async with plot(tmp_path) as at:
        edit = {"path": PROFILE, "section_anchor": "concerns v1"}
        await at.data("md.patch_section", **edit, replace="First.")
        copy = (await at.data("md.patch_section", **edit, replace="Second."))["history_path"]
        at.file(copy).write_text(at.text(copy).replace("First.", "Never said."))
        assert b"First." in await at.garden.version(PROFILE, copy)
        assert (await at.garden.restore(PROFILE, copy.rpartition("/")[2])).ok
        assert "First." in at.text()


async def test_other_tools_keep_a_copy_of_a_profile_too(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        copies = at.file().parent / "history"
        diff = f"--- a/{PROFILE}\n+++ b/{PROFILE}\n@@ -10,3 +10,4 @@\n ## Summary\n <!-- @anchor: summary v1 -->\n+New.\n \n"
        for number, (tool, args) in enumerate(
            (
                ("fs.edit", {"path": PROFILE, "find": "# Work\n", "replace": "# Work\n\nMuch.\n"}),
                ("fs.write", {"path": PROFILE, "content": at.text().replace("# Work\n", "# Work\n\nAll.\n")}),
                ("fs.patch", {"diff": diff}),
            ),
            1,
        ):
            before = at.text()
            done = await at.call(tool, **args)
            assert done.ok, done.error
            assert before in [copy.read_text() for copy in copies.iterdir()], tool
            assert len(list(copies.iterdir())) == number
        assert (await at.gate.undo(done.meta.event_id)).ok
        assert at.text() == before
        assert len(list(copies.iterdir())) == 3
        await at.data("fs.append", path=NOTES, text="- notes have none\n")
        assert not at.file("garden:users/me/history").exists()
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
