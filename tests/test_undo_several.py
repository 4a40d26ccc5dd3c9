"""Several calls are taken back as one, or not at all; and every undo is a call that can be undone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.clock import SECOND, iso
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.storage.port import Filter
from toolgate.testing import FixedClock

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "collaborate", "allow": ["fs.*", "mail.*"]}},
}


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def gate(tmp_path: Path, sent: list[str], clock: FixedClock) -> AsyncIterator[Gate]:
    async def unsend(to: str) -> None:
        sent.remove(to)

    @toolgate.tool("mail.send", writes=["outside"], undo=unsend)
    async def send(to: str) -> None:
        sent.append(to)

    @toolgate.tool("mail.shout", writes=["outside"])
    async def shout(to: str) -> None:
        sent.append(to.upper())

    async with toolgate.open(tmp_path, CONFIG, "memory", tools=[send, shout], clock=clock) as opened:
        yield opened


async def write(gate: Gate, path: str, content: str, **more: Any) -> int:
    return event(await gate.call("fs.write", {"path": path, "content": content}, **more))


def event(result: Result) -> int:
    assert result.ok, result.error
    assert result.meta.event_id is not None
    return result.meta.event_id


def refused(result: Result) -> str:
    assert result.error is not None, result.data
    assert result.error.code == "conflict"
    return f"{result.error.message} | {result.error.fix}"


async def test_calls_that_touched_one_file_are_undone_together_and_redone_together(
    gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("0")
    first, second = await write(gate, "a", "1"), await write(gate, "a", "2")
    other = await write(gate, "b/c", "new")
    undone = await gate.undo(first, second, other)
    assert undone.ok, undone.error
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").exists()) == ("0", False)
    assert undone.data["events"] == [other, second, first]
    rows = await gate.events(Filter(call=undone.meta.call_id, kinds=("started", "committed", "undone")))
    assert [row.kind for row in rows] == ["started", "committed", "undone", "undone", "undone"]
    again = await gate.undo(event(undone))
    assert again.ok, again.error
    assert ((tmp_path / "a").read_text(), (tmp_path / "b/c").read_text()) == ("2", "new")
    assert (await gate.verify()).ok


async def test_what_was_redone_can_be_undone_by_its_own_event_again(gate: Gate, tmp_path: Path) -> None:
    written = await write(gate, "a", "1")
    undone = await gate.undo(written)
    assert "undone already" in refused(await gate.undo(written))
    assert (await gate.undo(event(undone))).ok
    assert (await gate.undo(written)).ok
    assert not (tmp_path / "a").exists()
    assert "undone already" in refused(await gate.undo(written))


async def test_a_call_in_between_is_named_and_nothing_is_touched(gate: Gate, tmp_path: Path) -> None:
    first = await write(gate, "a", "1")
    between = await write(gate, "a", "2")
    last = await write(gate, "a", "3")
    free = await write(gate, "b", "new")
    said = refused(await gate.undo(first, last, free))
    assert (
        f"a was changed between event {first} and event {last}: event {between} (fs.write by builder)" in said
    )
    said = refused(await gate.undo(first))
    assert f"a is no longer as event {first} left it: event {last} (fs.write by builder)" in said
    assert f"toolgate undo {last} {between}" in said
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("3", "new")


async def test_somebody_else_is_not_called_a_call(gate: Gate, tmp_path: Path) -> None:
    first, second = await write(gate, "a", "1"), await write(gate, "b", "1")
    (tmp_path / "a").write_text("mine")
    assert "not by a call through the gate" in refused(await gate.undo(first, second))
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("mine", "1")


async def test_a_conversation_is_undone_and_what_cannot_be_is_said(
    gate: Gate, tmp_path: Path, sent: list[str]
) -> None:
    other = await write(gate, "other", "1", conversation="c-2")
    done = await write(gate, "a", "1", conversation="c-1")
    undone_before = await write(gate, "b", "1", conversation="c-1")
    undo = event(await gate.undo(undone_before))
    mail = event(await gate.call("mail.send", {"to": "ada"}, conversation="c-1"))
    shout = event(await gate.call("mail.shout", {"to": "bob"}, conversation="c-1"))
    await gate.call("fs.read", {"path": "a"}, conversation="c-1")

    seen = await gate.undo(conversation="c-1", preview=True)
    assert seen.ok, seen.error
    assert seen.data["events"] == [done, mail]
    assert [(one["event_id"], one["why"]) for one in seen.data["skipped"]] == [
        (undone_before, f"undone already, by event {undo}")
    ]
    assert [one["event_id"] for one in seen.data["cannot"]] == [shout]
    assert "--- a/a\n+++ /dev/null" in seen.data["diff"]
    assert ((tmp_path / "a").exists(), sent) == (True, ["ada", "BOB"])

    result = await gate.undo(conversation="c-1")
    assert result.ok, result.error
    assert ((tmp_path / "a").exists(), (tmp_path / "other").exists(), sent) == (False, True, ["BOB"])
    assert {row.conversation for row in await gate.events(Filter(tool="ledger.undo"))} == {"c-1"}
    assert "nothing to undo" in refused(await gate.undo(conversation="c-1"))
    assert (await gate.undo(*result.data["redo"])).ok  # the file is back; the mail stays unsent
    assert (tmp_path / "a").read_text() == "1"
    assert (await gate.undo(other)).ok


@pytest.mark.parametrize("how", ["span", "time", "event", "call"])
async def test_all_since_a_moment_is_undone(gate: Gate, tmp_path: Path, clock: FixedClock, how: str) -> None:
    await write(gate, "a", "1")
    clock.advance(3600)
    result = await gate.call("fs.write", {"path": "a", "content": "2"})
    clock.advance(60)
    await write(gate, "b", "new")
    since = {
        "span": "5m", "event": str(result.meta.event_id), "call": result.meta.call_id,
        "time": iso(clock.now() - 120 * SECOND),
    }[how]  # fmt: skip
    assert (await gate.undo(since=since)).ok
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").exists()) == ("1", False)


@pytest.mark.parametrize(
    ("unit", "seconds"), [("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)]
)
async def test_a_span_is_as_long_as_its_unit_says(
    gate: Gate, tmp_path: Path, clock: FixedClock, unit: str, seconds: int
) -> None:
    await write(gate, "a", "1")
    clock.advance(seconds)
    await write(gate, "b", "2")
    clock.advance(2 * seconds - 0.1)
    assert (await gate.undo(since=f"2{unit}")).ok
    assert ((tmp_path / "a").exists(), (tmp_path / "b").exists()) == (True, False)
    clock.advance(0.2)
    assert "nothing to undo" in refused(await gate.undo(since=f"2 {unit}"))


@pytest.mark.parametrize("since", ["yesterday", "10 parsecs", "-5m", "c_unknown"])
async def test_a_moment_that_is_none_is_refused(gate: Gate, since: str) -> None:
    result = await gate.undo(since=since)
    assert result.error is not None
    assert result.error.code in ("invalid_args", "not_found")


async def test_undo_must_be_told_what(gate: Gate) -> None:
    for result in (await gate.undo(), await gate.undo(1, since="5m"), await gate.undo(1, conversation="c")):
        assert result.error is not None
        assert result.error.code == "invalid_args"


async def test_a_preview_touches_and_records_nothing(gate: Gate, tmp_path: Path) -> None:
    written = await write(gate, "a", "1")
    before = len(await gate.events(Filter()))
    assert (await gate.undo(written, preview=True)).data["files"] == [
        {"path": "project:a", "op": "delete", "kind": "file"}
    ]
    assert "undo it by hand" in refused(
        await gate.undo(event(await gate.call("mail.shout", {"to": "x"})), preview=True)
    )
    assert ((tmp_path / "a").read_text(), len(await gate.events(Filter()))) == ("1", before + 2)


async def test_a_file_that_became_a_directory_becomes_a_file_again(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file")
    (tmp_path / "x").chmod(0o750)
    events = [
        event(await gate.call("fs.delete", {"path": "x"})),
        await write(gate, "x/y", "in it"),
    ]
    undone = await gate.undo(*events)
    assert undone.ok, undone.error
    assert ((tmp_path / "x").read_text(), (tmp_path / "x").stat().st_mode & 0o777) == ("a file", 0o750)
    again = await gate.undo(event(undone))
    assert again.ok, again.error
    assert (tmp_path / "x/y").read_text() == "in it"
    (tmp_path / "x/theirs").write_text("theirs")
    refused(await gate.undo(*events))
    assert {file.name: file.read_text() for file in (tmp_path / "x").iterdir()} == {
        "y": "in it",
        "theirs": "theirs",
    }


async def test_a_scratch_save_is_undone_too(gate: Gate, tmp_path: Path) -> None:
    saved = event(await gate.call("fs.save", {"path": "notes.txt", "content": "x"}))
    assert (tmp_path / ".toolgate/scratch/notes.txt").exists()
    assert (await gate.undo(saved)).ok
    assert not (tmp_path / ".toolgate/scratch/notes.txt").exists()


async def test_what_one_call_made_and_another_took_away_needs_no_undoing(gate: Gate, tmp_path: Path) -> None:
    made = await write(gate, "a", "1")
    gone = event(await gate.call("fs.delete", {"path": "a"}))
    kept = await write(gate, "b", "1")
    assert (await gate.undo(made, gone, kept)).ok
    assert not (tmp_path / "b").exists()
    assert "undone already" in refused(await gate.undo(made))


async def test_an_undo_that_is_undone_together_with_its_subject_leaves_things_as_they_are(
    gate: Gate, tmp_path: Path
) -> None:
    written = await write(gate, "a", "1")
    undo = event(await gate.undo(written))
    both = await gate.undo(written, undo)
    assert both.ok, both.error
    assert not (tmp_path / "a").exists()


async def test_the_ledger_of_an_undo_says_what_it_undid(gate: Gate) -> None:
    events = [await write(gate, "a", "1"), await write(gate, "a", "2")]
    undone = await gate.undo(*events)
    (started,) = await gate.events(Filter(call=undone.meta.call_id, kinds=("started",)))
    assert json.loads(started.body)["undoes"] == events[::-1]


async def test_a_file_that_was_changed_and_then_deleted_comes_back_with_its_bits(
    gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "run").write_text("1")
    (tmp_path / "run").chmod(0o750)
    events = [await write(gate, "run", "2"), event(await gate.call("fs.delete", {"path": "run"}))]
    assert (await gate.undo(*events)).ok
    assert (tmp_path / "run").read_text() == "1"
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o750
