"""The garden with many files: list, search, lint and verify beside rg and a plain parse; a section patch beside `fs.edit`."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

import toolgate
from bench.measure import Line, Step, alternate, millis, quantile
from bench.run import Run
from toolgate.features.garden.layout import template
from toolgate.features.garden.service import Garden
from toolgate.workspace.search.program import find_rg

ROOM = {"per_minute": 1_000_000, "per_hour": 1_000_000}
CONFIG = {
    "version": 1,
    "default_persona": "tender",
    "personas": {"tender": {"phase": "collaborate", "allow": ["*"]}},
    "mounts": {"garden": {"path": "garden"}},
    "limits": {"global": ROOM, "persona": ROOM},
    "cache": {"bytes": 0},
}
PROFILE = "garden:users/me/parts/p0/profile.md"
BAR = 1.5
SOON = 3.0
"""Seconds after which an answer is no longer interactive."""


async def garden(run: Run) -> list[Line]:
    root = run.folder("garden")
    count = run.count(10_000, 1_000)
    _grow(root, count)
    async with toolgate.open(root, CONFIG) as gate:
        found: Garden = gate.feature("garden")
        run.tell(f"taking {count:,} files on record")
        recording = await _spent(found.notice)
        lines = [
            Line(what=f"a garden of {count:,} files is recorded for the first time", ours=str(recording), how="once"),
            await _once(run, f"list {count:,} files", found.files, "find", ["find", str(root / "garden"), "-name", "*.md"]),
            await _search(run, gate, root, count),
            *await _lint(run, found, root, count),
            await _once(run, f"verify {count:,} files", found.verify, "sha256sum", ["sh", "-c", f"find {root}/garden -name '*.md' -exec sha256sum {{}} +"], SOON),
        ]  # fmt: skip
        return [*lines, await _patch(run, gate)]


class Spent(NamedTuple):
    """Of a step: the clock, and the processor, which others on the machine do not change."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s (processor {self.processor:.2f} s)"


def _processor() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


async def _spent(step: Step) -> Spent:
    begun, computed = time.perf_counter(), _processor()
    await step()
    return Spent(time.perf_counter() - begun, _processor() - computed)


def _grow(root: Path, count: int) -> None:
    for number in range(count):
        file = root / f"garden/users/me/parts/p{number}/profile.md"
        file.parent.mkdir(parents=True)
        text = template("part", "me", f"p{number}")
        for anchor in ("summary v1", "concerns v1", "strengths v1"):
            text = text.replace(
                f"{anchor} -->\n", f"{anchor} -->\n" + "some words about it and what was said. " * 12 + "\n"
            )
        items = "".join(f'- "said so" number {each} (ev:e{each})\n' for each in range(5))
        file.write_text(text.replace("evidence v1 -->\n", f"evidence v1 -->\n{items}"))


async def _once(
    run: Run, what: str, ours: Step, peer: str, command: list[str], bar: float | None = None
) -> Line:
    run.tell(what)

    async def other() -> None:
        await asyncio.to_thread(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)

    pairs = [(await _spent(ours), await _spent(other)) for _ in range(3)]
    mine, theirs = sorted(pair[0] for pair in pairs)[1], sorted(pair[1] for pair in pairs)[1]
    return _line(what, mine, theirs, f"median of 3; peer: `{peer}`", bar)


def _line(what: str, mine: Spent, theirs: Spent, how: str, bar: float | None = None) -> Line:
    return Line(
        what=what, ours=str(mine), peer=str(theirs), ratio=mine.wall / theirs.wall, how=how,
        bar=f"≤ {bar:g} s of the processor" if bar else "–", holds=mine.processor <= bar if bar else None,
    )  # fmt: skip


async def _search(run: Run, gate: toolgate.Gate, root: Path, count: int) -> Line:
    async def ours() -> None:
        assert (
            await gate.call("code.search", {"pattern": "said so. number 4", "paths": ["garden:users/me"]})
        ).ok

    command = [find_rg() or "rg", "-n", "said so. number 4", str(root / "garden")]
    return await _once(run, f"search {count:,} files", ours, "rg", command)


async def _lint(run: Run, found: Garden, root: Path, count: int) -> list[Line]:
    run.tell("lint")
    files = [root / file.path.replace(":", "/", 1) for file in await found.files()]
    parser = MarkdownIt("commonmark")

    async def plain() -> None:
        for file in files:
            parser.parse(file.read_text())

    async def first_results() -> None:
        async for batch in found.linted():
            assert batch.found
            break

    theirs, how = await _spent(plain), "once; peer: a plain parse by markdown-it"
    early, first, again = (
        await _spent(first_results),
        await _spent(found.lint_all),
        await _spent(found.lint_all),
    )
    for file in files[:: max(count // 100, 1)]:
        file.write_text(file.read_text() + "\nMore.\n")
    changed = await _spent(found.lint_all)
    return [
        Line(what="lint: the first results", ours=str(early), how="once, nothing is known yet"),
        _line(f"lint {count:,} files, the first time", first, theirs, how),
        _line(f"lint {count:,} files again", again, theirs, how, SOON),
        _line(f"lint {count:,} files, 100 of them changed", changed, theirs, how, SOON),
    ]


async def _patch(run: Run, gate: toolgate.Gate) -> Line:
    run.tell("a section patch beside fs.edit")
    turn = iter(range(1_000_000))

    async def ours() -> None:
        done = await gate.call(
            "md.patch_section",
            {"path": PROFILE, "section_anchor": "concerns v1", "replace": f"Words {next(turn)}."},
        )
        assert done.ok, done.error

    said = ["Summary."]

    async def plain() -> None:
        said.append(f"Summary {next(turn)}.")
        done = await gate.call("fs.edit", {"path": PROFILE, "find": said[-2], "replace": said[-1]})
        assert done.ok, done.error

    await gate.call(
        "md.patch_section", {"path": PROFILE, "section_anchor": "summary v1", "replace": said[-1]}
    )
    mine, theirs = await alternate(ours, plain, run.count(100, 40))
    quick, peer = quantile(mine, 0.5), quantile(theirs, 0.5)
    return Line(
        what="md.patch_section (section, Change Log, copy)", ours=millis(quick), peer=millis(peer), ratio=quick / peer,
        bar=f"≤ {BAR:g} ×", holds=quick <= BAR * peer, how="median; peer: `fs.edit` of the same file",
    )  # fmt: skip
