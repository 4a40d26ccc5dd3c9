"""The garden in a real browser: what it holds, who wrote it, what it was, and bringing that back; at a desk and on a phone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import Visit
from e2e.test_pages import AXE, TOLD
from e2e.world import World
from toolgate.core.names import HUMAN
from toolgate.storage.port import Filter

PROFILE = "garden:users/me/parts/work/profile.md"
PHONE = {"width": 390, "height": 844}
HOSTILE = (
    "Likes <script>alert(1)</script> and <img src=x onerror=alert(2)>, see [the plan](javascript:alert(3)), "
    "[a site](https://example.com/a) and ![a picture](https://example.com/p.png).\u202e\n"
)
SHOTS = os.environ.get("TOOLGATE_SHOTS", "")
"""A directory for pictures of the pages, for whoever wants to look at them."""


@pytest.fixture(scope="module")
def grown(world: World) -> World:
    """A profile that an agent, a stranger's page and a person wrote."""
    gate = world.gate
    for args in (
        {"kind": "user", "user": "me"},
        {"kind": "part", "id": "work", "user": "me"},
        {"kind": "user", "user": "bob"},
    ):
        made = world.do(gate.call("garden.add", args, persona=HUMAN))
        assert made.ok, made.error
    for anchor, text, why, evidence in (
        ("summary v1", "Works on **prices** and receipts.\n\nMoved to Köln in May.\n", "said in the first talk", []),
        ("concerns v1", "- too many meetings (ev:m1)\n- rounding of discounts\n", "from the notes", ["https://example.com/notes"]),
        ("strengths v1", "Likes prices.\n", "a page said so", []),
    ):  # fmt: skip
        args = {
            "path": PROFILE,
            "section_anchor": anchor,
            "replace": text,
            "rationale": why,
            "evidence_refs": evidence,
        }
        done = world.do(gate.call("md.patch_section", args, persona="tender"))
        assert done.ok, done.error
    file = world.root / "garden/users/me/parts/work/profile.md"
    text = file.read_text().replace("Moved to Köln in May.", "Moved to Köln in June.")
    file.write_text(text.replace("Likes prices.\n", HOSTILE))
    return world


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def test_files_of_each_user_lead_to_one_with_its_sections_and_who_wrote_them(
    grown: World, visit: Visit
) -> None:
    page = visit.go("/garden")
    shoot(page, "garden-dark")
    expect(page.get_by_role("heading", level=2)).to_have_count(2)
    page.get_by_role("link", name="parts/work/profile.md", exact=True).click()
    summary = page.locator(".plot", has=page.get_by_role("heading", name="Summary"))
    expect(summary.locator("strong")).to_have_text("prices")
    expect(summary.locator("header")).to_contain_text("summary v1")
    concern = page.locator(".piece", has_text="too many meetings")
    expect(concern.locator("summary")).to_have_attribute("title", re.compile("^tender, .*from the notes$"))
    expect(concern.locator(".md")).to_have_attribute("title", re.compile("from the notes$"))
    concern.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(concern.locator("details")).to_contain_text("https://example.com/notes")
    expect(concern.locator("details")).to_contain_text("outside")
    moved = page.locator(".piece", has_text="Moved to Köln")
    expect(moved.locator("summary")).to_contain_text("person")
    shoot(page, "garden-file-dark")
    concern.get_by_role("link", name="event").click()
    expect(page.locator("#life")).to_contain_text("md.patch_section")


def test_what_a_file_says_is_shown_and_not_obeyed(grown: World, visit: Visit) -> None:
    page = visit.go(f"/garden/file/{PROFILE}")
    piece = page.locator(".piece", has_text="Likes")
    expect(piece.locator(".md")).to_contain_text("<script>alert(1)</script> and <img src=x onerror=alert(2)>")
    expect(piece.locator(".md")).to_contain_text("⟨U+202E⟩")
    assert piece.locator(".md script, .md img").count() == 0
    links = piece.locator(".md a").evaluate_all("found => found.map(one => [one.href, one.rel])")
    assert links == [
        ["https://example.com/a", "noopener noreferrer nofollow"],
        ["https://example.com/p.png", "noopener noreferrer nofollow"],
    ]
    expect(piece.locator(".md")).to_contain_text("(javascript:alert(3))")


def test_a_version_is_compared_and_brought_back_by_a_recorded_call(grown: World, visit: Visit) -> None:
    page = visit.go(f"/garden/history/{PROFILE}")
    shoot(page, "garden-history-dark")
    rows = page.locator(".versions li")
    expect(rows.first).to_contain_text("as it is now")
    rows.filter(has_text="from the notes").get_by_role("link").first.click()
    expect(page.locator(".l.add", has_text="rounding of discounts").first).to_be_visible()
    expect(page.locator(".l.del", has_text="June")).to_have_count(1)
    shoot(page, "garden-version-dark")
    page.locator("#reason").fill("May was right")
    page.locator("#restore-button").click()
    asks = page.get_by_role("alert").filter(has_text="bidi-control")
    expect(asks).to_be_visible(), "what is kept in history/ has an invisible character"
    grown.do(grown.gate.answer(grown.questions()[0].id, "approve"))
    expect(page.locator("#reason")).to_have_value("May was right")
    page.locator("#restore-button").click()
    expect(page.locator("h1")).to_contain_text("History")
    expect(page.locator(".versions li").first).to_contain_text("May was right")
    assert "in May." in (grown.root / "garden/users/me/parts/work/profile.md").read_text()
    restored = grown.do(grown.gate.events(Filter(tool="garden.restore", kinds=("committed",))))
    assert [row.persona for row in restored] == [HUMAN]


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_everybody_can_use_the_garden(grown: World, visit: Visit, size: str) -> None:
    page = visit.page
    if size == "phone":
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
    version = grown.do(grown.gate.feature("garden").history(PROFILE))[1].event
    found = {}
    for path in (
        "/garden",
        f"/garden/file/{PROFILE}",
        f"/garden/history/{PROFILE}",
        f"/garden/version/{PROFILE}?of={version}",
    ):
        visit.go(path)
        page.locator("details.whence").evaluate_all("found => found.slice(0, 1).map(one => one.open = true)")
        shoot(page, f"{path.split('/')[2] if path.count('/') > 1 else 'list'}-{size}")
        page.evaluate(AXE)
        if troubles := page.evaluate(TOLD, {}):
            found[path] = troubles
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], path  # type: ignore[index]
    assert found == {}
    if size == "phone":
        visit.go(f"/garden/file/{PROFILE}")
        box = page.locator("details.whence summary").first.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        page.locator("details.whence summary").first.click()
        expect(page.locator("details.whence[open] dl").first).to_be_visible()
