"""The pages as a program sees them: escaped, small, without inline code, and deaf to forged forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from faces.http.serving import CONFIG, PATIENCE, House, house
from toolgate import tool
from toolgate.core.ports import Question
from toolgate.faces.console import templates
from toolgate.faces.console.calls import CallLine
from toolgate.faces.console.markup import marked
from toolgate.faces.console.pages_record import ActivityQuery
from toolgate.faces.console.question import too_large
from toolgate.storage.port import Filter

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[2J{{ 7*7 }}"
PAGES = ("/", "/activity", "/ledger", "/tools", "/tools/door.open", "/servers", "/events/1")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    root = tmp_path / "project"
    root.mkdir()
    async with house(root) as made:
        yield made


async def asked(here: House, room: str = "7", **more: Any) -> Question:
    await here.gate.call("door.open", {"room": room}, persona="helper", wait=False, **more)
    return (await here.gate.approvals())[-1]


async def page(here: House, client: httpx2.AsyncClient, path: str, **more: Any) -> httpx2.Response:
    return await client.get(
        here.site.base + path, headers={"Accept": "text/html"} | more.pop("headers", {}), **more
    )


async def post(here: House, client: httpx2.AsyncClient, path: str, **fields: str) -> httpx2.Response:
    return await client.post(here.site.base + path, data=fields | {"csrf": here.csrf["X-CSRF-Token"]})


async def test_text_from_outside_is_escaped_and_visible_on_every_page(here: House) -> None:
    question = await asked(here, EVIL, reason=EVIL)
    await here.gate.call(EVIL[:60], {}, persona="helper")
    async with here.browser() as client:
        for path in (
            *PAGES,
            f"/questions/{question.id}",
            f"/events/{question.id}",
            f"/activity?q={'%3Cb%3E'}",
        ):
            text = (await page(here, client, path)).text
            assert "<img" not in text, path
            assert "<script>" not in text, path
            assert "<b>&" not in text
            for char in "\u202e\x1b":
                assert char not in text, path
        shown = (await page(here, client, f"/questions/{question.id}")).text
    assert "⟨U+202E⟩" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


async def test_a_question_says_why_it_is_asked_again(tmp_path: Path) -> None:
    config = CONFIG | {"personas": {"helper": {"phase": "contribute"}}}
    async with house(tmp_path, config) as here, here.browser() as client:
        for number in ("one", "two"):
            (tmp_path / "a.md").write_text(number)
            await here.gate.call("fs.write", {"path": "a.md", "content": "x"}, wait=False)
        first, second = [
            (await page(here, client, f"/questions/{question.id}")).text
            for question in await here.gate.approvals()
        ]
    assert "Asked again:" not in first
    assert "<b>Asked again:</b> what it would do has changed since it was asked about" in second


async def test_no_page_has_inline_code_or_asks_anybody_else(here: House) -> None:
    question = await asked(here)
    async with here.browser() as client:
        for path in (*PAGES, f"/questions/{question.id}", f"/undo/{question.id}"):
            text = (await page(here, client, path)).text
            assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", text), path
            assert not re.search(r"(src|href|action)=\"(https?:)?//", text), path


def test_what_is_left_out_of_the_style_has_no_meaning() -> None:
    for name, (sent, kind) in templates.ASSETS.items():
        if kind == "text/css":
            written = (templates.STATIC / name).read_text()
            assert not re.search(r'"[^"\n]*[{};][^"\n]*"', written), (
                "a text with such a sign would be changed"
            )
            assert re.sub(r"\s+", "", re.sub(r"/\*.*?\*/", "", written, flags=re.S)) == re.sub(
                r"\s+", "", sent.decode()
            )


async def test_the_first_page_weighs_less_than_100_kb(here: House) -> None:
    await asked(here)
    async with here.browser() as client:
        first = await page(here, client, "/")
        names = re.findall(r'(?:src|href)="(/assets/[^"]+)"', first.text)
        assert any("htmx" in name for name in names)
        plain = {"Accept-Encoding": "identity"}
        weight = len(first.content) + sum(
            [len((await client.get(name, headers=plain)).content) for name in names]
        )
    assert weight < 100_000


async def test_assets_are_known_files_and_nothing_else(here: House) -> None:
    async with here.client() as client:
        good = await client.get(templates.asset_url("console.css"))
        assert good.status_code == 200
        assert "immutable" in good.headers["cache-control"]
        for name in ("../console.py", "%2e%2e/router.py", "/etc/passwd", "vendor", ""):
            assert (await client.get(f"/assets/{templates.ASSETS_VERSION}/{name}")).status_code == 404


async def test_an_approval_form_counts_only_for_the_call_it_was_made_for(here: House) -> None:
    first, second = await asked(here, "1"), await asked(here, "2")
    async with here.browser() as client:
        crossed = await post(here, client, f"/questions/{first.id}/approve", digest=second.digest)
        assert crossed.status_code == 409
        assert (await post(here, client, f"/questions/{first.id}/approve")).status_code == 409
        assert (await post(here, client, f"/questions/{first.id}/approve", digest="é")).status_code == 409
        forged = await client.post(
            f"{here.site.base}/questions/{first.id}/approve", data={"digest": first.digest, "csrf": "guess"}
        )
        assert forged.status_code == 403
    assert len(await here.gate.approvals()) == 2
    refusals = await here.refusals()
    assert any("CSRF" in line for line in refusals)
    assert sum("made for another call" in line for line in refusals) == 3


async def test_no_persona_opens_a_page_or_answers(here: House) -> None:
    question = await asked(here)
    async with here.client("helper") as client:
        for path in ("/", f"/questions/{question.id}", "/ledger"):
            assert (await page(here, client, path)).status_code == 403
        answer = await client.post(
            f"{here.site.base}/questions/{question.id}/approve", data={"digest": question.digest}
        )
        assert answer.status_code == 403
        assert (await client.post(f"{here.site.base}/undo/1")).status_code == 403
    assert len(await here.gate.approvals()) == 1


async def test_a_late_answer_shows_what_became_of_the_question_and_is_kept(here: House) -> None:
    question = await asked(here)
    async with here.browser() as client:
        assert (
            await post(here, client, f"/questions/{question.id}/refuse", digest=question.digest)
        ).status_code == 303
        late = await client.post(
            f"{here.site.base}/questions/{question.id}/approve",
            data={"digest": question.digest, "csrf": here.csrf["X-CSRF-Token"]}, headers={"HX-Request": "true"},
        )  # fmt: skip
    assert "Refused" in late.text
    assert "there is no open question" in late.text
    assert any("an answer to" in line for line in await here.refusals())


async def test_approving_several_needs_one_kind_and_each_digest(here: House) -> None:
    questions = [await asked(here, "1"), await asked(here, "2")]
    async with here.browser() as client:
        url = f"{here.site.base}/questions"
        fields = {
            "csrf": here.csrf["X-CSRF-Token"],
            "answer": "approve",
            "id": [each.id for each in questions],
        }
        missing = await client.post(url, data=fields | {"digest": [questions[0].digest]})
        assert missing.status_code == 409
        assert len(await here.gate.approvals()) == 2
        good = await client.post(url, data=fields | {"digest": [each.digest for each in questions]})
        assert good.status_code == 303
    assert await here.gate.approvals() == []


async def test_several_are_shown_with_their_arguments_beside_their_changes(tmp_path: Path) -> None:
    async def change(path: str, then: str) -> str:
        return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new"

    @tool("t.release", writes=["outside"], preview=change)
    async def release(path: str, then: str) -> str:
        """Changes a file, and then does something else."""
        return "done"

    (tmp_path / "project").mkdir()
    async with house(tmp_path / "project", tools=[release]) as here:
        for number in (1, 2):
            args = {"path": "a.txt", "then": f"payload_{number}()"}
            await here.gate.call("t.release", args, persona="helper", wait=False)
        asked = await here.gate.approvals()
        async with here.browser() as client:
            text = (await page(here, client, f"/questions?id={asked[0].id}&id={asked[1].id}")).text
    assert "payload_1()" in text
    assert "payload_2()" in text
    assert text.count("something outside toolgate") == 2


async def test_a_grant_is_told_and_given_as_chosen(here: House) -> None:
    question = await asked(here, conversation="talk")
    async with here.browser() as client:
        words = await page(here, client, f"/questions/{question.id}/grant?seconds=900&uses=3&conversation=1")
        assert "in the conversation talk, at most 3 times" in words.text
        wrong = await page(here, client, f"/questions/{question.id}/grant?seconds=soon")
        assert "whole numbers" in wrong.text
        await post(
            here,
            client,
            f"/questions/{question.id}/grant",
            digest=question.digest,
            seconds="900",
            uses="3",
            conversation="1",
        )
    (grant,) = await here.gate.grants()
    assert (grant.body["only_conversation"], grant.body["max_uses"], grant.body["channel"]) == (
        "talk",
        3,
        "console",
    )


async def test_errors_are_pages_with_a_message_and_a_fix(here: House) -> None:
    async with here.browser() as client:
        for path in (
            "/questions/q_nothing",
            "/events/999999",
            "/tools/no.such",
            "/tools?persona=nobody",
            "/events/%F0%9F%98%80",
        ):
            answer = await page(here, client, path)
            assert answer.status_code == 404, path
            assert "<h1>" in answer.text
        part = await page(here, client, "/questions/q_nothing", headers={"HX-Request": "true"})
        assert part.text.startswith('<section id="question"')


async def test_an_address_that_leads_nowhere_is_a_page_with_the_navigation_for_the_human_only(
    here: House,
) -> None:
    base = here.site.base
    async with here.browser() as client:
        for path, status in (("/nowhere", 404), ("/logout", 404), ("/activity?before=x", 400)):
            answer = await page(here, client, path)
            assert (answer.status_code, answer.headers["content-type"]) == (
                status,
                "text/html; charset=utf-8",
            )
            for known in ("/", "/activity", "/ledger", "/tools", "/servers"):
                assert f'<a href="{base}{known}"' in answer.text, path
            assert base not in re.findall(r"<h1>.*?</h1>", answer.text, re.S)[0]
        lost = await post(here, client, "/nowhere")
        assert (lost.status_code, lost.json()["code"]) == (404, "not_found")
    for token in ("", "helper"):
        async with here.client(token) as stranger:
            for path in ("/nowhere", "/activity?before=x"):
                answer = await page(here, stranger, path)
                assert answer.status_code == (403 if token else 401), path
                assert base not in answer.text
                assert "project" not in answer.text
    async with here.browser() as client:
        old = await client.get("/c/of-an-earlier-start/inbox", headers={"Accept": "text/html"})
        assert (old.status_code, 'href="/"' in old.text, base in old.text) == (404, True, False)
        assert "<code>toolgate up</code>" in old.text
        evil = await client.get("/<script>alert(1)</script>\u202e", headers={"Accept": "text/html"})
        assert "<script>" not in evil.text
        assert "\u202e" not in evil.text


async def test_an_address_that_leads_nowhere_is_json_for_programs(here: House) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with here.browser() as client:
        for path in (
            "/api/v1/nowhere",
            f"{here.site.base}/api/v1/nowhere",
            "/assets/0/nothing",
            "/mcp/nowhere",
        ):
            answer = await client.get(path, headers=browser)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        for headers in ({"Accept": "application/json"}, {"Accept": "*/*"}, browser | {"HX-Request": "true"}):
            answer = await client.get(f"{here.site.base}/nowhere", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), headers


async def test_policy_is_explained_for_one_call_and_says_what_is_wrong_with_it(here: House) -> None:
    async with here.browser() as client:
        good = (await page(here, client, '/tools/door.open?persona=mute&args={"room": "1"}')).text
        assert "(decides)" in good
        assert "not JSON" in (await page(here, client, "/tools/door.open?args=room")).text


async def test_a_pause_is_shown_everywhere_and_lifted(here: House) -> None:
    async with here.browser() as client:
        await post(here, client, "/pause", persona="helper", reason=EVIL)
        text = (await page(here, client, "/")).text
        assert "<b>Paused:</b> helper" in text
        assert "<img" not in text
        await post(here, client, "/pause", persona="helper", resume="1")
        assert "<b>Paused:</b>" not in (await page(here, client, "/")).text


async def test_a_broken_policy_is_said_and_the_inbox_still_opens(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.core.errors import Unavailable

    def broken() -> Any:
        raise Unavailable("the policy cannot be read: line 3", "repair the file")

    monkeypatch.setattr(here.gate._policy, "current", broken)
    async with here.browser() as client:
        answer = await page(here, client, "/")
    assert answer.status_code == 200
    assert "everything is refused" in answer.text


async def test_the_ledger_marks_only_what_is_still_open(here: House) -> None:
    def mark(text: str, number: int) -> str:
        row = text.partition(f'/events/{number}"')[2].partition("</tr>")[0]
        return row.partition('class="mk ')[2].partition('"')[0]

    question = await asked(here)
    async with here.browser() as client:
        first = (await here.gate.events(Filter(ref=question.id)))[0].seq
        assert mark((await page(here, client, "/ledger")).text, first) == "asks"
        await here.gate.answer(question.id, "deny")
        calling = asyncio.create_task(here.gate.call("door.hold", persona="helper"))
        await here.running.wait()
        begun = (await here.gate.events(Filter(kinds=("started",), newest_first=True)))[0].seq
        shown = (await page(here, client, "/ledger")).text
        assert (mark(shown, first), mark(shown, begun)) == ("plain", "asks")
        here.hold.set()
        await calling
        shown = (await page(here, client, "/ledger")).text
    assert [mark(shown, each) for each in (first, begun, begun + 1)] == ["plain", "plain", "allowed"]


async def test_the_chain_is_verified_and_a_break_is_told(here: House) -> None:
    await asked(here)
    async with here.browser() as client:
        await post(here, client, "/ledger/verify")
        assert "links, hashes, seals and tables are right" in (await page(here, client, "/ledger")).text


async def test_a_repeated_call_that_used_an_approval_is_part_of_the_questions_life(here: House) -> None:
    question = await asked(here, "9")
    await here.gate.answer(question.id, "approve", by="mira", channel="terminal")
    result = await asyncio.wait_for(here.gate.call("door.open", {"room": "9"}, persona="helper"), PATIENCE)
    assert result.ok
    async with here.browser() as client:
        text = (await page(here, client, f"/questions/{question.id}")).text
    for word in ("asked", "by mira in terminal", "started", "done"):
        assert word in text


def test_the_filter_knows_its_words_and_takes_the_rest_as_text() -> None:
    line = CallLine(1, 1, "builder", "fs.write", "talk", "src/a.py", "denied", "because", kinds=["denied"])
    for good in (
        "",
        "persona:builder",
        "tool:fs.*",
        "outcome:denied src",
        "persona:x persona:builder",
        "BECAUSE",
    ):
        assert ActivityQuery.read(good).fits(line), good
    for bad in ("persona:bob", "tool:code.*", "outcome:done", "missing"):
        assert not ActivityQuery.read(bad).fits(line), bad


def test_a_sign_for_an_invisible_character_cannot_be_imitated() -> None:
    assert 'class="inv"' in marked("\u200b")
    assert 'class="inv"' not in marked("⟨U+200B⟩")


async def test_what_no_page_can_show_no_page_approves(here: House) -> None:
    question = await asked(here, "x\n" * 25_000)
    program = {"code": "", "files": {"a": "x" * 1_100_000}}
    assert too_large(replace(question, preview="", args=program))
    assert not too_large(replace(question, preview="", args=program | {"files": {"a": "x"}}))
    async with here.browser() as client:
        text = (await page(here, client, f"/questions/{question.id}?all=true")).text
        assert "too large for a page" in text
        assert 'id="approve"' not in text
        forced = await post(here, client, f"/questions/{question.id}/approve", digest=question.digest)
        assert forced.status_code == 403
        refused = await post(here, client, f"/questions/{question.id}/refuse", digest=question.digest)
        assert refused.status_code == 303
    assert await here.gate.approvals() == []


async def test_what_the_scan_found_stands_before_the_change(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    config = {"version": 1, "default_persona": "b", "personas": {"b": {"phase": "contribute"}}}
    async with house(root, config) as here:
        await here.gate.call(
            "fs.write", {"path": "a.py", "content": "if admin\u2066:\n    pass\n"}, wait=False
        )
        (question,) = await here.gate.approvals()
        assert question.findings
        async with here.browser() as client:
            text = (await page(here, client, f"/questions/{question.id}")).text
    assert "1 finding in what would be written" in text
    assert text.index('class="findings"') < text.index('class="exact"')


async def test_an_artifact_reads_from_before_to_after(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    free = CONFIG | {"personas": {"helper": {"phase": "contribute", "allow": ["fs.*"]}}}
    async with house(root, free) as here, here.browser() as client:
        made = await here.gate.call("fs.write", {"path": "a.md", "content": "one"}, persona="helper")
        changed = await here.gate.call("fs.write", {"path": "a.md", "content": "two"}, persona="helper")
        first = (await page(here, client, f"/events/{made.meta.event_id}")).text
        second = (await page(here, client, f"/events/{changed.meta.event_id}")).text
    old, new = made.data["new_hash"], changed.data["new_hash"]
    assert f"a.md created before nothing → after {old}, size 3 bytes" in _artifacts(first)
    assert f"a.md changed before {old} → after {new}, size 3 bytes" in _artifacts(second)


def _artifacts(text: str) -> str:
    part = text.partition('id="art-h"')[2].partition("</section>")[0]
    return " ".join(re.sub("<[^>]*>", " ", part).split()).replace(" ,", ",")
