"""Several writers of one profile, and writers that die: no update is lost, and everything is on record."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.garden.plot import PROFILE, Plot, plot

import toolgate
from sampling import dice, fewer
from toolgate.core.change import Change
from toolgate.core.errors import UnknownOutcome
from toolgate.features.garden.editor import Editor
from toolgate.features.garden.watching import GardenWatch
from toolgate.workspace.staged import only_writer

HERE = Path(__file__).parent


@contextmanager
def writing(root: Path, name: str, seconds: float, database: str = "-") -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(toolgate.__file__).parents[1]), str(HERE)])
    }
    command = [sys.executable, str(HERE / "writer.py"), str(root), name, str(seconds), database]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "open"
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> tuple[int, ...]:
    """How many lines it wrote, and how often it had to try again."""
    assert process.stdout is not None
    return tuple(map(int, process.stdout.read().split()))


def lines(text: str) -> list[str]:
    section = text.partition("<!-- @anchor: concerns v1 -->\n")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_two_processes_and_a_person_lose_no_update(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    place = "-" if database == "sqlite" else request.getfixturevalue("postgres_server").fresh_dsn()
    root, seconds = tmp_path / "project", fewer(60, 2)
    async with plot(root, None if place == "-" else place) as at:
        watch = asyncio.create_task(GardenWatch(at.garden).run())
        with writing(root, "ada", seconds, place) as first, writing(root, "bob", seconds, place) as second:
            mine = 0
            while None in (first.poll(), second.poll()):
                await asyncio.sleep(0.1)
                with only_writer(root / ".toolgate/files.lock"):  # an editor that saves what it has just read
                    text = at.text().replace("concerns v1 -->\n", f"concerns v1 -->\n- me {mine}\n", 1)
                    (tmp_path / "saved").write_text(text)
                    os.replace(tmp_path / "saved", at.file())
                mine += 1
            assert (first.returncode, second.returncode) == (0, 0)
            counts = {"ada": said(first), "bob": said(second)}
        watch.cancel()
        print(f"{database}, {seconds} s: writes and conflicts {counts}, saves of the person {mine}")
        written = lines(at.text())
        expected = [f"- {name} {number}" for name, (count, _) in counts.items() for number in range(count)]
        assert all(done for done, _ in counts.values())
        assert sorted(written) == sorted(expected + [f"- me {number}" for number in range(mine)])
        await at.garden.notice("me")
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        for line in await at.garden.provenance(PROFILE):
            assert line.event > 0, line
            if line.text.startswith(("- ada", "- bob")):
                _, name, number = line.text.split()
                assert line.rationale == f"{name} says {number}"
            if line.text.startswith("- me"):
                assert line.who == "a person"


async def test_an_edit_on_top_of_one_that_is_not_recorded_yet_leaves_both_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, recorded = asyncio.Event(), asyncio.Event()
    apply = Editor.apply

    async def slow(self: Editor, change: Change) -> None:
        await apply(self, change)
        if not written.is_set():
            written.set()
            await recorded.wait()

    async def add(at: Plot, name: str) -> None:
        edit = {"append": f"- {name}", "rationale": f"{name} says so"}
        assert (await at.call("md.patch_section", path=PROFILE, section_anchor="concerns v1", **edit)).ok

    async with plot(tmp_path) as at:
        monkeypatch.setattr(Editor, "apply", slow)
        first = asyncio.create_task(add(at, "first"))
        await written.wait()
        await add(at, "second")
        await add(at, "third")
        await at.garden.notice("me")
        recorded.set()
        await first
        await add(at, "fourth")
        said = {
            one.text: one.rationale
            for one in await at.garden.provenance(PROFILE)
            if one.text.startswith("- ")
        }
        assert [said[f"- {name}"] for name in ("first", "second", "third", "fourth")] == [
            "first says so", "second says so", "third says so", "fourth says so",
        ]  # fmt: skip
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}


async def test_a_call_of_unknown_outcome_keeps_nobodys_edit_from_being_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Editor.apply

    async def lost(self: Editor, change: Change) -> None:
        await apply(self, change)
        raise UnknownOutcome("the line was cut", "look")

    edit = {"path": PROFILE, "section_anchor": "concerns v1", "append": "- theirs", "rationale": "lost"}
    async with plot(tmp_path) as at:
        with monkeypatch.context() as cut:
            cut.setattr(Editor, "apply", lost)
            assert not (await at.call("md.patch_section", **edit)).ok
        assert len(await at.gate.unknown_calls()) == 1
        assert await at.garden.notice("me") == []  # what it may have brought is no person's
        at.file().write_text(at.text().replace("- theirs\n", "- theirs\n- mine\n"))
        assert [one.path for one in await at.garden.notice("me")] == [PROFILE]
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}


@pytest.mark.crash
async def test_killed_at_any_moment_file_copies_log_and_ledger_agree(tmp_path: Path) -> None:
    root, chance = tmp_path / "project", dice("kills in a garden")
    for number in range(fewer(150, 4)):
        with writing(root, f"run{number}", 1000) as process:
            time.sleep(chance.uniform(0, 0.4))
            process.kill()
            process.wait()
    async with plot(root, None) as at:
        assert not [path for path in (root / "garden").rglob("*") if path.name.startswith(".")], (
            "something was left behind"
        )
        assert {one.state for one in await at.garden.verify("me")} == {"ok"}
        done = [one for one in await at.garden.history(PROFILE) if one.op == "append_section"]
        written = lines(at.text())
        assert len(written) == len(set(written)) == len(done)
        names = {line.split()[1] for line in written}
        print(f"{len(names)} of the killed had written {len(written)} lines")
        assert len(names) >= fewer(30, 0), "the kills must have fallen into writing"
        logged = re.findall(r"append_section concerns v1 by tender; (\S+) says (\d+)", at.text())
        assert sorted(f"- {name} {number}" for name, number in logged) == sorted(written)
        copies = list((root / "garden/users/me/parts/work/history").glob("*.md")) if done else []
        assert len(copies) == len(done)
        assert {one.who for one in await at.garden.provenance(PROFILE)} <= {"tender", "human"}
