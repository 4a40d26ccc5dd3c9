"""Paths made up of hostile pieces at random, through every argument that takes one: the rules hold for all of them.

The spellings of the suite are what somebody thought of. Here whatever can be put together of pieces is tried, several
at a time through one gate, because a gate takes longer to open than all its answers take.
"""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sampling import fewer

from .attempts import HISTORY, attacked, attempt, let_in, neutral, told
from .reach import Way, ways
from .traps import Place

PIECES = (
    "..", ".", "", "...", "sub", "a.txt", "outside", "page", "project", "etc", "passwd", "proc", "self", "root", "{outside}",
    "link_dir", "link_up", "link_root", "link_proc", "link_cwd", "link_garden", "circle_a", "hard", "fifo", "module", "up", "garden", "private",
    ".env", ".git", "config", "secrets", "token", "alias_secrets", "keys", "ledger.json", ".toolgate", ".ENV", "\uff0egit", ".e\u200cnv",
    "~", "~root", "project:", "scratch:", "garden:", "file:", "C:", "//host", "\\\\host", "..\\", "\\",
    "%2e%2e", "..%2f", "\uff0e\uff0e", "\u2025", "\u2215", "\uff0f", "\u200b", "\u202e", "\ufe0f", "e\u0301", "\0", "\n", "\ud800", "\udcc0\udcae",
    "*", "**", "[.][.]", "{..,a}", "-rf", "--output=x", "HEAD", "$HOME", "$(id)", " ", "x" * 250,
)  # fmt: skip
BETWEEN = ("/", "/", "/", "", "//", "/./", "/../", "\\")
OUT = re.compile(r"(^|[:/])\.\.(/|$)|^[/~\\]|[\x00-\x1f\x7f\\]")
"""By these alone a path is not plainly inside, wherever else it leads."""

WAYS_OUT = (
    "../outside/", "../../../../../../../../../..{outside}/", "{outside}/", "/proc/self/root{outside}/", "link_dir/", "link_up/outside/",
    "link_root{outside}/", "sub/up/up/outside/", "sub/link_deep/", "link_there_and_back/outside/", "garden:link_out/", "garden:../outside/",
    "project:../outside/", "scratch:../../../outside/", "file://{outside}/", "~/../outside/", "..\\outside\\", "link_proc/root{outside}/",
)  # fmt: skip
TAILS = (
    ("shelf", "flesh"),
    ("shelf/book", "flesh/book"),
    ("shelf/book", "shelf/cook"),
    ("shelf/book/x", "shelf/cook/x"),
)
"""What is there outside, and what is not: of one length, so that even that says nothing."""
FEW = settings(
    max_examples=fewer(12, 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def hostile(draw: st.DrawFn) -> str:
    parts = draw(
        st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(BETWEEN)), min_size=1, max_size=6)
    )
    return "".join(piece + between for piece, between in parts)


@st.composite
def pair(draw: st.DrawFn) -> tuple[str, str, str]:
    """A way out, to something and to nothing."""
    way, noise = (
        draw(st.sampled_from(WAYS_OUT)),
        draw(st.sampled_from(("", "./", ".//", "././", "sub/../", "/"))),
    )
    first = draw(st.booleans()) and ":" not in way
    return noise + way if first else way + noise, *draw(st.sampled_from(TAILS))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("random"))


@FEW
@example(["../outside/page", "link_dir/page", ".env", "garden/private/x"])
@given(st.lists(hostile(), min_size=4, max_size=6))
def test_no_path_of_hostile_pieces_reaches_what_is_outside_or_shut(place: Place, paths: list[str]) -> None:
    async def go() -> None:
        async with attacked(place) as gate:
            every = ways(gate.services.registry)
            for path in map(place.spell, paths):
                found = await attempt(gate, place, path, every)
                assert not OUT.search(path) or let_in(path, found) == []

    asyncio.run(go())


@FEW
@given(st.lists(pair(), min_size=2, max_size=3))
def test_what_is_outside_and_what_is_not_there_are_answered_alike(
    place: Place, pairs: list[tuple[str, str, str]]
) -> None:
    async def go() -> None:
        async with attacked(place) as gate:
            every = [way for way in ways(gate.services.registry) if compared(way)]
            for out, there, absent in pairs:
                first = await attempt(gate, place, place.spell(out + there), every)
                second = await attempt(gate, place, place.spell(out + absent), every)
                for way in every:
                    alike = neutral(first[way], there) == neutral(second[way], absent)
                    assert alike, f"{way}: {told(first[way])} {told(second[way])}"

    asyncio.run(go())


def compared(way: Way) -> bool:
    """Scratch has none of these links, and history knows what was committed."""
    return way.tool != "fs.save" and way.tool not in HISTORY
