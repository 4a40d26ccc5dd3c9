"""Whatever was done, undoing it in reverse gives the start back, to the byte and the bit; or refuses and touches nothing."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.change import Change, FileChange
from toolgate.core.diff import render
from toolgate.core.paths import MountPath
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
    st.tuples(
        st.just("patch"),
        st.fixed_dictionaries(
            {"edits": st.dictionaries(NAMES, st.none() | TEXT, min_size=1, max_size=3), "run": st.booleans()}
        ),
    ),
)
Steps = list[tuple[str, dict[str, Any]]]
FEW = settings(max_examples=fewer(25, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def furnish(root: Path) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "a").write_bytes(b"a\r\nb\r\n")
    (root / "d/a").write_bytes(b"ab")
    (root / "d/a").chmod(0o755)
    (root / "d/e/f").write_bytes(b"\xef\xbb\xbfab\n")
    (root / "d/e/f").chmod(0o600)
    (root / "hollow").touch()
    (root / "d").chmod(0o711)
    (root / "link").symlink_to("d/a")


async def play(at: World, steps: Steps) -> list[Result]:
    """The calls that had an effect. A refused one must have had none."""
    done = []
    for verb, args in steps:
        before = tree(at.root)
        if verb == "patch":
            args = {"diff": patch(at.root, **args)}
        result = await at.call(verb, **args)
        if not result.ok:
            assert tree(at.root) == before, (verb, args, result.error)
        elif tree(at.root) != before:
            done.append(result)
    return done


def patch(root: Path, edits: dict[str, str | None], run: bool) -> str:
    """What would bring these files to these contents, as a diff; some of them may not be possible."""
    parts = []
    for name, text in edits.items():
        file = root / name
        before = file.read_bytes() if file.is_file() else None
        after = None if text is None else text.encode()
        if before != after and (before or after):
            mode = 0o755 if run and before is None else None
            one = FileChange(MountPath.parse(name), before, after, after_mode=mode)
            parts.append(f"diff --git a/{name} b/{name}\n{render(Change((one,)))}\n")
    return "".join(parts) or "nothing\n"


@FEW
@example([("delete", {"path": "d"}), ("ensure_dir", {"path": "d"})], True)  # its bits come back too
@given(st.lists(STEPS, min_size=1, max_size=8), st.booleans())
def test_undoing_in_reverse_gives_the_start_back(steps: Steps, at_once: bool) -> None:
    async def go(root: Path) -> None:
        furnish(root)
        async with world(root) as at:
            start = tree(root)
            done = await play(at, steps)
            end = tree(root)
            groups = [done] if at_once and done else [[result] for result in reversed(done)]
            undos = [await undo(at, group) for group in groups]
            assert tree(root) == start
            for result in reversed(undos):  # and all of it can be had back
                await undo(at, [result])
            assert tree(root) == end

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(Path(directory)))


@FEW
@given(st.lists(STEPS, min_size=1, max_size=5), st.integers(0, 100), st.booleans())
def test_undo_refuses_where_somebody_else_was_and_touches_nothing(
    steps: Steps, which: int, at_once: bool
) -> None:
    async def go(root: Path) -> None:
        furnish(root)
        async with world(root) as at:
            done = await play(at, steps)
            events = [result.meta.event_id or 0 for result in (done if at_once else done[-1:])]
            if not events:
                return
            planned = await at.gate.undo(*events, preview=True)
            assert planned.ok, planned.error
            files = [
                file["path"].partition(":")[2] for file in planned.data["files"] if file["kind"] == "file"
            ]
            if not files:
                return
            meddle(root / files[which % len(files)])
            before = tree(root)
            undone = await at.gate.undo(*events)
            assert undone.error is not None
            assert undone.error.code in ("conflict", "blocked_path")
            assert tree(root) == before

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(Path(directory)))


async def undo(at: World, results: list[Result]) -> Result:
    undone = await at.gate.undo(*(result.meta.event_id or 0 for result in results))
    assert undone.ok, undone.error
    return undone


def meddle(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        (file / "theirs").write_text("somebody else's")
        file = file / "theirs"
    file.write_text("somebody else's")
