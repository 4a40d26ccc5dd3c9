"""The garden's pages without a browser: what they show to whom, and what they refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from faces.http.serving import house
from toolgate.core.names import HUMAN
from toolgate.features.garden import pages
from toolgate.storage.port import Filter

CONFIG: dict[str, Any] = {
    "version": 1, "default_persona": "tender", "mounts": {"garden": {"path": "garden"}},
    "personas": {"tender": {"phase": "observe", "mounts": ["garden"]}, "other": {"phase": "observe", "mounts": ["garden"], "user": "bob"}},
}  # fmt: skip
NOTES = "garden:users/me/notes.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "garden").mkdir(parents=True)
    (made / "secret.md").write_text("not of the garden")
    return made


async def test_an_empty_garden_and_none_at_all_say_how_to_begin(root: Path) -> None:
    async with house(root, CONFIG) as here, here.browser() as client:
        page = (await client.get(f"{here.site.base}/garden")).text
        assert "toolgate garden init" in page
        assert "Nothing grows here yet" in page
    without = CONFIG | {"mounts": {}, "personas": {"tender": {"phase": "observe"}}}
    async with house(root, without) as here, here.browser() as client:
        assert "This project has no garden" in (await client.get(f"{here.site.base}/garden")).text


async def test_only_files_of_the_garden_are_shown_and_a_persona_chooses_its_users(root: Path) -> None:
    async with house(root, CONFIG) as here, here.browser() as client:
        base = here.site.base
        for user in ("me", "bob"):
            assert (await here.gate.call("garden.add", {"kind": "user", "user": user}, persona=HUMAN)).ok
        everybody = (await client.get(f"{base}/garden")).text
        assert "users/me/notes.md" in everybody
        assert "users/bob/notes.md" in everybody
        his = (await client.get(f"{base}/garden?persona=other")).text
        assert "users/bob/notes.md" in his
        assert "users/me/notes.md" not in his
        for path in (
            "project:secret.md",
            "garden:../secret.md",
            "secret.md",
            "garden:users/me",
            "garden:users/me/.env",
            "nowhere:x",
        ):
            answer = await client.get(f"{base}/garden/file/{path}", headers={"Accept": "text/html"})
            assert answer.status_code == 404, path
            assert "not of the garden" not in answer.text
        unknown = await client.get(f"{base}/garden/version/{NOTES}?of=999", headers={"Accept": "text/html"})
        assert unknown.status_code == 404


async def test_a_long_list_comes_in_pages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FILES", 2)
    async with house(root, CONFIG) as here, here.browser() as client:
        base = here.site.base
        for user in ("me", "bob"):
            await here.gate.call("garden.add", {"kind": "user", "user": user}, persona=HUMAN)
        first = (await client.get(f"{base}/garden")).text
        assert "users/me/" not in first
        after = first.split("after=", 1)[1].split('"', 1)[0]
        second = (await client.get(f"{base}/garden?after={after}")).text
        assert "users/bob/" not in second
        assert "More files" not in second


async def test_bringing_back_needs_the_session_and_its_form_and_is_recorded(root: Path) -> None:
    async with house(root, CONFIG) as here:
        base, gate = here.site.base, here.gate
        await gate.call("garden.add", {"kind": "user", "user": "me"}, persona=HUMAN)
        (begun,) = await gate.feature("garden").history(NOTES)
        file = root / "garden/users/me/notes.md"
        before = file.read_text()
        file.write_text(before + "\nA line of a person.\n")
        given = {"version": str(begun.event), "reason": "as it was"}
        async with here.browser() as client:
            assert (await client.post(f"{base}/garden/restore/{NOTES}", data=given)).status_code == 403
            assert "A line of a person." in file.read_text()
            form = given | {"csrf": here.csrf["X-CSRF-Token"]}
            wrong = await client.post(f"{base}/garden/restore/{NOTES}", data=form | {"version": "0"})
            assert wrong.status_code in (404, 409)
            done = await client.post(f"{base}/garden/restore/{NOTES}", data=form)
            assert done.status_code == 303
        assert "A line of a person." not in file.read_text()
        (row,) = await gate.events(Filter(tool="garden.restore", kinds=("committed",)))
        assert row.persona == HUMAN
        versions = await gate.feature("garden").history(NOTES)
        assert [one.who for one in versions][1:] == ["a person", HUMAN], (
            "and what the person wrote is a version"
        )


async def test_a_file_that_breaks_a_rule_offers_its_repair_and_what_is_from_outside_is_marked(
    root: Path,
) -> None:
    async with house(root, CONFIG) as here, here.browser() as client:
        await here.gate.call("garden.add", {"kind": "user", "user": "me"}, persona=HUMAN)
        path = "garden:users/me/overview.md"
        edit = {
            "path": path,
            "section_anchor": "summary",
            "append": "Rich.",
            "evidence_refs": ["https://x.org"],
        }
        assert (await here.gate.call("md.patch_section", edit, persona="tender")).ok
        page = f"{here.site.base}/garden/file/{path}"
        whole = (await client.get(page)).text
        assert "A rule is broken." not in whole
        assert re.search(
            r"<summary[^>]*>(?:(?!</summary>).)*tender(?:(?!</summary>).)*outside", whole, re.DOTALL
        )
        file = root / "garden/users/me/overview.md"
        text = file.read_text()
        file.write_text(text.replace("<!-- @anchor: themes v1 -->\n", ""))
        assert f"<code>toolgate garden fix {path}</code> mends it" in (await client.get(page)).text
        file.write_text(text + "<<<<<<< mine\n")
        assert "Mend it by hand, or bring a version back" in (await client.get(page)).text
