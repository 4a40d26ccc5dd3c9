"""Changed employers, moved cities, cancelled plans: 200 written cases of facts that were replaced, 200 of facts that were not."""

from __future__ import annotations

from pathlib import Path

from toolgate.facade import Gate

from .world import done, recalled, stored

DATA = Path(__file__).parent / "data"


def cases(name: str) -> list[tuple[str, str, str]]:
    lines = [line for line in (DATA / name).read_text().splitlines() if line and not line.startswith("#")]
    found = [line.split(" | ") for line in lines]
    return [(one, other, question) for one, other, question in found]


async def test_a_superseded_fact_is_never_returned_as_current(gate: Gate) -> None:
    """All 200 in one memory, so that each is also a distraction for the others; half by naming it, half by its subject."""
    written = cases("superseded.txt")
    assert len(written) == 200
    for number, (old, new, _) in enumerate(written):
        subject = {"subject": f"case {number}"}
        ident = await stored(gate, old, **subject)
        say = {"supersedes": [ident]} if number % 2 else {"same_subject": "supersede"}
        await stored(gate, new, **subject, **say)
    missed = []
    for old, new, question in written:
        found = {one["content"]: one["verdict"] for one in await recalled(gate, question, limit=20)}
        assert old not in found, f"{old!r} is superseded by {new!r}"
        assert "superseded" not in found.values()
        shown = {
            one["content"]: one["verdict"]
            for one in await recalled(gate, old, limit=50, include_superseded=True)
        }
        assert shown.get(old) == "superseded", old
        missed += [] if new in found else [new]
    assert len(missed) <= 20, missed  # whether it is found at all is the index's affair, and judged elsewhere


async def test_no_true_fact_is_retired_by_one_that_is_like_it(gate: Gate) -> None:
    """The second fact comes in five ways, none of which may put the first aside."""
    written = cases("standing.txt")
    assert len(written) == 200
    ways = (_unlinked, _undone, _later, _weak, _of_another)
    for number, (first, second, _) in enumerate(written):
        subject = f"case {number}"
        ident = await stored(gate, first, subject=subject)
        await ways[number % len(ways)](gate, ident, second, subject)
    for number, (first, _, question) in enumerate(written):
        found = {
            one["content"]: one["verdict"] for one in await recalled(gate, f"{question} {first}", limit=20)
        }
        wanted = "disputed" if ways[number % len(ways)] is _weak else "current"
        assert found.get(first) == wanted, (first, found)


async def _unlinked(gate: Gate, ident: str, second: str, subject: str) -> None:
    """On the same subject, and nobody says that it replaces anything."""
    await stored(gate, second, subject=subject)


async def _undone(gate: Gate, ident: str, second: str, subject: str) -> None:
    """Said to replace it, and taken back."""
    result = await gate.call("memory.store", {"content": second, "supersedes": [ident]}, persona="ada")
    assert (await gate.undo(result.meta.event_id or 0)).ok


async def _later(gate: Gate, ident: str, second: str, subject: str) -> None:
    """It will replace it, next year."""
    await stored(gate, second, supersedes=[ident], valid_from="2028-01-01")


async def _weak(gate: Gate, ident: str, second: str, subject: str) -> None:
    """Something of low trust would like to replace it: both are shown, and that they disagree."""
    await stored(gate, second, supersedes=[ident], trust="low")


async def _of_another(gate: Gate, ident: str, second: str, subject: str) -> None:
    """It replaces a third one on the same subject, whose link was corrected first."""
    third = await stored(gate, f"{second}, they say", subject=subject)
    new = await stored(gate, second, supersedes=[third, ident])
    await done(gate, "memory.update", {"memory_id": new, "supersedes": [third]})
