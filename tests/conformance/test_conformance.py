"""The official conformance suite: what toolgate passes by itself, as a client, and with a server behind it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from toolgate.faces.tokens import Tokens

from .gateway import as_client
from .page import ALONE, AS_CLIENT, NOT_PASSED_ON, page
from .standing import Named, fixtures, gate_with, site
from .suite import HANDSHAKE, STATELESS, Found, Outcome, of_client, of_server

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
AT_ONCE = 3
Eras = dict[str, Found]


async def test_the_official_suite_passes_directly_through_the_gateway_and_as_a_client(tmp_path: Path) -> None:
    """One run for all, because programs that start cost more than scenarios; the page shows what was found."""
    async with (
        fixtures() as url,
        gate_with(_made(tmp_path / "project"), {"fixture": {"url": url}}) as gate,
        site(gate, Tokens(tmp_path / "tokens" / "t.json"), Named) as ours,
    ):
        direct, through = await asyncio.gather(
            _both(url, tmp_path / "direct"), _both(ours, tmp_path / "through")
        )
    clients = await _clients(tmp_path / "clients")
    _alone_everything_passes(through)
    _what_passes_directly_passes_through(direct, through)
    assert {key: one.failures for key, one in clients.items() if not one.ok} == {}
    told = page(direct, through, clients)
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN"):
        PAGE.write_text(told)
    assert PAGE.read_text() == told


def _alone_everything_passes(through: Eras) -> None:
    for version, scenarios in ALONE.items():
        for name, unless in scenarios.items():
            found = through[version][name]
            left = [one for one in found.failures if one.partition(":")[0] not in unless]
            assert not left, (version, name, left)
            assert found.passed, (version, name)


def _what_passes_directly_passes_through(direct: Eras, through: Eras) -> None:
    worse = {
        (version, name)
        for version, found in direct.items()
        for name, outcome in found.items()
        if outcome.ok and not through[version][name].ok
    }
    assert worse == {(version, name) for version, names in NOT_PASSED_ON.items() for name in names}


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


async def _both(url: str, place: Path) -> Eras:
    _made(place)
    found = await asyncio.gather(*(of_server(url, era, place / era) for era in (HANDSHAKE, STATELESS)))
    return dict(zip((HANDSHAKE, STATELESS), found, strict=True))


async def _clients(out: Path) -> dict[tuple[str, str], Outcome]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(command: str, scenario: str, version: str) -> Outcome:
        async with room:
            return await of_client(command, scenario, version, _made(out / f"{scenario}-{version}"))

    with tempfile.TemporaryDirectory(prefix="tg") as short:
        async with as_client(Path(short)) as command:
            found = await asyncio.gather(*(one(command, *which) for which in AS_CLIENT))
    return dict(zip(AS_CLIENT, found, strict=True))
