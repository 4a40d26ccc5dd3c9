"""The other pages in a real browser: what happened, taking it back, and whether everybody can use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.conftest import Visit

AXE = (Path(__file__).parent / "vendor/axe-4.14.0.min.js").read_text()
PAGES = (
    "/",
    "/activity?q=tool:fs.*",
    "/ledger?kind=asked",
    "/tools",
    "/tools/fs.write",
    "/servers",
    "/events/1",
)
TOLD = """(only) => axe.run({resultTypes: ['violations'], preload: false, iframes: false, ...only}).then((found) => found.violations
  .filter((each) => ['serious', 'critical'].includes(each.impact))
  .map((each) => each.id + ': ' + each.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')))"""


def test_what_happens_appears_in_the_feed_and_the_filter_lives_in_the_address(visit: Visit) -> None:
    world, page = visit.world, visit.go("/activity")
    world.do(
        world.gate.call("code.read", {"path": "src/prices.py"}, persona="reviewer", conversation="talk-1")
    )
    line = page.locator(".call", has_text="code.read").first
    expect(line).to_contain_text("done")
    world.do(world.gate.call("fs.write", {"path": "deploy/x", "content": "x"}, persona="builder"))
    expect(page.locator(".call", has_text="deploy/x")).to_contain_text("denied")
    page.keyboard.press("/")
    page.keyboard.type("outcome:denied tool:fs.*")
    expect(page.locator(".call", has_text="code.read")).to_have_count(0)
    expect(page).to_have_url(world.url("/activity") + "?q=outcome%3Adenied%20tool%3Afs.*")
    page.reload()
    expect(page.locator("#q")).to_have_value("outcome:denied tool:fs.*")
    expect(page.locator(".call", has_text="deploy/x")).to_have_count(1)


def test_the_feed_waits_while_somebody_reads_further_down(visit: Visit) -> None:
    world, page = visit.world, visit.page
    for _ in range(30):
        world.do(world.gate.call("system.ping", {}, persona="reviewer"))
    page.set_viewport_size({"width": 1280, "height": 400})
    visit.go("/activity")
    expect(page.locator("body")).to_have_attribute("data-live", "yes")
    page.evaluate("scrollTo(0, 600)")
    before = page.locator(".call").first.get_attribute("id") or ""
    world.do(world.gate.call("system.ping", {}, persona="reviewer"))
    expect(page.locator("#waiting")).to_contain_text("new, show")
    assert page.locator(".call").first.get_attribute("id") == before
    page.locator("#waiting").click()
    expect(page.locator("#waiting")).to_be_hidden()
    expect(page.locator(f"#{before}")).to_be_attached()
    expect(page.locator(".call").first).not_to_have_attribute("id", before)


def test_an_event_shows_its_life_and_proof_and_is_undone_after_a_preview(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("fs.write", {"path": "src/undo_me.py", "content": "gone = True\n"})
    world.do(world.gate.answer(world.questions()[0].id, "approve", by="mira", channel="terminal"))
    done = call.result(10)
    visit.go(f"/events/{done.meta.event_id}")
    expect(page.locator(".life")).to_contain_text("by mira in terminal")
    expect(page.locator("#life")).to_contain_text(
        f"links to event {done.meta.event_id - 1}, key v1, verified"
    )
    page.locator("#undo-link").click()
    expect(page.locator(".l.del code")).to_have_text("gone = True")
    assert (world.root / "src/undo_me.py").exists(), "a preview touches nothing"
    page.locator("#undo-button").click()
    expect(page.locator("#life h1")).to_contain_text("ledger.undo")
    assert not (world.root / "src/undo_me.py").exists()
    visit.go(f"/events/{done.meta.event_id}")
    expect(page.locator(".actions")).to_contain_text("undone by event")


def test_the_theme_is_switched_and_stays(visit: Visit) -> None:
    page = visit.go()
    page.locator("#theme").click()
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "light"
    visit.context.clear_cookies(name="toolgate_theme")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_serious(visit: Visit, scheme: str) -> None:
    visit.world.ask(
        "fs.write",
        {"path": "src/prices.py", "content": f"x = '{scheme}\u202e'\n"},
        reason="why",
        conversation="talk",
    )
    visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    only = {} if scheme == "dark" else {"runOnly": ["color-contrast"]}  # nothing else differs
    found: dict[str, list[str]] = {}
    for path in PAGES if scheme == "dark" else ("/", "/activity?q=tool:fs.*", "/events/1"):
        page = visit.go(path)
        page.evaluate(AXE)
        if troubles := page.evaluate(TOLD, only):
            found[path] = troubles
    assert found == {}


def test_no_page_scrolls_sideways_at_320_pixels(visit: Visit) -> None:
    visit.world.ask(
        "fs.write", {"path": "src/" + "long" * 20 + ".py", "content": "x" * 500 + "\n"}, reason="w" * 300
    )
    visit.page.set_viewport_size({"width": 320, "height": 640})
    for path in PAGES:
        page = visit.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_an_address_that_leads_nowhere_leads_back(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 320, "height": 640})
    page = visit.go("/" + "nowhere" * 30)
    assert visit.troubles.pop().endswith("(Not Found)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.evaluate(AXE)
    assert page.evaluate(TOLD, {}) == []
    page.get_by_role("link", name="Inbox").click()
    expect(page.locator("nav [aria-current=page]")).to_contain_text("Inbox")


def test_a_lost_connection_shows_and_comes_back(visit: Visit) -> None:
    page = visit.go()
    expect(page.locator("body")).to_have_attribute("data-live", "yes")
    visit.context.set_offline(True)
    expect(page.locator("#offline")).to_be_visible()
    visit.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    call = visit.world.ask("fs.write", {"path": "src/later.py", "content": "x\n"})
    expect(page.locator("#question-title")).to_contain_text("src/later.py")
    visit.troubles.clear()  # the browser says itself that it was offline
    assert not call.done()
