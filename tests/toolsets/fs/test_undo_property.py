"""Whatever was done, undoing it in reverse gives the start back, to the byte and the bit; or refuses and touches nothing."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgate.core.result import Result

from .world import World, tree, world

NAMES = st.sampled_from(["a", "b.txt", "d", "d/a", "d/e/f", "d/e", "x/y/z", ".gitignore", "empty"])
TEXT = st.text(st.sampled_from("ab\n é"), max_size=12)
STEPS = st.one_of(
    st.tuples(st.just("write"), st.fixed_dictionaries({"path": NAMES, "content": TEXT})),
    st.tuples(st.just("append"), st.fixed_dictionaries({"path": NAMES, "text": TEXT})),
    st.tuples(
        st.just("edit"),
        st.fixed_dictionaries(
            {"path": NAMES, "find": st.sampled_from("ab"), "replace": TEXT, "all": st.booleans()}
        ),
    ),
    st.tuples(st.just("move"), st.fixed_dictionaries({"path": NAMES, "new_path": NAMES})),
    st.tuples(st.just("delete"), st.fixed_dictionaries({"path": NAMES})),
    st.tuples(st.just("ensure_dir"), st.fixed_dictionaries({"path": NAMES})),
)
Steps = list[tuple[str, dict[str, Any]]]
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def furnish(root: Path) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "a").write_bytes(b"a\r\nb\r\n")
    (root / "d/a").write_bytes(b"ab")
    (root / "d/a").chmod(0o755)
    (root / "d/e/f").write_bytes(b"\xef\xbb\xbfab\n")
    (root / "d/e/f").chmod(0o600)


async def play(at: World, steps: Steps) -> list[Result]:
    """The calls that had an effect. A refused one must have had none."""
    done = []
    for verb, args in steps:
        before = tree(at.root)
        result = await at.call(verb, **args)
        if not result.ok:
            assert tree(at.root) == before, (verb, args, result.error)
        elif tree(at.root) != before:
            done.append(result)
    return done


@FEW
@given(st.lists(STEPS, min_size=1, max_size=8))
def test_undoing_in_reverse_gives_the_start_back(steps: Steps) -> None:
    async def go(root: Path) -> None:
        furnish(root)
        async with world(root) as at:
            start = tree(root)
            for result in reversed(await play(at, steps)):
                undone = await at.undo(result)
                assert undone.ok, undone.error
            assert tree(root) == start

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(Path(directory)))


@FEW
@given(st.lists(STEPS, min_size=1, max_size=5), st.integers(0, 100))
def test_undo_refuses_where_somebody_else_was_and_touches_nothing(steps: Steps, which: int) -> None:
    async def go(root: Path) -> None:
        furnish(root)
        async with world(root) as at:
            done = await play(at, steps)
            changed = [row for result in done[-1:] for row in await artifacts(at, result)]
            files = [
                row["path"].partition(":")[2]
                for row in changed
                if "directory" not in (row["before"], row["after"])
            ]
            if not files:
                return
            meddle(root / files[which % len(files)])
            before = tree(root)
            undone = await at.undo(done[-1])
            assert undone.error is not None
            assert undone.error.code in ("conflict", "blocked_path")
            assert tree(root) == before

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(Path(directory)))


async def artifacts(at: World, result: Result) -> list[dict[str, Any]]:
    rows = await at.gate.events()
    found = next(row for row in rows if row.seq == result.meta.event_id)
    listed: list[dict[str, Any]] = json.loads(found.body)["artifacts"]
    return listed


def meddle(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        (file / "theirs").write_text("somebody else's")
        file = file / "theirs"
    file.write_text("somebody else's")
