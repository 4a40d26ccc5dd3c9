"""Kill -9 while recall stores, indexes, removes and re-embeds: what was said is there once, and search is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sampling import dice, fewer
from toolgate.recall.engine import open_recall
from toolgate.storage.tables import SqliteTables

from .embedders import WordEmbedder, crowd


async def test_a_killed_process_leaves_nothing_lost_twice_or_wrong(tmp_path: Path) -> None:
    chance = dice("kill recall")
    put, gone = 0, set[int]()
    for _ in range(fewer(25, 2)):
        steps = chance.randrange(4, 24)
        command = [sys.executable, "-m", "recall.recall_to_kill", str(tmp_path), str(put)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        ) as process:
            assert process.stdout is not None
            for line in (process.stdout.readline() for _ in range(steps)):
                what, _, number = line.strip().partition(" ")
                if what == "put":
                    put = int(number)
                elif what == "removed":
                    gone.add(int(number))
            process.kill()
        put, gone = await _right(tmp_path, put, gone)
    assert put > 0


async def _right(place: Path, put: int, gone: set[int]) -> tuple[int, set[int]]:
    tables = SqliteTables(place / "features.db")
    recall = await open_recall(tables, place / "recall", WordEmbedder())
    await recall.reembed()
    found = (await recall.search("harbour boats feline", scope="me", limit=5000)).hits
    ids = [hit.id for hit in found]
    assert len(ids) == len(set(ids))
    said = {f"me-{n}" for n in range(put)} - {f"me-{n}" for n in gone}
    more = [n for n in range(put, put + 10) if f"me-{n}" in ids]
    assert len(more) in (0, 9, 10), "ten are put together, or none; one of them may be removed"
    lost = said - set(ids)
    passed_over = lost - {f"me-{n}" for n in range(0, put, 50)}  # a removal may have been done and not said
    assert len(passed_over) <= 1 + put // 100, "a graph that is asked for everything may pass over a few"
    for number in (each.removeprefix("me-") for each in passed_over):
        hit = (await recall.search(f"number{number}", scope="me")).hits[0]
        assert (hit.id, hit.semantic is not None) == (f"me-{number}", True)
    assert not {f"me-{n}" for n in gone} & set(ids) - {f"me-{n}" for n in more}
    for hit in found:
        assert hit.semantic is not None
    item = crowd(put)[-1] if put else None
    if item is not None and item.id in said - lost:
        assert (await recall.search(f"number{put - 1}", scope="me")).hits[0].id == item.id
    await tables.close()
    return put + (10 if more else 0), gone
