"""A person answers in a real browser: what is shown is what runs, and nothing else does."""

from __future__ import annotations

import time
from concurrent.futures import Future

from playwright.sync_api import Browser, Page, Route, expect

from e2e.conftest import Visit
from e2e.world import BETTER, PATIENCE, PRICES, World
from toolgate.core.result import Result

GUARD = 650
"""The page takes no approval for the first moments in which a question is on screen."""

AT_ONCE = """document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "question") return;
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
  document.body.dataset.pressed = "yes";
})"""
"""Press Enter in the very moment in which a question appears."""


def ended(call: Future[Result]) -> Result:
    return call.result(PATIENCE)


def approve_with_enter(page: Page) -> None:
    expect(page.locator("#approve-button")).not_to_have_attribute("aria-disabled", "true")
    page.wait_for_timeout(GUARD)
    page.keyboard.press("Enter")


def test_a_call_waits_appears_without_reload_and_enter_runs_exactly_what_was_shown(visit: Visit) -> None:
    world, page = visit.world, visit.go()
    (world.root / "src/prices.py").write_text(PRICES)
    expect(page.get_by_role("heading", name="Nothing asks")).to_be_visible()
    page.evaluate("window.mark = 1")
    call = world.ask("fs.write", {"path": "src/prices.py", "content": BETTER}, reason="tax was wrong")

    expect(page.locator("#question-title")).to_have_text("builder wants to change src/prices.py")
    expect(page).to_have_title("(1) Inbox · shop")
    expect(page.locator("#live")).to_have_text("New question: change src/prices.py")
    expect(page.locator(".l.del code")).to_have_text("    return round(net * (1 + TAX) - discount, 2)")
    expect(page.locator(".l.add code").first).to_have_text(
        "    return round((net - discount) * (1 + TAX), 2)"
    )
    expect(page.locator(".l.add .k").first).to_have_text("return")
    expect(page.locator("blockquote")).to_contain_text("tax was wrong")
    expect(page.locator(".why")).to_contain_text("source changes are reviewed")

    approve_with_enter(page)
    assert ended(call).ok
    assert (world.root / "src/prices.py").read_text() == BETTER
    expect(page.locator("#question-title")).to_contain_text("Done")
    expect(page.locator("#undo-link")).to_be_visible()
    expect(page).to_have_title("Inbox · shop")
    assert page.evaluate("window.mark") == 1, "the page was reloaded"
    assert page.evaluate("document.activeElement.id") == "question", "the focus was lost"


def test_an_outcome_that_events_have_overtaken_does_not_stay_on_screen(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("exec.python", {"code": "import time; time.sleep(1)", "project": "read"})
    visit.go()
    expect(page.locator("#question-title")).to_contain_text("time.sleep")

    def hold(route: Route) -> None:
        made_while_it_runs = route.fetch()
        ended(call)
        time.sleep(1)  # for the stream of events to overtake it
        route.fulfill(response=made_while_it_runs)

    page.route("**/questions/q_*", hold, times=1)
    world.do(world.gate.answer(world.questions()[0].id, "approve"))
    expect(page.locator("#question-title")).to_contain_text("Done")


def test_a_refusal_by_keyboard_tells_the_agent_why(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("fs.write", {"path": "src/refused.py", "content": "x = 1\n"})
    visit.go()
    page.keyboard.press("x")
    page.keyboard.type("not on a Friday")
    page.keyboard.press("Enter")
    refused = ended(call)
    assert refused.error is not None
    assert refused.error.code == "denied"
    assert "not on a Friday" in refused.error.message
    assert not (world.root / "src/refused.py").exists()
    expect(page.locator("#question-title")).to_contain_text("Refused")


def test_a_grant_says_what_it_will_cover_and_covers_no_more(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("fs.write", {"path": "src/one.py", "content": "x = 1\n"})
    visit.go()
    page.keyboard.press("g")
    page.locator("#grant-paths").fill("src/**")
    expect(page.locator("#grant-words")).to_contain_text("on paths that match src/**")
    page.wait_for_timeout(GUARD)
    page.get_by_role("button", name="Approve and allow").click()
    assert ended(call).ok
    assert world.do(
        world.gate.call("fs.write", {"path": "src/two.py", "content": "y = 2\n"}, persona="builder")
    ).ok
    outside = world.do(
        world.gate.call("fs.write", {"path": "b.md", "content": "z\n"}, persona="builder", wait=False)
    )
    assert outside.error is not None
    assert outside.error.code == "pending"
    page.goto(world.url("/tools"))
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("“Allow for…” in a question gives one")).to_be_visible()
    assert world.do(world.gate.grants()) == []


def test_a_hostile_name_is_offered_as_itself_and_a_program_by_its_arguments(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("fs.write", {"path": "docs/x,**", "content": "x = 1\n"})
    visit.go()
    page.keyboard.press("g")
    expect(page.locator("#grant-paths")).to_have_value("docs/x,[*][*]")
    expect(page.locator("#grant-words")).to_contain_text(
        "on paths that match docs/x,[*][*], with any other arguments"
    )
    page.wait_for_timeout(GUARD)
    page.get_by_role("button", name="Approve and allow").click()
    assert ended(call).ok
    other = world.gate.call("fs.write", {"path": "docs/x", "content": "y"}, persona="builder", wait=False)
    result = world.do(other)
    assert result.error is not None
    assert result.error.code == "pending"
    world.do(world.gate.answer(world.questions()[0].id, "deny"))
    call = world.ask("exec.python", {"code": "print(1)", "network": ["api.example.com"]})
    visit.go()
    page.keyboard.press("g")
    words = page.locator("#grant-words")
    expect(words).to_contain_text('network reaches at most "api.example.com"')
    page.get_by_label("network").uncheck()
    expect(words).to_contain_text("reaching at most host api.example.com")
    world.do(world.gate.answer(world.questions()[0].id, "deny"))
    ended(call)
    for grant in world.do(world.gate.grants()):
        world.do(world.gate.revoke(grant.id))


def test_what_was_not_shown_to_its_end_cannot_be_approved(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask(
        "fs.write", {"path": "src/long.py", "content": "".join(f"x{n} = {n}\n" for n in range(300))}
    )
    visit.go()
    expect(page.locator("#not-yet")).to_be_visible()
    page.wait_for_timeout(GUARD)
    page.evaluate(
        "document.querySelector('#approve').requestSubmit(document.querySelector('#approve-button'))"
    )
    expect(page.locator("#not-yet")).to_be_hidden()  # it led to the end instead
    assert not call.done()
    approve_with_enter(page)
    assert ended(call).ok


def test_what_is_too_long_for_a_page_is_shown_in_full_first(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask(
        "fs.write", {"path": "src/huge.py", "content": "".join(f"x{n} = {n}\n" for n in range(700))}
    )
    visit.go()
    expect(page.locator("#question")).to_be_visible()
    assert page.locator("#approve-button").count() == 0
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(".l.add")).to_have_count(700)
    page.locator("#to-end").click()
    approve_with_enter(page)
    assert ended(call).ok


def test_a_key_pressed_as_a_question_appears_approves_nothing(visit: Visit) -> None:
    world, page = visit.world, visit.go()
    page.evaluate(AT_ONCE)
    call = world.ask("fs.write", {"path": "src/sudden.py", "content": "x\n"})
    expect(page.locator("body")).to_have_attribute("data-pressed", "yes")
    assert len(world.questions()) == 1
    assert not call.done()
    approve_with_enter(page)  # the same key, a moment later
    assert ended(call).ok


def test_an_answer_given_elsewhere_replaces_the_question(visit: Visit) -> None:
    world, page = visit.world, visit.page
    call = world.ask("fs.write", {"path": "src/other.py", "content": "x\n"})
    visit.go()
    world.do(world.gate.answer(world.questions()[0].id, "deny", by="mira", channel="terminal", reason="no"))
    expect(page.locator("#question-title")).to_contain_text("Refused")
    expect(page.locator(".life")).to_contain_text("by mira in terminal")
    assert not ended(call).ok


def test_questions_of_one_kind_are_answered_together_after_all_were_shown(visit: Visit) -> None:
    world, page = visit.world, visit.page
    calls = [world.ask("fs.write", {"path": f"src/n{n}.py", "content": f"n = {n}\n"}) for n in range(2)]
    other = world.ask("fs.delete", {"path": "src/prices.py"})
    visit.go()
    boxes = page.locator("#several input[type=checkbox]")
    boxes.nth(0).check()
    expect(boxes.nth(2)).to_be_disabled()  # another tool
    boxes.nth(1).check()
    page.get_by_role("button", name="Review 2 together").click()
    expect(page.locator(".one-of")).to_have_count(2)
    page.wait_for_timeout(GUARD)
    page.get_by_role("button", name="Approve all 2 once").click()
    assert all(ended(call).ok for call in calls)
    expect(page.locator("#question-title")).to_contain_text("delete src/prices.py")
    assert not other.done()


def test_j_and_k_move_and_the_question_mark_shows_the_keys(visit: Visit) -> None:
    world, page = visit.world, visit.page
    for name in ("a", "b", "c"):
        world.ask("fs.write", {"path": f"src/{name}.py", "content": "x\n"})
    visit.go()
    expect(page.locator("#question-title")).to_contain_text("src/a.py")
    for key, name in (("j", "b"), ("j", "c"), ("k", "b")):
        page.keyboard.press(key)
        expect(page.locator("#question-title")).to_contain_text(f"src/{name}.py")
        assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", name="Life line")).to_be_visible()


def test_hostile_text_is_only_ever_text(visit: Visit) -> None:
    world, page = visit.world, visit.page
    evil = "<script>alert(1)</script>\u202e\x1b[31m<img src=x onerror=alert(1)>{{ 7*7 }}"
    world.ask("fs.write", {"path": "src/<b>.py", "content": evil + "\n"}, reason=evil)
    visit.go()
    expect(page.locator(".l.add code")).to_contain_text(
        "<script>alert(1)</script>⟨U+202E⟩⟨U+001B⟩[31m<img src=x"
    )
    expect(page.locator(".remarks")).to_contain_text(
        "a character that reorders text: U+202E RIGHT-TO-LEFT OVERRIDE"
    )
    expect(page.locator("blockquote")).to_contain_text("{{ 7*7 }}")
    assert page.locator("main script, main img, main b b, main i").count() == 0
    for path in ("/activity", "/ledger"):
        visit.go(path)
        assert page.locator("main script, main img, main i").count() == 0


def test_without_scripts_it_can_be_read_and_answered(world: World, browser: Browser) -> None:
    call = world.ask("fs.write", {"path": "src/plain.py", "content": "plain = 1\n"})
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{world.address}/?token={world.token}")
        expect(page.locator(".l.add code")).to_have_text("plain = 1")
        page.get_by_role("button", name="Approve once").click()
        assert ended(call).ok
        expect(page.locator("#question-title")).to_contain_text("fs.write")
    finally:
        context.close()
        world.settle()
