"""The document's flows, end to end, on both databases; and rows that only their owner reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.garden.plot import CONFIG, PROFILE, plot

import toolgate
from toolgate.core.errors import SetupError
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.features.garden import commands, lint_cache
from toolgate.kits.words import undo_in_words

NOTES = "garden:users/me/notes.md"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    found: str = request.getfixturevalue("postgres_server").fresh_dsn()
    return found


async def test_the_flows_of_the_document_end_in_the_events_copies_and_log_lines_that_it_says(
    tmp_path: Path, database: str | None
) -> None:
    async with plot(tmp_path, database) as at:
        # profile section update
        before = at.text()
        assert "Concerns" in (await at.data("fs.read", path=PROFILE))["content"]
        found = await at.data("md.list_sections", path=PROFILE)
        hash_of = {one["anchor"]: one["hash"] for one in found["sections"]}
        made = await at.data(
            "md.patch_section", path=PROFILE, sectionAnchor="concerns v1", change={"replace": "Deadlines, since May."},
            opts={"ifMatch": hash_of["concerns v1"], "rationale": "talk of Monday", "evidenceRefs": ["ev:m1"]},
        )  # fmt: skip
        assert at.text(made["history_path"]) == before
        assert not (await at.data("md.lint", path=PROFILE))["blocked"]
        logged = await at.data(
            "events.log", type="profile_update", op="replace_section", section_anchor="concerns v1", file_path=PROFILE,
            rationale="talk of Monday", evidence_refs=["ev:m1"], before_hash=made["before_hash"], after_hash=made["after_hash"],
        )  # fmt: skip
        assert logged["event_id"] > 0
        assert (
            "replace_section concerns v1 by tender; talk of Monday (ev:m1)"
            in at.text().partition("change_log")[2]
        )
        # a second writer that read before that
        stale = await at.call(
            "md.patch_section",
            path=PROFILE,
            section_anchor="concerns v1",
            replace="Nothing.",
            if_match=hash_of["concerns v1"],
        )
        assert stale.error is not None
        assert stale.error.code == "conflict"
        assert "Deadlines, since May." in stale.data["now"]
        assert "Nothing." in stale.data["yours"]
        # evidence item, by the document's spelling; once more changes nothing
        item = {
            "path": PROFILE,
            "sectionAnchor": "evidence v1",
            "op": "append",
            "item": '"too much" (ev:m1)',
            "reason": "quote",
        }
        first, again = await at.data("md.curate_list", **item), await at.data("md.curate_list", **item)
        assert (first["changed"], again["changed"], first["op"]) == (True, False, "append_item")
        # by key: the second call gives back what the first gave
        keyed = {"path": PROFILE, "section_anchor": "summary v1", "append": "Works a lot."}
        one = await at.gate.call("md.patch_section", keyed, key="k1")
        two = await at.gate.call("md.patch_section", keyed, key="k1")
        assert one.ok
        assert one.data == two.data
        assert at.text().count("Works a lot.") == 1
        # grep and note capture
        hits = await at.data("code.search", pattern="Deadlines", paths=["garden:users/me"])
        assert [hit["file"] for hit in hits["matches"] if "history" not in hit["file"]] == [PROFILE]
        await at.data("fs.append", path=NOTES, text="- deadlines come up again\n")
        await at.data(
            "events.log",
            type="observation",
            op="append_section",
            file_path=NOTES,
            rationale="captured theme in notes",
        )
        snapshot = await at.data("md.snapshot_history", path=NOTES)
        assert at.text(snapshot["history_path"]) == at.text(NOTES)
        # propose
        proposed = await at.data("propose_change", path=PROFILE, section_anchor="concerns v1", append="More.")
        assert "+More." in proposed["diff"]
        # what it ends in
        rows = (await at.data("events.query", type="profile_update"))["rows"]
        assert [row["section_anchor"] for row in rows] == ["concerns v1"]
        versions = [(one.op, one.section, one.who) for one in await at.garden.history(PROFILE)]
        assert versions == [
            ("append_section", "summary v1", "tender"), ("append_item", "evidence v1", "tender"),
            ("replace_section", "concerns v1", "tender"), ("add", "", "tender"),
        ]  # fmt: skip
        settled = [
            row.body
            for row in await at.gate.events()
            if row.kind == "committed" and row.tool == "md.patch_section"
        ]
        words = ("line_hash", "integrity_salt_version", "before_hash", "after_hash", "talk of Monday")
        assert [body for body in settled if all(word in body for word in words)]
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        assert (await at.gate.verify()).ok


async def test_the_owner_reads_and_the_service_writes(
    tmp_path: Path, postgres_server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint_cache, "_YOUNG_NS", -1_000_000_000)  # what lint finds is kept at once
    server = postgres_server
    dsn = server.fresh_dsn()  # type: ignore[attr-defined]
    async with plot(tmp_path, dsn) as at:
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", append="Mine alone.")
        await at.gate.call(
            "fs.append", {"path": "garden:users/bob/notes.md", "text": "- his\n"}, persona="stranger"
        )
        await at.garden.notice()
        assert await at.garden.lint_all() == await at.garden.lint_all()
    import asyncpg

    db = await asyncpg.connect(dsn)
    try:
        for role in ("me", "bob", "eve"):
            await db.execute(f"DROP ROLE IF EXISTS {role}")
            await db.execute(f"CREATE ROLE {role} NOSUPERUSER")
            await db.execute(f"GRANT ALL ON garden_edits, garden_versions, garden_lint TO {role}")
        for role, sees in (("me", {"me"}), ("bob", {"bob"}), ("eve", set())):
            await db.execute(f"SET ROLE {role}")
            for table in ("garden_edits", "garden_versions", "garden_lint"):
                rows = await db.fetch(f"SELECT user_id FROM {table}")
                assert {row["user_id"] for row in rows} == sees, table
            assert await db.execute("UPDATE garden_lint SET findings = ''") == "UPDATE 0"
            assert await db.execute("UPDATE garden_edits SET rationale = 'forged'") == "UPDATE 0"
            assert await db.execute("DELETE FROM garden_versions") == "DELETE 0"
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await db.execute("INSERT INTO garden_versions VALUES ($1, 'x', '')", role)
            await db.execute("RESET ROLE")
    finally:
        for role in ("me", "bob", "eve"):
            await db.execute(f"DROP OWNED BY {role}")
            await db.execute(f"DROP ROLE {role}")
        await db.close()


async def test_a_row_that_somebody_forged_is_found(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", append="True.")
        await at.garden.notice()
        tables = await at.gate.features["garden"].tables()
        await tables.execute(
            "UPDATE garden_edits SET line_hash = 'x', section_hashes = '{}' WHERE path = ?", PROFILE
        )
        found = [one for one in await at.garden.verify("me") if one.state != "ok"]
        assert [(one.path, one.state) for one in found] == [(PROFILE, "forged")]


async def test_a_new_key_leaves_what_was_recorded_under_the_old_one_provable(tmp_path: Path) -> None:
    async with plot(tmp_path, None) as at:
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", append="Before.")
        await at.garden.notice()
        ledger = at.gate.services.ledger
        ledger.keys = ledger.keys.rotated()
        await at.data("md.patch_section", path=PROFILE, section_anchor="summary", append="After.")
        await at.garden.notice()
        edits = await at.garden.record.edits(MountPath(PROFILE))
        assert [edit.integrity_salt_version for edit in edits][-2:] == [1, 2]
        at.file().write_text(at.text().replace("Before.", "Altered."))
        changed = next(one for one in await at.garden.verify("me") if one.state != "ok")
        assert (changed.state, changed.sections) == ("changed", ["concerns v1"])


async def test_a_summary_is_trusted_no_more_than_what_it_sums_up(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        where = {"path": PROFILE, "section_anchor": "evidence v1", "reason": "x"}
        await at.data("md.curate_list", **where, ops="append", items=["own words"])
        await at.data(
            "md.curate_list",
            **where,
            ops="append",
            items=["from the web"],
            evidence_refs=["https://example.org/x"],
        )
        trust = {one.text: one.trust for one in await at.garden.provenance(PROFILE)}
        assert (trust["- own words"], trust["- from the web"]) == ("agent", "outside")
        await at.data(
            "md.curate_list",
            **where,
            ops="merge",
            items=[{"from": ["own words", "from the web"], "into": "both"}],
        )
        trust = {one.text: one.trust for one in await at.garden.provenance(PROFILE)}
        assert trust["- both"] == "outside"


async def test_restoring_is_a_recorded_edit_that_loses_nothing(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        first = await at.call("md.patch_section", path=PROFILE, section_anchor="concerns", replace="One.")
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", replace="Two.")
        two = at.text()
        assert "-One." in await at.garden.diff(PROFILE, str(first.meta.event_id))
        done = await at.garden.restore(PROFILE, str(first.meta.event_id), "Two was wrong")
        assert done.ok, done.error
        assert "One." in at.text()
        assert "Two was wrong" in at.text().partition("change_log")[2]
        assert any(two == path.read_text() for path in at.file().parent.glob("history/*.md"))
        assert not (await at.call("garden.restore", path=PROFILE, version="1")).ok
        assert (await at.gate.undo(done.meta.event_id)).ok
        assert at.text() == two
        assert (await at.gate.call("garden.fix", {"path": PROFILE}, persona=HUMAN)).data["changed"] is False


async def test_a_question_says_that_a_new_file_of_a_garden_stays(tmp_path: Path) -> None:
    rules = {"rules": [{"name": "asks", "tools": ["garden.add", "md.patch_section"], "decision": "ask"}]}
    async with plot(tmp_path) as at:
        made = (await at.call("garden.add", kind="part", id="play")).meta.event_id
        undone = await at.gate.undo(made, wait=False)
        assert not undone.ok
    async with plot(tmp_path, policy=rules) as at:
        await at.gate.call("garden.add", {"kind": "part", "id": "home"}, wait=False)
        edit = {"path": PROFILE, "section_anchor": "summary v1", "append": "Hello."}
        await at.gate.call("md.patch_section", edit, wait=False)
        add, patch = sorted(await at.gate.approvals(), key=lambda one: one.tool)
        assert (add.undoable, undo_in_words(add)) == (False, "no: nothing is deleted in the mount garden")
        assert (patch.undoable, undo_in_words(patch)) == (True, "yes")


async def test_the_documents_spellings_are_taken_and_given(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        where = {"path": PROFILE, "sectionAnchor": "concerns v1"}
        opts = {"opts": {"idempotencyKey": "k1", "evidenceRefs": ["ev:m1"], "rationale": "talk"}}
        first = await at.data("md.patch_section", **where, change={"replace": "Deadlines."}, **opts)
        assert (first["beforeHash"], first["afterHash"]) == (first["before_hash"], first["after_hash"])
        await at.data("md.patch_section", **where, append="More.")
        again = await at.call("md.patch_section", **where, change={"replace": "Deadlines."}, **opts)
        assert again.data["afterHash"] == first["afterHash"]
        assert "More." in at.text()
        other = await at.call("md.patch_section", **where, replace="x", idempotencyKey="k1")
        assert other.error is not None
        assert "was used for a different call" in other.error.message
        foreign = await at.call("md.patch_section", **where, replace="x", idempotencyKey="j_1")
        assert foreign.error is not None
        assert "a job's" in foreign.error.message
        sections = (await at.data("md.list_sections", path=PROFILE))["sections"]
        assert all(one["startLine"] == one["start_line"] for one in sections)
        assert (await at.data("md.snapshot_history", path=PROFILE))["historyPath"].endswith(".md")
        linted = await at.data("lint.check", path=PROFILE)
        assert (linted["warnings"], linted["blocked"]) == ([], False)
        notes = {"path": "garden:users/me/notes.md"}
        grown = await at.data("fs.append", **notes, text="- seen\n")
        assert (grown["newSize"], grown["newHash"]) == (grown["new_size"], grown["new_hash"])
        patched = await at.data("fs.patch", **notes, diffText="@@ -7 +7 @@\n-- seen\n+- heard\n")
        assert patched["newHash"] == patched["new_hash"]
        assert (await at.data("fs.write", **notes, content=at.text(notes["path"]) + "- felt\n"))["newHash"]
        assert "newHash" not in await at.data("fs.write", path="plain.txt", content="x")
        at.file().write_text(at.text().replace("id: work", "id: play", 1))
        assert len((await at.data("lint.check", path=PROFILE))["blockedReasons"]) == 1
        at.file().write_text(at.text().replace("id: play", "id: work", 1))
        plan = await at.data("propose_change", input={**where, "change": {"append": "Last."}})
        assert "+Last." in plan["diff"]
        assert (plan["safetyReport"], plan["requiresApproval"]) == (plan["safety_report"], False)
        logged = await at.data(
            "events.log",
            input={"type": "profile_update", "filePath": PROFILE, "toolCallId": "t1", "idempotencyKey": "k2"},
        )
        rows = (await at.data("events.query", filters={"type": "profile_update"}))["rows"]
        assert [row["event_id"] for row in rows] == [logged["eventId"]]


async def test_an_edit_made_again_with_the_hash_before_it_gives_what_the_first_gave(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        sections = (await at.data("md.list_sections", path=PROFILE))["sections"]
        known = {one["anchor"]: one["hash"] for one in sections}
        edit = {
            "path": PROFILE,
            "section_anchor": "concerns v1",
            "append": "Late.",
            "if_match": known["concerns v1"],
        }
        item = {"path": PROFILE, "section_anchor": "evidence v1", "ops": "append", "items": ["x"], "reason": "y",
                "if_match": known["evidence v1"]}  # fmt: skip
        for tool, args in (("md.patch_section", edit), ("md.curate_list", item)):
            first = await at.data(tool, **args)
            text = at.text()
            assert await at.data(tool, **args) == first
            assert at.text() == text
        other = await at.call("md.patch_section", **edit | {"append": "Later."})
        assert other.error is not None
        assert other.error.code == "conflict"
        undone = await at.call("md.patch_section", path=PROFILE, section_anchor="summary v1", append="Hello.")
        assert (await at.gate.undo(undone.meta.event_id)).ok
        assert not (await at.call("md.patch_section", **edit)).ok  # whether the undo was of this is not told


async def test_a_restore_keeps_the_lines_of_the_change_log_and_all_anchors(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        first = await at.call("md.patch_section", path=PROFILE, section_anchor="concerns", replace="One.")
        await at.data(
            "md.patch_section", path=PROFILE, section_anchor="concerns", replace="Two.", rationale="second"
        )
        whole = at.text()
        at.file().write_text(whole.replace("<!-- @anchor: strengths v1 -->\n", ""))
        (broken,) = [edit.event for edit in await at.garden.notice("me") if edit.path == PROFILE]
        at.file().write_text(whole)
        await at.garden.notice("me")
        refused = await at.garden.restore(PROFILE, str(broken))
        assert refused.error is not None
        assert (
            "line 16: this version has no anchor `strengths v1` (rule garden:anchors)"
            in refused.error.message
        )
        assert (await at.garden.restore(PROFILE, str(first.meta.event_id))).ok
        log = at.text().partition("change_log v1 -->\n")[2].splitlines()
        assert ["One." in at.text(), len(log), "second" in log[1], "restore" in log[2]] == [
            True,
            3,
            True,
            True,
        ]


async def test_a_section_is_also_named_by_anchor_alone(tmp_path: Path) -> None:
    async with plot(tmp_path) as garden:
        await garden.data(
            "md.patch_section", path=PROFILE, anchor="concerns", change={"append": "- too much"}
        )
        assert (
            "too much"
            in (await garden.data("fs.read", path=PROFILE, anchor="concerns v1"))["range_slices"][0][
                "content"
            ]
        )
        assert await garden.data("fs.hash", path=PROFILE, anchor="concerns v1")


async def test_a_garden_whose_directory_is_not_there_says_how_to_begin(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG) as gate:
        refused = await gate.call("md.list_sections", {"path": PROFILE})
        assert refused.error is not None
        assert "toolgate garden init" in refused.error.fix
        with pytest.raises(SetupError, match="the mount garden has no directory yet"):
            commands._garden(gate)


async def test_a_human_begins_the_garden_that_the_default_persona_tends(tmp_path: Path) -> None:
    (tmp_path / "garden").mkdir()
    personas = {"tender": {"phase": "observe", "user": "alice"}, "other": {"phase": "observe", "user": "bob"}}
    async with toolgate.open(tmp_path, CONFIG | {"personas": personas}, "memory") as gate:
        made = await gate.call("garden.add", {"kind": "user"}, persona=HUMAN)
        assert made.data["user"] == "alice"
        assert (await gate.call("md.list_sections", {"path": "users/alice/overview.md"})).ok
