"""Lint, caps and repairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.garden.plot import PROFILE, plot

from toolgate.core.names import HUMAN
from toolgate.features.garden import edits, lint
from toolgate.features.garden.grammar import read
from toolgate.features.garden.layout import Place, template

PART = Place("me", "part", "work")
TEXT = template("part", "me", "work")


def said(text: str, **more: object) -> list[tuple[str, str, int]]:
    return [
        (one.rule, one.severity, one.line)
        for one in lint.check(read(text.encode()), PART, lambda kind, ident: ident == "ana")
    ]


def into(anchor: str, text: str) -> str:
    return edits.append(TEXT.encode(), anchor, text).decode()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TEXT, []),
        (into("evidence", "\n".join(f"- e{n}" for n in range(8))), [("evidence-cap", "cap", 17)]),
        (into("evidence", "- all\n" + "\n".join(f"  - e (ev:e{n})" for n in range(8))), [("evidence-cap", "cap", 17)]),
        (into("evidence", "\n\n".join(f"e (ev:e{n})" for n in range(8))), [("evidence-cap", "cap", 17)]),
        (into("evidence", "\n".join(f"- e{n}\n  more (ev:e{n})" for n in range(7))), []),
        (into("concerns", "word " * 201), [("section-length", "warning", 11), ("whitespace", "warning", 13)]),
        (into("concerns", ("word " * 401).strip()), [("section-length", "cap", 11)]),
        (TEXT.replace("## Concerns", "## Worries"), [("heading", "warning", 11)]),
        (TEXT + "\n## More\n", [("heading", "warning", 23)]),
        (TEXT.replace("## Concerns", "## C\u043encerns"), [("look-alike", "warning", 11), ("heading", "warning", 11)]),
        (TEXT + "\n## Str\u0435ngths\n", [("look-alike", "warning", 23), ("heading", "warning", 23)]),
        (TEXT + "\n## \u0417\u0430\u0431\u043e\u0442\u044b\n", [("heading", "warning", 23)]),
        (TEXT.rstrip("\n"), [("whitespace", "warning", 21)]),
        (TEXT.replace("# Work\n", "# Work\r\n"), [("whitespace", "warning", 0)]),
        (into("concerns", "- late\n- Late."), [("duplicate", "warning", 14)]),
        (into("concerns", "- he is late\n- he is not late"), [("contradiction", "warning", 14)]),
        (into("concerns", "It hurts (ev:a1)."), [("dangling", "warning", 13)]),
        (into("concerns", "With rel:ana and rel:eve."), [("dangling", "warning", 13)]),
        (TEXT.replace("<!-- @anchor: concerns v1 -->\n", ""), [("anchors", "blocked", 0), ("heading", "warning", 11)]),
        (TEXT.replace("id: work", "id: play", 1), [("identity", "blocked", 1)]),
        (TEXT.replace("garden/1", "garden/2"), [("schema", "blocked", 1)]),
        (TEXT.partition("---\n# ")[2], [("identity", "blocked", 1)] * 3),
        (TEXT + "<<<<<<< mine\n", [("conflict-marker", "blocked", 22)]),
        (into("concerns", "\u202eRight to left \U0001f33b").replace("\n", "\r\n"), []),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_named_with_its_line(
    text: str, found: list[tuple[str, str, int]]
) -> None:
    assert said(text) == found


def test_all_that_can_be_mended_is() -> None:
    spoiled = (
        TEXT.replace("## Concerns", "## Worries ")
        .replace("<!-- @anchor: strengths v1 -->\n", "")
        .replace("id: work", "id: play", 1)
    )
    spoiled += "\n## Again\n<!-- @anchor: summary v1 -->\ntext  "
    mended = edits.fixed(spoiled.encode(), PART).decode()
    assert [one for one in said(mended) if one[1] == "blocked"] == []
    assert "text" in mended
    assert edits.fixed(mended.encode(), PART).decode() == mended
    bare = TEXT.partition("schema: garden/1\n---\n")[2]
    assert edits.fixed(bare.encode(), PART).decode() == (
        f"---\nid: work\nuser_id: me\nschema: garden/1\n---\n{bare}"
    )
    alike = TEXT.replace("## Concerns\n<!-- @anchor: concerns v1 -->\n", "## C\u043encerns\n")
    assert "## Concerns\n<!-- @anchor: concerns v1 -->" in edits.fixed(alike.encode(), PART).decode()
    assert "## C\u043encerns\n<!--" not in edits.fixed(alike.encode(), PART).decode(), (
        "it passes for no other"
    )


async def test_a_cap_is_passed_only_with_a_reason_that_is_kept(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        items = [f"said so {n} (ev:e{n})" for n in range(8)]
        args = {
            "path": PROFILE,
            "section_anchor": "evidence v1",
            "ops": ["append"],
            "items": items,
            "reason": "notes of Monday",
        }
        refused = await at.gate.call("md.curate_list", args)
        assert refused.error is not None
        assert refused.error.code == "invalid_args"
        assert "override_rationale" in refused.error.fix
        done = await at.data(
            "md.curate_list", **args, override_rationale="all eight are needed for the review"
        )
        assert "all eight are needed" in at.text().partition("change_log")[2]
        assert [one for one in done["lint"] if "evidence-cap" in one]
        event = (await at.garden.history(PROFILE))[0]
        assert event.override_rationale == "all eight are needed for the review"
        again = await at.data("md.curate_list", **args)
        assert (again["changed"], len(again["skipped"])) == (False, 8)
        other = await at.call("fs.append", path=PROFILE, text="\n## More\nmore\n")
        assert other.ok, other.error  # it passes no cap further


async def test_lint_propose_and_sections_are_read_by_the_documents_names(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        assert await at.data("lint.check", path="users/me/overview.md") == {
            "path": "garden:users/me/overview.md", "warnings": [], "blocked": False, "blocked_reasons": [], "fixable": 0,
        }  # fmt: skip
        before = at.text()
        found = await at.data(
            "propose_change", path=PROFILE, sectionAnchor="concerns v1", replace="Late again."
        )
        assert "+Late again." in found["diff"]
        assert "history" not in found["diff"], "the copy would be the whole file once more"
        alone = {"path": PROFILE, "section_anchor": "summary v1", "append": "Knows rel:eve."}
        assert "there is no rel:eve" in (await at.data("propose_change", **alone))["safety_report"]
        assert (found["safety_report"], found["requires_approval"]) == (
            "no rule is broken; lint is clean",
            False,
        )
        bad = await at.data("propose_change", path=PROFILE, content="# Gone\n")
        assert "garden:identity" in bad["safety_report"]
        assert at.text() == before
        await at.data("md.patch_section", path=PROFILE, section_anchor="concerns", replace="Late again.")
        section = await at.data("fs.read", path=PROFILE, section_anchor="concerns v1")
        assert (
            section["range_slices"][0]["content"]
            == "## Concerns\n<!-- @anchor: concerns v1 -->\nLate again.\n\n"
        )
        listed = await at.data("md.list_sections", path=PROFILE)
        hashed = await at.data("fs.hash", path=PROFILE, sectionAnchor="concerns v1")
        assert hashed["hash"] == listed["sections"][1]["hash"] == section["hash"]
        assert not (await at.call("fs.read", path=PROFILE, section_anchor="nowhere v1")).ok


async def test_a_line_that_cites_something_says_when_that_is_gone_or_changed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    async with plot(tmp_path) as at:
        await at.data(
            "md.patch_section",
            path=PROFILE,
            section_anchor="concerns",
            replace="- see project:a.py:2@3fc4ccfe and event:1\n- and event:99999, project:gone.py, 10:30, https://x.org",
        )
        assert [one["cites"] for one in (await at.data("md.list_sections", path=PROFILE))["stale"]] == [
            "event:99999",
            "project:gone.py",
        ]
        linted = await at.data("md.lint", path=PROFILE)
        assert linted["warnings"] == [
            "line 14: there is no event 99999 (stale)",
            "line 14: project:gone.py is gone (stale)",
        ]
        read = {"path": PROFILE, "section_anchor": "concerns"}
        told = await at.data("fs.read", **read)
        assert [(one["line"], one["cites"]) for one in told["stale"]] == [
            (14, "event:99999"), (14, "project:gone.py"),
        ]  # fmt: skip
        assert "stale" not in await at.data("fs.read", path=PROFILE, section_anchor="evidence")
        assert "stale" not in await at.data("fs.read", path=PROFILE, ranges=[[1, 13]])
        (tmp_path / "gone.py").write_text("")
        assert [one["cites"] for one in (await at.data("fs.read", **read))["stale"]] == ["event:99999"]
        (tmp_path / "gone.py").unlink()
        (tmp_path / "a.py").write_text("one\nthree\n")
        stale = {one.line: one.stale for one in await at.garden.provenance(PROFILE) if one.stale}
        assert stale == {13: "project:a.py:2 has changed", 14: "project:gone.py is gone"}


async def test_a_broken_file_is_told_and_mended_by_a_human_alone(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        at.file().write_text(at.text().replace("<!-- @anchor: concerns v1 -->\n", "My own words.\n"))
        noticed = await at.garden.notice("me")
        assert [edit.path for edit in noticed] == [PROFILE]
        assert "lost its anchor `concerns v1`" in noticed[0].lint[0]
        assert (await at.data("md.lint", path=PROFILE))["blocked"]
        refused = await at.call("garden.fix", path=PROFILE)
        assert refused.error is not None
        assert (await at.gate.call("garden.fix", {"path": PROFILE}, persona=HUMAN)).ok
        assert "## Concerns\n<!-- @anchor: concerns v1 -->\nMy own words.\n" in at.text()
        who = {one.text: one.who for one in await at.garden.provenance(PROFILE)}
        assert who["My own words."] == "a person"
