"""Hostile content costs no more than long content, and holds up nobody else."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

import toolgate
from toolgate.secrets.scan.reading import look
from toolgate.secrets.scan.rules import UNJUDGED

from . import made, test_rules
from .corpus import GITHUB, PRIVATE_KEY, chars

RANDOM = chars(24)
UNITS = [
    "password=", "password=aaaaaaaaaaaa", "password = '", "awssecret_", "eyJ", "eyJ-", "eyJaaaaaaaaaaaaaaaa.", "://a:", "-----BEGIN " + "PRIVATE KEY-----",
    "nc -", "/dev/" + "tcp/", "eval( ", "mk" + "fifo |", "$_post[", "\u200b", "a\u200b", "\u202e", "\U000e0041", ".fileno() ", "SK", "sk-", "\n",
    f"k={GITHUB}", PRIVATE_KEY, "password ", "name=token value=", "kind: secret\n", "PuTTY-User-" + "Key-File-2: ", "AAAA", "== token", "'a1b2' + ",
    "dG9rZW49Z2hw", "a1b2c3d4e5f6g7h8 ", "\"kty\"", "bearer a1", " -p", "mysql -p(", "curl -u a:", "curl -u  ", "https://a/hooks/", "ZXlK/", "fm2_a/",
    "fm2_xxxxxxxxxxxx/", "db_pass:", "api_key=", "<token>", f"token={RANDOM}\n", f"key='{RANDOM}'\n", "Q~", "figur_", "glagent--", "a", "=", "${", "{{", "[0-",
]  # fmt: skip
SIZE = 120_000
SLOWER = 30
"""So many times longer than ordinary text a hostile one may take."""
ORDINARY = Path(test_rules.__file__).read_text() + Path(made.__file__).read_text().replace("token", "taken")


def seconds(text: str, size: int) -> float:
    """The better of two, because other processes run beside us."""
    content = (text * (size // len(text) + 1)).encode()[:size]
    taken = []
    for _ in range(2):
        begun = time.process_time()
        look(content, None)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.fixture(scope="module")
def ordinary() -> float:
    return seconds(ORDINARY, SIZE)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: ascii(unit)[:16])
def test_hostile_text_is_not_much_slower_than_ordinary_text_and_its_time_grows_with_its_size(
    unit: str, ordinary: float
) -> None:
    taken = seconds(unit, SIZE)
    assert taken < SLOWER * ordinary
    assert taken < 10 * seconds(unit, SIZE // 4) + 0.02


def test_values_that_are_all_different_are_no_way_around_the_bound(ordinary: float) -> None:
    drawn = random.Random(3)
    for form in ("pass" + "word={}\n", "to" + "ken='{}' ", "x{0:.4}_key: {0}\n"):
        text = "".join(form.format(f"{drawn.getrandbits(80):020x}") for _ in range(SIZE // 24))
        assert seconds(text, SIZE) < SLOWER * ordinary, form


def test_a_text_of_too_many_guesses_says_so_and_hides_no_token() -> None:
    text = "pass" + "word=hello_\n"
    seen = look((text * 10_000 + GITHUB + "\n" + PRIVATE_KEY).encode(), None)
    rules = {hit.rule for hit in seen.hits}
    assert rules == {UNJUDGED, "github-token", "private-key"}
    assert UNJUDGED in seen.crowded
    assert not look((text * 200).encode(), None).hits


async def test_megabytes_of_hostile_content_do_not_hold_up_the_loop(tmp_path: Path) -> None:
    config = {
        "version": 1,
        "default_persona": "maker",
        "personas": {"maker": {"phase": "collaborate", "allow": ["fs.*"]}},
    }
    content = "password=aaaaaaaaaaaa" * ((1 << 20) // 21)
    gaps = []

    async def watch() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.01)
            gaps.append(time.perf_counter() - begun)

    async with toolgate.open(tmp_path, config, "memory") as gate:
        scanner = gate.services.scanner
        held: list[tuple[float, float]] = []

        class Timed:
            def scan(self, change: toolgate.Change) -> object:
                gaps.clear()
                begun = time.perf_counter()
                found = scanner.scan(change)
                taken = time.perf_counter() - begun
                held.append((max(gaps, default=taken), taken))
                return found

        gate.services.scanner = Timed()  # type: ignore[assignment]
        watching = asyncio.create_task(watch())
        try:
            result = await asyncio.wait_for(gate.call("fs.write", {"path": "a.txt", "content": content}), 60)
        finally:
            watching.cancel()
        assert result.ok, result.error
    gap, taken = held[0]
    assert gap < taken / 2
