"""A question that is too long for a page: measured before it is drawn, cut where one sees it, and approved only after all
of it was shown."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from faces.http.serving import House, house
from toolgate.core.effects import Effects
from toolgate.core.ports import Question
from toolgate.faces.console.diff_view import Painter
from toolgate.faces.console.question import too_large, view
from toolgate.faces.mcp import question as form
from toolgate.kits import pieces
from toolgate.kits.terminal import question as terminal

from .test_pages import asked, page, post

MB = 1 << 20
PAGE = 300_000
LONG: dict[str, Any] = {
    "many lines": "x = 1\n" * 200_000,
    "one long line": "x" * MB,
    "a few long lines": ("y" * 5000 + "\n") * 50,
    "blank lines": "\n" * 100_000,
    "many words": ["word"] * 40_000,
    "one long word": ["w" * MB],
    "a wide object": {f"k{n}": n for n in range(20_000)},
    "nested": {"a": [{"b": ["c" * 50] * 20}] * 500},
    "a text in an object": {"files": {"a.py": "z\n" * 300_000}},
    "invisible characters": "\u200b" * 50_000,
    "angle brackets": "<" * 60_000,
    "other scripts": "привет שלום\n" * 30_000,
    "numbers": list(range(40_000)),
}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as made:
        yield made


def question(args: dict[str, Any], preview: str = "") -> Question:
    return Question(
        "q_1",
        "sha256:0",
        "t.any",
        args,
        "helper",
        preview,
        Effects.of((), ("outside",)),
        "it is asked",
        "rule",
        0,
        1,
        False,
    )


@pytest.mark.parametrize("name", LONG)
async def test_a_page_stays_small_whatever_an_argument_holds(name: str) -> None:
    long = question(args={"short": "seen", "long": LONG[name]}, preview="")
    painter = Painter()
    seen = await view(long, painter)
    drawn = "".join(line for each in seen.arguments for line in (*each.lines, *each.words, each.value))
    assert len(drawn) < PAGE / 2, name
    assert seen.cut or seen.too_large
    assert not seen.complete
    assert next(each for each in seen.arguments if each.name == "short").value == '"seen"'
    painter.close()


@pytest.mark.parametrize("name", LONG)
async def test_pieces_hold_every_byte_of_it(name: str) -> None:
    long = question(args={"long": LONG[name]}, preview="what\nit does")
    found = list(pieces.all_of(long))
    assert len(found) == pieces.total(long)
    assert max(len(each.text) for each in found) <= pieces.WIDE
    joined = "".join(("\n" if each.number > 1 else "") + each.text for each in found if each.part == "long")
    assert joined == "\n".join(pieces.lines(LONG[name]))
    assert pieces.extent(LONG[name]).lines == sum(1 for _ in pieces.lines(LONG[name]))


@pytest.mark.parametrize("text", ["a\n" * 50_000, "x" * MB, ("z" * 3000 + "\n") * 400])
async def test_a_diff_is_cut_by_characters_too(text: str) -> None:
    preview = "\n".join(["--- /dev/null", "+++ b/a.txt", f"@@ -0,0 +1,{text.count(chr(10)) or 1} @@"])
    preview += "\n" + "\n".join(f"+{line}" for line in text.removesuffix("\n").split("\n"))
    painter = Painter()
    seen = await view(question(args={}, preview=preview), painter)
    size = sum(len(one.html) for file in seen.files for _, blocks in file.hunks for block in blocks for one in (*block.same, *block.old, *block.new))  # fmt: skip
    assert size < PAGE / 2
    assert seen.cut > 0
    painter.close()


async def test_a_million_lines_are_leafed_through_before_they_are_approved(here: House) -> None:
    long = await asked(here, "line\n" * 7000 + "x" * 1_200_000)
    assert too_large(long)
    async with here.browser() as client:
        first = (await page(here, client, f"/questions/{long.id}")).text
        assert len(first) < PAGE
        assert "Piece by piece" in first
        assert 'id="approve"' not in first
        seen, start, pages = "", 0, 0
        while True:
            text = (await page(here, client, f"/questions/{long.id}/pieces?from={start}")).text
            assert len(text) < PAGE
            seen += "".join(re.findall(r"<code>(.*?)</code></div>", text))
            forward = re.search(r'rel="next" href="[^"]*from=(\d+)"', text)
            if forward is None:
                break
            # not before the last piece
            assert (await approve(here, client, long)).status_code == 403
            start, pages = int(forward[1]), pages + 1
        assert html.unescape(seen).count("line") >= 7000
        assert pages >= 3
        assert seen.count("x") >= 1_200_000
        assert 'id="approve"' in (await page(here, client, f"/questions/{long.id}")).text
        assert (await approve(here, client, long)).status_code == 303
    assert await here.gate.approvals() == []


async def approve(here: House, client: httpx2.AsyncClient, long: Question) -> httpx2.Response:
    return await post(here, client, f"/questions/{long.id}/approve", digest=long.digest)


async def test_skipping_to_the_end_is_not_reading(here: House) -> None:
    long = await asked(here, "x\n" * 25_000)
    async with here.browser() as client:
        for start in (24_000, 22_000):
            await page(here, client, f"/questions/{long.id}/pieces?from={start}")
        assert (await approve(here, client, long)).status_code == 403
        whole = await page(here, client, f"/questions/{long.id}/text")
        assert whole.headers["content-disposition"].startswith("attachment")
        assert whole.text.count("x\n") >= 25_000
        assert (await approve(here, client, long)).status_code == 303


async def test_what_one_session_has_read_another_has_not(here: House) -> None:
    long = await asked(here, "x\n" * 25_000)
    async with here.browser() as client:
        await page(here, client, f"/questions/{long.id}/text")
    async with here.client() as other:
        answer = await other.get("/", params={"token": here.site.tokens.of("human")})
        assert answer.status_code == 303
        assert 'id="approve"' not in (await page(here, other, f"/questions/{long.id}")).text


async def test_show_all_shows_all_that_a_page_can(here: House) -> None:
    long = await asked(here, "\n".join(f"line {n}" for n in range(5000)) + "\n" + "y" * 20_000)
    async with here.browser() as client:
        first = (await page(here, client, f"/questions/{long.id}")).text
        assert len(first) < PAGE
        assert "are not shown here" in first
        text = (await page(here, client, f"/questions/{long.id}?all=true")).text
        assert "line 4999" in text
        assert text.count("y" * pieces.WIDE) == 20_000 // pieces.WIDE
        assert 'id="approve"' in text


async def test_pages_about_what_happened_are_cut_too(here: House) -> None:
    long = await asked(here, "x\n" * 25_000 + "y" * 300_000)
    async with here.browser() as client:
        for path in ("/", "/activity", f"/events/{long.id}", "/parts/list"):
            text = (await page(here, client, path)).text
            assert len(text) < PAGE, path
        assert "only the beginning of" in (await page(here, client, f"/events/{long.id}")).text
        listed = (await client.get(f"{here.site.base}/api/v1/approvals")).json()["approvals"][0]
        assert listed["cut"] is True
        assert len(str(listed)) < PAGE
        alone = (await client.get(f"{here.site.base}/api/v1/approvals/{long.id}")).json()
        assert alone["args"] == dict(long.args)


async def test_questions_that_are_too_long_together_are_not_shown_together(here: House) -> None:
    both = [await asked(here, f"{n}\n" * 15_000) for n in "ab"]
    async with here.browser() as client:
        chosen = "&".join(f"id={each.id}" for each in both)
        answer = await page(here, client, f"/questions?{chosen}")
        assert answer.status_code == 400
        assert "too large for a page" in answer.text


@pytest.mark.parametrize("name", LONG)
async def test_a_terminal_says_what_it_cut_and_a_form_does_not_ask(name: str) -> None:
    long = question(args={"long": LONG[name]}, preview="")
    assert not form.fits(long)
    assert len(terminal.sentence(long)) < 500
    if terminal.is_short(long):
        return
    shown = terminal._arguments(long)
    assert len(shown) < 10_000
    assert "(cut: " in shown
    assert f"toolgate approvals {long.id} --args long" in shown
    text = "\n".join(pieces.as_text(long, "long"))
    assert len(text) >= pieces.extent(LONG[name]).chars
