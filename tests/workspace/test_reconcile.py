from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.change import Change, FileChange
from toolgate.core.errors import Conflict
from toolgate.workspace.files import Side, WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.write import settle_change

from .making import at, change, on_disk, put

MADE = change(a=(b"1", b"one"), b=(b"2", None), c__d=(None, b"3"))
BEFORE = {"a": b"1", "b": b"2"}
AFTER = {"a": b"one", "c/d": b"3"}


async def test_all_new_has_happened_and_all_old_has_not(files: WorkspaceFiles, project: Path) -> None:
    put(project, dict(BEFORE))
    assert (await settle_change(files, MADE.manifest)).outcome == "not"
    await files.apply(MADE)
    assert (await settle_change(files, MADE.manifest)).outcome == "happened"


async def test_half_a_change_is_finished_from_the_kept_images(files: WorkspaceFiles, project: Path) -> None:
    put(project, BEFORE | {"a": b"one"})
    await files.keep(MADE)
    settled = await settle_change(files, MADE.manifest)
    assert settled.outcome == "happened"
    assert "interrupted" in settled.why
    assert on_disk(project) == AFTER


async def test_half_a_change_is_taken_back_where_only_old_images_are_kept(
    files: WorkspaceFiles, images: Images, project: Path
) -> None:
    put(project, BEFORE | {"a": b"one"})
    images.put([b"1", b"2"])
    assert (await settle_change(files, MADE.manifest)).outcome == "not"
    assert on_disk(project) == BEFORE


async def test_half_a_change_without_images_is_unknown_and_left_alone(
    files: WorkspaceFiles, project: Path
) -> None:
    half = BEFORE | {"a": b"one"}
    put(project, dict(half))
    assert (await settle_change(files, MADE.manifest)).outcome == "unknown"
    assert on_disk(project) == half


async def test_a_third_content_is_unknown_and_left_alone(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"a": b"third", "b": b"2"})
    await files.keep(MADE)
    settled = await settle_change(files, MADE.manifest)
    assert settled.outcome == "unknown"
    assert "project:a" in settled.why
    assert on_disk(project) == {"a": b"third", "b": b"2"}


@pytest.mark.parametrize("after", [b"1", b"2"])
async def test_a_change_of_bits_is_finished_though_no_hash_shows_it(
    files: WorkspaceFiles, project: Path, after: bytes
) -> None:
    made = Change((FileChange(at("run"), b"1", after, 0o640, 0o750),))
    put(
        project, {"run": after}
    )  # killed before the bits were given, or in a change of nothing else before anything
    (project / "run").chmod(0o640)
    await files.keep(made)
    assert (await settle_change(files, made.manifest)).outcome == "happened"
    assert (project / "run").stat().st_mode & 0o777 == 0o750
    assert on_disk(project) == {"run": after}


@pytest.mark.parametrize("turn", ["to a directory", "to a file"])
async def test_half_a_change_of_a_file_into_a_directory_is_finished_from_either_side(
    files: WorkspaceFiles, project: Path, turn: str
) -> None:
    made = Change(
        (
            FileChange(at("x"), b"a file", None),
            FileChange(at("x"), None, b"", kind="directory"),
            FileChange(at("x/y"), None, b"in it"),
        )
    )
    if turn == "to a file":
        made = made.inverse()
    file, folder = {"x": b"a file"}, {"x/y": b"in it"}
    start, end = (file, folder) if turn == "to a directory" else (folder, file)
    put(project, dict(start))
    await files.keep(made)
    assert (await settle_change(files, made.manifest)).outcome == "not"
    put(project, dict.fromkeys(start))  # killed once what was there had gone
    assert (await settle_change(files, made.manifest)).outcome == "happened"
    assert on_disk(project) == end
    assert (await settle_change(files, made.manifest)).outcome == "happened"


async def test_a_file_that_became_something_else_is_unknown(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"b": b"2"})
    (project / "a").mkdir()
    await files.keep(MADE)
    assert (await settle_change(files, MADE.manifest)).outcome == "unknown"


async def test_leftovers_of_a_killed_writer_are_swept_and_those_of_others_are_not(
    files: WorkspaceFiles, project: Path
) -> None:
    put(project, dict(BEFORE))
    ours = ".toolgate-tmp-ca978112ca1b-000000000000"  # begins with the hash of the name "a"
    put(project, {ours: b"half", ".toolgate-tmp-other": b"not ours", ".note": b"theirs"})
    await settle_change(files, MADE.manifest)
    assert on_disk(project) == BEFORE | {".toolgate-tmp-other": b"not ours", ".note": b"theirs"}


side = st.one_of(st.none(), st.binary(max_size=8))
changes = st.lists(st.tuples(side, side), min_size=1, max_size=5).map(
    lambda pairs: Change(
        tuple(
            FileChange(at(f"{'dir/' * (i % 2)}f{i}"), before, after)
            for i, (before, after) in enumerate(pairs)
        )
    )
)


@settings(max_examples=fewer(25, 8), deadline=None)
@given(made=changes, to=st.sampled_from(["before", "after"]), data=st.data())
def test_from_any_interruption_a_change_rolls_either_way_and_a_third_content_stops_it(
    made: Change, to: Side, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(made.files)))
    meddled = data.draw(st.one_of(st.none(), st.integers(0, len(made.files) - 1)))
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(_interrupt_and_roll(Path(directory), made, to, cut, meddled))


async def _interrupt_and_roll(base: Path, made: Change, to: Side, cut: int, meddled: int | None) -> None:
    root = base / "project"
    root.mkdir()
    with Mounts({"project": root}) as mounts:
        files = WorkspaceFiles(mounts, Images(base / "images"), base)
        await files.keep(made)
        put(root, {file.path.relative: file.before for file in made.files})
        put(root, {file.path.relative: file.after for file in made.files[:cut]})
        if meddled is not None:
            put(root, {made.files[meddled].path.relative: b"a third content"})
            found = on_disk(root)
            with pytest.raises(Conflict):
                await files.roll(made, to)
            assert on_disk(root) == found
            assert (await settle_change(files, made.manifest)).outcome == "unknown"
            return
        await files.roll_manifest(made.manifest, to)
        await files.roll(made, to)  # again: nothing left to do
        expected = {file.path.relative: getattr(file, to) for file in made.files}
        assert on_disk(root) == {name: content for name, content in expected.items() if content is not None}
