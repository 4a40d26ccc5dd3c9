"""Attacks on identity, anchors, history and deletion, by every way that leads to a file: all refused, nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from tests.garden.plot import PROFILE, Plot, plot

from sampling import sampled
from toolgate.core.names import HUMAN
from toolgate.core.result import Result
from toolgate.features.jobs.job import Spec
from toolgate.features.jobs.jobs import JobsPort
from toolgate.features.jobs.runner import CallAttempt, JobStep, Slots

pytestmark = pytest.mark.attack
A, B = "<!-- @anchor: concerns v1 -->", "<!-- @anchor: strengths v1 -->"
HEAD_A, HEAD_B = "## Concerns\n", "## Strengths\n"
Mutation = Callable[[str], str]


def swap(text: str) -> str:
    return text.replace(A, "%%").replace(B, A).replace("%%", B)


SPOILED: dict[str, Mutation] = {
    "anchor removed": lambda text: text.replace(A + "\n", ""),
    "anchor in upper case": lambda text: text.replace(A, A.upper()),
    "anchor of another version": lambda text: text.replace("concerns v1", "concerns v2"),
    "anchor renamed": lambda text: text.replace("concerns v1", "worries v1"),
    "anchor with another space": lambda text: text.replace(A, A.replace("@anchor:", "@anchor: ")),
    "anchor with blanks after it": lambda text: text.replace(A, A + "  "),
    "anchor with a soft hyphen": lambda text: text.replace("concerns v1", "con\u00adcerns v1"),
    "anchor of other letters": lambda text: text.replace("concerns v1", "c\u043encerns v1"),
    "anchor indented": lambda text: text.replace(A, "    " + A),
    "anchor in a list": lambda text: text.replace(A, "- " + A),
    "anchor in a quotation": lambda text: text.replace(A, "> " + A),
    "anchor in a fence": lambda text: text.replace(HEAD_A + A, HEAD_A + "```\n" + A + "\n```"),
    "section in a fence": lambda text: text.replace(HEAD_A, "```\n" + HEAD_A).replace(HEAD_B, "```\n" + HEAD_B),
    "section in a comment": lambda text: text.replace(HEAD_A, "<!--\n" + HEAD_A).replace(HEAD_B, "-->\n" + HEAD_B),
    "unclosed fence before it": lambda text: text.replace(HEAD_A, "~~~~\n" + HEAD_A),
    "unclosed comment before it": lambda text: text.replace(HEAD_A, "<!-- hidden\n" + HEAD_A),
    "a div around it": lambda text: text.replace(HEAD_A, "<div>\n" + HEAD_A),
    "a script around all": lambda text: text.replace("# Work\n", "<script>\n# Work\n"),
    "a blank line before the anchor": lambda text: text.replace(HEAD_A, HEAD_A + "\n"),
    "text before the anchor": lambda text: text.replace(HEAD_A, HEAD_A + "text\n"),
    "anchor on the heading's line": lambda text: text.replace(HEAD_A + A, "## Concerns " + A),
    "heading of level 3": lambda text: text.replace(HEAD_A, "### Concerns\n"),
    "heading gone": lambda text: text.replace(HEAD_A, ""),
    "heading with four spaces": lambda text: text.replace(HEAD_A, "    ## Concerns\n"),
    "section twice": lambda text: text.replace(HEAD_A + A, HEAD_A + A + "\n\n" + HEAD_A + A),
    "anchor twice": lambda text: text.replace(A, A + "\n" + A),
    "anchor again at the end": lambda text: text + "\n" + A + "\n",
    "anchor again below another heading": lambda text: text + "\n## More\n" + A + "\n",
    "anchor spelled loosely": lambda text: text + "\n<!--@anchor concerns v1-->\n",
    "anchors swapped": swap,
    "sections in another order": lambda text: text.replace(HEAD_A + A + "\n", "").replace(HEAD_B + B, HEAD_B + B + "\n\n" + HEAD_A + A),
    "headings swapped": lambda text: text.replace(HEAD_A, "@\n").replace(HEAD_B, HEAD_A).replace("@\n", HEAD_B),
    "id": lambda text: text.replace("id: work", "id: play", 1),
    "user_id": lambda text: text.replace("user_id: me", "user_id: bob"),
    "schema": lambda text: text.replace("schema: garden/1", "schema: garden/0"),
    "id said twice": lambda text: text.replace("id: work\n", "id: work\nid: play\n", 1),
    "another key for it": lambda text: text.replace("schema:", "User-ID: bob\nschema:", 1),
    "a key that swallows others": lambda text: text.replace("id: work\n", 'note: "\nid: work\n', 1).replace("garden/1\n", 'garden/1\nend: "\n', 1),
    "identity in another order": lambda text: text.replace("id: work\nuser_id: me\n", "user_id: me\nid: work\n"),
    "identity that goes on": lambda text: text.replace("id: work\n", "id: work\n  bob\n", 1),
    "a key in braces": lambda text: text.replace("---\n# ", "{id: bob}\n---\n# ", 1),
    "a key of other letters": lambda text: text.replace("---\n# ", "i\u0501: bob\n---\n# ", 1),
    "a key with an alias": lambda text: text.replace("---\n# ", "note: *x\n---\n# ", 1),
    "front matter gone": lambda text: text.partition("---\n# ")[2],
    "front matter below": lambda text: "\n" + text,
    "a second front matter": lambda text: "---\nid: play\n---\n" + text,
    "front matter ended early": lambda text: text.replace("user_id: me", "---\nuser_id: me"),
    "front matter with dots": lambda text: text.replace("garden/1\n---", "garden/1\n..."),
    "a byte order mark": lambda text: "\ufeff" + text,
    "front matter with CRLF": lambda text: text.replace("id: work\n", "id: work\r\n", 1),
    "everything gone": lambda text: "",
    "only a heading": lambda text: "# Work\n",
    "a heading between heading and anchor": lambda text: text.replace(A, "## Other\n" + A),
    "an underlined heading between them": lambda text: text.replace(A, "Other\n---\n" + A),
    "anchor moved to a new section": lambda text: text.replace(HEAD_A + A, HEAD_A + "text\n\n## Other\n" + A),
    "a section of the same name before it": lambda text: text.replace(HEAD_A, HEAD_A + "false\n\n" + HEAD_A),
    "the same name below another anchor": lambda text: text.replace(HEAD_A, HEAD_A + "<!-- @anchor: other v1 -->\nfalse\n\n" + HEAD_A),
    "the same name in other letters": lambda text: text.replace(HEAD_A, "## C\u043encerns\nfalse\n\n" + HEAD_A),
    "the same name as a title": lambda text: text.replace(HEAD_A, "# Concerns\nfalse\n\n" + HEAD_A),
    "anchor again over two lines": lambda text: text.replace("# Work\n", "# Work\n<!--\n@anchor: concerns v1 -->\n"),
    "anchor again in mixed case": lambda text: text.replace("# Work\n", "# Work\n\n## More\n<!-- @AnChOr: concerns v1 -->\n"),
    "anchor again in other letters": lambda text: text.replace("# Work\n", "# Work\n\n## More\n<!-- @\u0430nchor: concerns v1 -->\n"),
    "anchor again in wide letters": lambda text: text.replace("# Work\n", "# Work\n\n## More\n<!-- \uff20\uff41nchor: concerns v1 -->\n"),
    "anchor again as v01": lambda text: text.replace("# Work\n", "# Work\n\n## More\n<!-- @anchor: concerns v01 -->\n"),
    "another line end of the anchor": lambda text: text.replace(A + "\n", A + "\r\n"),
    "a second document of YAML": lambda text: text.replace("---\n# ", "---\nid: bob\n---\n# ", 1),
    "a front matter after the first": lambda text: text.replace("---\n# ", "---\n\n---\nuser_id: bob\n---\n# ", 1),
    "log line gone": lambda text: text.replace("- 2026", "- 1999"),
    "log emptied": lambda text: text.partition("<!-- @anchor: change_log v1 -->")[0] + "<!-- @anchor: change_log v1 -->\n",
    "eight pieces of evidence": lambda text: text.replace("evidence v1 -->\n", "evidence v1 -->\n" + "".join(f"- e{n}\n" for n in range(8))),
    "500 words": lambda text: text.replace(A, A + "\n" + "word " * 500),
}  # fmt: skip


def by_write(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "fs.write", {"path": path, "content": new}


def by_edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "fs.edit", {"path": path, "find": old, "replace": new}


def by_patch(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    lines = unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "fs.patch", {
        "diff": "".join(
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
        )
    }


WAYS = (by_write, by_edit, by_patch)
HISTORY = "garden:users/me/parts/work/history/"
OUTSIDE = (
    "garden:x.md", "garden:users/me/x.md", "garden:users/me/profile.md", "garden:users/x", "garden:users/me/parts/work/notes.txt",
    "garden:users/me/parts/overview.md", "garden:users/me/parts/work/deep/profile.md", "garden:users/me/history/notes.md",
    "garden:users/me/relationships/profile.md", "garden:users/me/Notes.md", "garden:users/me/notes.md ",
    HISTORY + "profile.md", HISTORY + "profile.20260101T000000.000000Z.0123456789ab.md", "garden:users/bob/notes.md",
    "garden:users/me/parts/.x/profile.md", "garden:README.md", "garden:users/me/parts/a b/profile.md",
)  # fmt: skip


def attempts(text: str, copy: str) -> list[tuple[str, str, dict[str, Any]]]:
    log = text.rstrip().splitlines()[-1].removeprefix("- ")
    found = [
        (f"{name} {way.__name__}", *way(PROFILE, text, spoil(text)))
        for name, spoil in SPOILED.items()
        for way in WAYS
        if name != "front matter with CRLF" or way is not by_patch
    ]
    for path in OUTSIDE:
        found.append((f"write {path}", "fs.write", {"path": path, "content": "x"}))
        found.append((f"append {path}", "fs.append", {"path": path, "text": "x"}))
    for path in (PROFILE, "garden:users/me/notes.md", "garden:users/me/parts/work", "garden:users/me", copy):
        found.append((f"delete {path}", "fs.delete", {"path": path}))
        found.append((f"move {path}", "fs.move", {"path": path, "new_path": "garden:users/me/parts/gone"}))
        found.append((f"move out {path}", "fs.move", {"path": path, "new_path": "stolen"}))
    found += [
        ("change a copy", "fs.append", {"path": copy, "text": "x"}),
        ("patch a copy", "md.patch_section", {"path": copy, "section_anchor": "concerns v1", "append": "x"}),
        ("delete by patch", "fs.patch", {"diff": f"--- a/{PROFILE}\n+++ /dev/null\n@@ -1,1 +0,0 @@\n----\n"}),
        ("a directory", "fs.ensure_dir", {"path": "garden:users/me/secret"}),
        ("a directory for copies", "fs.ensure_dir", {"path": "garden:users/me/parts/new/history"}),
        ("a wrong profile", "fs.write", {"path": "garden:users/me/parts/new/profile.md", "content": "# New\n"}),
        ("an identity without an end", "fs.write", {"path": "garden:users/me/parts/new/profile.md", "content": "---\nid: new\nuser_id: me\nschema: garden/1\ntitle: x\n# New\n"}),
        ("another's profile", "fs.write", {"path": "garden:users/me/parts/new/profile.md", "content": text}),
        ("a heading", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "replace": "a\n## Strengths\nb"}),
        ("an H1", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "# Top"}),
        ("an underlined heading", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "Top\n---"}),
        ("an open fence", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "```\nx"}),
        ("an open comment", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "<!-- x"}),
        ("an anchor", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": A}),
        ("a section", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": f"## New\n{A}"}),
        ("an anchor as an item", "md.curate_list", {"path": PROFILE, "section_anchor": "evidence v1", "ops": "append", "items": [A], "reason": "x"}),
        ("a cap", "md.curate_list", {"path": PROFILE, "section_anchor": "evidence v1", "ops": "append", "items": [f"e{n}" for n in range(9)], "reason": "x"}),
        ("the log", "md.patch_section", {"path": PROFILE, "section_anchor": "change_log v1", "replace": "Nothing happened."}),
        ("the log's items", "md.curate_list", {"path": PROFILE, "section_anchor": "change_log", "ops": "prune", "items": [log], "reason": "x"}),
        ("a reason", "md.patch_section", {"path": PROFILE, "section_anchor": "concerns v1", "append": "x", "rationale": A}),
        ("a title", "garden.add", {"kind": "part", "id": "new", "title": A}),
        ("an id", "garden.add", {"kind": "part", "id": "../../bob"}),
        ("a fix", "garden.fix", {"path": PROFILE}),
        ("a restore", "garden.restore", {"path": PROFILE, "version": "1"}),
        ("an undo", "ledger.undo", {"events": [1]}),
    ]  # fmt: skip
    return found


async def _unchanged(at: Plot, name: str, result: Result, before: dict[str, bytes]) -> None:
    assert result.error is not None, (name, result.data)
    assert result.error.fix, name
    assert tree(at.root) == before, name
    assert result.meta.event_id is not None, (name, "nothing was recorded")


def tree(root: Path) -> dict[str, bytes]:
    places = [root / "garden", root / "stolen"]
    return {
        str(path): path.read_bytes()
        for place in places
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


async def test_no_tool_spoils_a_garden_and_every_attempt_is_recorded(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        made = await at.data("md.patch_section", path=PROFILE, section_anchor="summary v1", append="Hello.")
        text, before = at.text(), tree(tmp_path)
        every = attempts(text, made["history_path"])
        assert len(every) >= 200
        for name, tool, args in sampled(every, 70, "attacks on the garden"):
            await _unchanged(at, name, await at.gate.call(tool, args), before)


async def test_a_job_is_held_to_the_same_rules(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        before = tree(tmp_path)
        for name in ("anchor removed", "id"):
            tool, args = by_write(PROFILE, at.text(), SPOILED[name](at.text()))
            step = JobStep("j_1", Spec("call", {"tool": tool, "args": args}, "tender"), 1, tool, args)

            async def tell(news: Any) -> None:
                return None

            await CallAttempt(JobsPort(at.gate), step, tell, Slots(1)).make()
            assert tree(tmp_path) == before
        denied = [row for row in await at.gate.events() if row.kind == "denied"]
        assert {row.tool for row in denied} == {"fs.write"}


async def test_the_human_is_held_to_them_too_and_the_rule_and_line_are_named(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        for name, rule, line in (
            ("anchor removed", "anchors", 12),
            ("id", "identity", 2),
            ("anchors swapped", "anchors", 12),
        ):
            tool, args = by_write(PROFILE, at.text(), SPOILED[name](at.text()))
            result = await at.gate.call(tool, args, persona=HUMAN, wait=False)
            assert result.error is not None
            assert (result.error.code, f"garden:{rule}" in result.error.message) == ("blocked_path", True), (
                result.error
            )
            assert f"line {line}:" in result.error.message, result.error.message


async def test_headings_are_not_swapped_by_way_of_other_names(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        await at.data("fs.edit", path=PROFILE, find=HEAD_A, replace="## Worries\n")
        await at.data("fs.edit", path=PROFILE, find=HEAD_B, replace="## Powers\n")
        swapped = await at.call("fs.edit", path=PROFILE, find="## Worries\n", replace=HEAD_B)
        assert swapped.error is not None
        assert "moved to the section 'Strengths'" in swapped.error.message


async def test_undo_takes_back_no_repair_of_an_anchor(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        at.file().write_text(at.text().replace(A + "\n", ""))
        fixed = await at.gate.call("garden.fix", {"path": PROFILE}, persona=HUMAN)
        assert fixed.ok, fixed.error
        assert A in at.text()
        assert not (await at.gate.undo(fixed.meta.event_id)).ok
        assert A in at.text()


async def test_a_change_that_no_gate_has_planned_is_stopped_where_it_is_applied(tmp_path: Path) -> None:
    from toolgate.core.change import Change, FileChange
    from toolgate.core.errors import BlockedPath
    from toolgate.core.paths import MountPath

    async with plot(tmp_path) as at:
        old = at.file().read_bytes()
        change = Change((FileChange(MountPath(PROFILE), old, old.replace(b"id: work", b"id: play")),))
        assert at.gate.files is not None
        with pytest.raises(BlockedPath, match="identity"):
            await at.gate.files.apply(change)
        assert at.file().read_bytes() == old


async def test_a_program_in_the_sandbox_neither_sees_nor_changes_the_garden(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "os.chdir(os.environ['PROJECT'])\n"
        "print('seen:', sorted(str(path) for path in pathlib.Path('.').rglob('*.md')))\n"
        "place = pathlib.Path('garden/users/me/parts/work')\n"
        "place.mkdir(parents=True, exist_ok=True)\n"
        "(place / 'profile.md').write_text('spoiled')\n"
    )
    (tmp_path / "readme.txt").write_text("x")
    async with plot(tmp_path) as at:
        before = tree(tmp_path)
        result = await at.gate.call("exec.python", {"code": code, "project": "overlay"})
        assert result.ok, result.error
        assert result.data["stdout"] == "seen: []\n"
        assert result.data["proposal"]["state"] != "applied", result.data["proposal"]
        assert "another mount" in result.data["proposal"]["error"]["message"]
        assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "more",
    ['"id": bob', "? user_id\n: bob", "id : bob", "id: bob", "{id: bob}", "<<: {id: bob}", "title: x\u2028id: bob", "id:\tbob", " bob",
     "userId: bob", "i\u0501: bob", "title: x\n---\nid: bob"],
)  # fmt: skip
async def test_a_new_file_says_its_identity_once_and_plainly(tmp_path: Path, more: str) -> None:
    async with plot(tmp_path) as at:
        path, first = PROFILE.replace("work", "play"), "id: play\nuser_id: me\nschema: garden/1\n"
        wrong = await at.call("fs.write", path=path, content=f"---\n{first}{more}\n---\n# Play\n")
        assert wrong.error is not None
        assert "garden:identity" in wrong.error.message
        right = f"---\n{first}title: it's: all\nparticipants:\n  - ana\n- ben\n---\n# Play\n"
        await at.data("fs.write", path=path, content=right)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (HEAD_A, "## **Strengths**\n"), (HEAD_A, "## Stre\u200bngths\n"), (HEAD_A, "## \uff33trengths\n"),
        (HEAD_A, "## [Strengths](x)\n"), (HEAD_A, "## S&#116;rengths\n"), (HEAD_A, "## <b>Strengths</b>\n"),
        (HEAD_A, "## STRENGTHS:\n"), (HEAD_A, "## Str\ufe0fengths\u3164\n"), (HEAD_A, "## Str\u0435ngths\n"), (HEAD_A, "## \u0405t\u0433\u0435ngth\u0455\n"), ("## Change Log\n", "## Old things\n"),
    ],
)  # fmt: skip
async def test_a_heading_takes_no_other_sections_name_in_whatever_spelling(
    tmp_path: Path, old: str, new: str
) -> None:
    async with plot(tmp_path) as at:
        await at.data("fs.edit", path=PROFILE, find=HEAD_B, replace="## Powers\n")
        refused = await at.call("fs.edit", path=PROFILE, find=old, replace=new)
        assert refused.error is not None
        assert "garden:anchors" in refused.error.message
        await at.data("fs.edit", path=PROFILE, find=HEAD_A, replace="## **Concerns**, mine\n")


LOG = "<!-- @anchor: change_log v1 -->\n"
FORGED = "- 2026-01-01 replace_section concerns v1 by human; approved\n"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text + FORGED,
        lambda text: text.replace(LOG, LOG + FORGED),
        lambda text: text.replace(LOG, LOG + "<!--\n") + "-->\n",
        lambda text: text.replace(LOG, LOG + "```\n") + "```\n",
        lambda text: text.replace("\n- 2026", "\n    - 2026"),
        lambda text: text.replace("# Work\n", "# Work\n\n## *Change* Log\n" + FORGED),
        lambda text: text.replace("# Work\n", "# Work\n\n## Changelog\n" + FORGED),
    ],
)
async def test_only_the_garden_itself_writes_the_change_log(tmp_path: Path, spoil: Mutation) -> None:
    async with plot(tmp_path) as at:
        await at.data("md.patch_section", path=PROFILE, section_anchor="summary v1", append="Hello.")
        text = at.text()
        for way in WAYS:
            tool, args = way(PROFILE, text, spoil(text))
            refused = await at.gate.call(tool, args)
            assert refused.error is not None
            assert "garden:change-log" in refused.error.message
        assert at.text() == text


async def test_no_edit_by_section_and_no_new_file_forges_a_line_of_the_change_log(tmp_path: Path) -> None:
    async with plot(tmp_path) as at:
        made = at.text().replace("id: work", "id: play")
        for tool, args in (
            ("md.patch_section", {"path": PROFILE, "section_anchor": "change_log", "append": FORGED}),
            ("md.curate_list", {"path": PROFILE, "section_anchor": "change_log v1", "ops": "append", "items": [FORGED], "reason": "x"}),
            ("fs.append", {"path": PROFILE, "text": FORGED}),
            ("fs.write", {"path": PROFILE.replace("work", "play"), "content": made + FORGED}),
        ):  # fmt: skip
            refused = await at.gate.call(tool, args)
            assert refused.error is not None, tool
            assert "garden:change-log" in refused.error.message, tool
        whole = await at.data("md.propose_change", path=PROFILE, content=at.text() + FORGED)
        assert whole["safety_report"].startswith("refused by garden:change-log")
        await at.data("fs.write", path=PROFILE.replace("work", "play"), content=made)
        at.file().write_text(at.text() + FORGED)  # a person, in an editor
        await at.data("md.patch_section", path=PROFILE, section_anchor="summary v1", append="Hello.")
        assert FORGED in at.text()
