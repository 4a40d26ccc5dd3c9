"""Pages of agents in a real browser: a run that waits and goes on, its steps and cost; a room with board and timeline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from agents.world import call, calls
from e2e.conftest import Visit
from e2e.test_inbox import approve_with_enter
from e2e.test_pages import AXE, TOLD
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.features.agents.runs import Runs

POST = {
    "text": "The tax is added before the discount comes off, see the total.",
    "hypothesis": "line 12 of prices.py adds the tax first",
    "claims": [
        {"text": "tax first", "file": "src/prices.py", "line": 12},
        {"file": "src/prices.py", "line": 99},
    ],
}
SCRIPT: dict[str, list[Any]] = {
    "builder": [
        calls(call("code.read", path="src/prices.py"), text="First I read <b>it</b>."),
        calls(call("fs.write", path="src/new.py", content="x = 1\n"), text="Then I write."),
        "It is written.\n\nThat is all.",
    ],
    "reviewer": [
        calls(call("code.read", path="src/prices.py")),
        calls(call("room.post", **POST)),
        "Posted.",
        "PASS",
    ],
}


def agents(visit: Visit) -> Runs:
    found: Runs = visit.world.gate.feature("agents")
    found.models.given["scripted"] = ScriptedModel(SCRIPT, "scripted")
    return found


async def started(runs: Runs, question: str) -> Any:
    return await runs.drive(await runs.start(question, persona="builder"))


async def talked(runs: Runs, words: str) -> Any:
    return await runs.drive(await runs.talk(words, "work & play", persona="builder"))


async def met(runs: Runs) -> Any:
    return await runs.rooms.drive(await runs.rooms.open("discounts and tax", ["reviewer"], rounds=2))


def look(visit: Visit, name: str) -> None:
    """With TOOLGATE_PICTURES a directory, keep what a person would see; axe finds nothing serious in any case."""
    page = visit.page
    page.evaluate(AXE)
    assert page.evaluate(TOLD, {}) == []
    if place := os.environ.get("TOOLGATE_PICTURES"):
        page.screenshot(path=Path(place) / f"{name}.png", full_page=True)


def test_a_run_that_waits_is_approved_in_the_inbox_and_goes_on(visit: Visit) -> None:
    world, page = visit.world, visit.page
    runs = agents(visit)
    run = world.do(started(runs, "write <i>it</i> down"))
    assert run.state == "waiting"
    visit.go("/runs")
    row = page.locator("tr", has_text="write <i>it</i> down")
    expect(row).to_contain_text("waiting")
    look(visit, "runs")
    row.get_by_role("link").click()
    expect(page.locator("ol")).to_contain_text("First I read <b>it</b>.")
    page.get_by_role("link", name="See the question").click()
    expect(page.locator("#question")).to_contain_text("src/new.py")
    approve_with_enter(page)
    expect(page.locator("#question")).to_contain_text("pproved by")
    assert world.do(runs.resume(run.id)).state == "done"
    visit.go(f"/runs/{run.id}")
    expect(page.locator(".page")).to_contain_text("It is written.")
    expect(page.locator(".page")).to_contain_text("2 calls")
    expect(page.locator("ol").last).to_contain_text("path=src/new.py")
    expect(page.locator(".page")).not_to_contain_text("U+000A")  # a line break is one
    look(visit, "run")
    page.locator("ol").get_by_role("link", name="event").first.click()
    expect(page.locator("#life")).to_contain_text("code.read")


def test_a_room_shows_board_timeline_and_takes_a_humans_word(visit: Visit) -> None:
    world, page = visit.world, visit.page
    room = world.do(met(agents(visit)))
    visit.go("/rooms")
    page.get_by_role("link", name="discounts and tax").first.click()
    expect(page.locator("table")).to_contain_text("line 12 of prices.py adds the tax first")
    expect(page.locator("ol")).to_contain_text("nobody here has read line 99")
    page.get_by_label("Say something in the room").fill("Look at the rounding, too.")
    page.get_by_role("button", name="Say it").click()
    expect(page.locator("ol")).to_contain_text("Look at the rounding, too.")
    page.get_by_role("button", name="It was right").click()
    expect(page.locator(".page")).to_contain_text("You said: right.")
    look(visit, "room")
    expect(page.locator(".page")).not_to_contain_text("U+000A")
    visit.go("/runs")  # where a turn's question is long
    expect(page.locator(".page")).not_to_contain_text("U+000A")
    page.go_back()
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert world.do(agents(visit).rooms.get(room.id)).verdict == "right"


def test_a_conversation_is_shown_as_what_was_asked_and_answered(visit: Visit) -> None:
    world, page = visit.world, visit.page
    runs = agents(visit)
    runs.models.given["scripted"] = ScriptedModel(["It is\nhere.", "<i>There</i>."], "scripted")
    for words in ("where is it?", "and <b>that</b>?"):
        world.do(talked(runs, words))
    visit.go("/runs")
    page.get_by_role("link", name="conversation work & play").first.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conversation work & play")
    turns = page.locator("ol > li")
    expect(turns).to_have_count(2)
    expect(turns.first).to_contain_text("where is it?")
    expect(turns.last).to_contain_text("and <b>that</b>?")
    expect(turns.last).to_contain_text("<i>There</i>.")
    look(visit, "conversation")
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    turns.first.get_by_role("link").press("Enter")
    expect(page.get_by_role("link", name="conversation work & play")).to_be_visible()


def test_metrics_are_shown_beside_their_targets_with_a_plot_at_a_desk_and_on_a_phone(visit: Visit) -> None:
    world, page = visit.world, visit.page
    world.do(met(agents(visit)))
    visit.go("/runs")
    page.get_by_role("link", name="How well they do").press("Enter")
    rows = page.get_by_role("region", name="Metrics").locator("tbody tr")
    expect(rows).to_have_count(7)
    expect(rows.first).to_contain_text("adoption")
    expect(rows.first).to_contain_text("> 50%")
    expect(page.get_by_role("img", name="worked")).to_be_visible()
    assert page.locator(".plot rect.worked").count() >= 1
    expect(page.get_by_role("region", name="Tools")).to_contain_text("code.read")
    look(visit, "metrics-dark")
    page.get_by_text("As a table").press("Enter")
    expect(page.get_by_role("region", name="Calls over time").locator("tbody tr")).to_have_count(12)
    page.get_by_role("link", name="reviewer").press("Enter")
    expect(page.get_by_role("link", name="reviewer")).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="everything").press("Enter")
    expect(page.get_by_role("link", name="reviewer")).to_have_attribute("aria-current", "page")
    page.emulate_media(color_scheme="light")
    look(visit, "metrics-light")
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    look(visit, "metrics-phone")
    visit.go("/metrics?period=%3Cscript%3E&persona=%3Cb%3E")
    expect(page.get_by_role("link", name="a week")).to_have_attribute("aria-current", "page")
