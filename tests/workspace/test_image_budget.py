"""Images stay within their budget, and what is needed stays whatever the budget says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.change import content_hash
from toolgate.core.errors import TooLarge, Unavailable
from toolgate.core.ports import Holder
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.holdings import ASKED, ENTRY, PLAIN, RANKS, SCRATCH, UNKEPT
from toolgate.workspace.images import DAY, Images, digest_of

from .making import change, on_disk

PUTTER = Path(__file__).with_name("image_putter.py")


def hash_of(content: bytes) -> str:
    return content_hash(content) or ""


def ten(letter: str) -> bytes:
    return letter.encode() * 10


def keep(images: Images, letter: str, persona: str = "bob", rank: int = PLAIN) -> bool:
    return images.keep(f"{persona}-{letter}", persona, rank, [ten(letter)])


def kept(images: Images) -> str:
    return "".join(letter for letter in "abcdefgh" if images.has(hash_of(ten(letter))))


def room(holders: int) -> int:
    return holders * (10 + ENTRY)


def test_the_oldest_of_the_same_persona_goes_first_and_a_needed_one_stays(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 20, persona=room(3))
    for letter in "abcde":
        keep(images, letter)
    keep(images, "f", "eve")
    images.drop("bob", frozenset({"bob-a"}))
    assert kept(images) == "aef", "one more than must go goes, so that not every call has to make room"


def test_scratch_goes_first_and_never_pushes_out_anything_else(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 20, persona=room(4))
    keep(images, "a")
    keep(images, "b", rank=SCRATCH)
    keep(images, "c", rank=SCRATCH)
    keep(images, "d")
    keep(images, "e")
    images.drop("bob", frozenset())
    assert kept(images) == "ade"
    keep(images, "f")
    with pytest.raises(TooLarge, match="the image budget of bob is full"):
        keep(images, "g", rank=SCRATCH)
    assert kept(images) == "adef"


def test_what_a_human_was_asked_about_stays_until_its_time_is_up(tmp_path: Path) -> None:
    now = [0]
    images = Images(tmp_path / "images", total=1 << 20, persona=room(2), days=30, now=lambda: now[0])
    keep(images, "a", rank=ASKED)
    keep(images, "b", rank=ASKED)
    with pytest.raises(TooLarge, match="full"):
        keep(images, "c", rank=ASKED)
    assert kept(images) == "ab"
    now[0] = 30 * DAY
    keep(images, "c", rank=ASKED)
    images.drop("bob", frozenset())
    assert kept(images) == "c"


def test_an_image_of_two_personas_counts_for_each_and_goes_with_the_last(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 20)
    for persona in ("bob", "eve"):
        keep(images, "a", persona)
    with images.holdings.reading() as accounts:
        assert (accounts.spent("bob"), accounts.spent("eve")) == (room(1), room(1))
    images.release("bob-a")
    assert kept(images) == "a"
    images.release("eve-a")
    assert (kept(images), images.usage().bytes) == ("", 0)


def test_needed_images_stay_even_where_they_are_over_the_budget(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 20, persona=room(1))
    for letter in "abc":
        keep(images, letter)
    images.drop("bob", frozenset({"bob-a", "bob-b", "bob-c"}))
    assert kept(images) == "abc"


def test_what_cannot_be_undone_is_kept_only_while_its_call_needs_it(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 20, persona=room(1))
    keep(images, "a", rank=ASKED)
    assert keep(images, "b", rank=UNKEPT)
    images.drop("bob", frozenset({"bob-b"}))
    assert kept(images) == "ab"
    images.drop("eve", frozenset())
    assert kept(images) == "a"


def test_images_of_a_version_that_kept_no_accounts_are_nobodys_and_go_first(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=room(3))
    images.put([ten("a"), ten("b")])
    for letter in "cd":
        keep(images, letter, rank=ASKED)
    images.drop("bob", frozenset())
    assert len(kept(images)) == 3
    assert kept(images).endswith("cd")


def test_the_work_for_one_more_does_not_grow_with_what_is_kept(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1 << 40)
    steps = []
    with images.holdings.writing() as accounts:
        for number in range(3000):
            if number in (10, 2990):
                counted = [0]
                accounts._database.set_progress_handler(lambda c=counted: c.__setitem__(0, c[0] + 1), 1)
                assert images._fits(accounts, "bob", ASKED, {"h": 5})
                accounts.add(f"c{number}", "bob", ASKED, number, number, {"shared": 5, f"h{number}": 5})
                accounts._database.set_progress_handler(None, 0)
                steps.append(counted[0])
            else:
                accounts.add(f"c{number}", "bob", ASKED, number, number, {"shared": 5, f"h{number}": 5})
    assert steps[1] < steps[0] * 1.5


def test_a_change_that_alone_is_over_the_budget_is_refused_and_a_content_counts_once(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1000, change=25)
    bob = Holder("c1", "bob")
    assert images.check(change(a=(ten("a"), ten("b")), c=(ten("a"), None), d=(None, ten("b"))), bob) == (
        "cannot be undone: the image budget of bob is full"
    )
    with pytest.raises(TooLarge, match="30 bytes to keep for undo, and the limit is 25"):
        images.check(change(a=(ten("a"), ten("b")), c=(None, ten("c"))), bob)
    small = Images(tmp_path / "images", total=10, change=25)
    with pytest.raises(TooLarge, match="the limit is 10"):
        small.check(change(a=(ten("a"), ten("b"))), bob)
    strict = Images(tmp_path / "images", total=1000, refuse=True)
    with pytest.raises(TooLarge, match="the image budget of bob is full"):
        strict.check(change(a=(None, ten("a"))), bob)
    assert strict.check(change(a=(None, ten("a"))), Holder("c1", "human")), "a human's undo is not refused"


async def test_nobody_puts_an_image_while_it_is_found_out_which_are_needed(
    files: WorkspaceFiles, images: Images
) -> None:
    """Else an image that is put again between asking and dropping would be dropped under a running call."""
    images.persona = room(1)
    keep(images, "a")
    other = threading.Thread(target=images.keep, args=("again", "bob", PLAIN, [ten("a")]))

    async def needed() -> frozenset[str]:
        other.start()
        other.join(0.05)
        assert other.is_alive(), "it has to wait"
        return frozenset({"new"})

    files.needed = needed
    await files.keep(change(b=(None, ten("b"))), Holder("new", "bob"))
    other.join(10)
    assert kept(images) == "ab", "put again after the dropping"


async def test_keeping_makes_room_by_itself(files: WorkspaceFiles, images: Images) -> None:
    images.persona = room(3)

    async def needed() -> frozenset[str]:
        return frozenset()

    files.needed = needed
    for letter in "abcdef":
        await files.keep(change(x=(None, ten(letter))), Holder(letter, "bob"))
    assert kept(images).endswith("f")
    assert len(kept(images)) <= 3


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("keep"), st.sampled_from(["bob", "eve", "human"]), st.sampled_from(RANKS),
            st.sets(st.sampled_from("abcdef"), max_size=3), st.integers(0, 5),
        ),
        st.tuples(st.just("release"), st.integers(0, 30)),
        st.tuples(st.just("drop"), st.sampled_from(["bob", "eve", "human"]), st.sets(st.integers(0, 30), max_size=3)),
        st.tuples(st.just("wait"), st.integers(1, 3)),
    ),
    max_size=30,
)  # fmt: skip


@settings(
    max_examples=fewer(60, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(OPERATIONS)
def test_the_accounts_always_say_what_the_holders_hold(tmp_path: Path, operations: list[Any]) -> None:
    """After any history the sums are those of the holders, what is held is there, and nobody lost another's."""
    place = tmp_path / os.urandom(6).hex()
    place.mkdir()
    clock = [0]
    images = Images(place / "images", total=room(12), persona=room(4), days=1, now=lambda: clock[0])
    other = Images(place / "images", total=room(12), persona=room(4), days=1, now=lambda: clock[0])
    try:
        for number, operation in enumerate(operations):
            before = holders(images)
            acting = images if number % 2 else other  # as two processes
            mine = apply(acting, clock, number, operation)
            after = holders(images)
            lost = {ident for ident in before if ident not in after}
            assert all(before[ident][0] in (mine, "") or before[ident][1] == UNKEPT for ident in lost)
            if operation[0] != "release":
                assert not [one for one in lost if before[one][1] == ASKED and before[one][2] > clock[0]]
            check_sums(images)
            assert set(on_disk(images._directory)) == files_held(images)
    finally:
        images.close()
        other.close()


def apply(images: Images, clock: list[int], number: int, operation: Any) -> str:
    """Whose images may go by it."""
    match operation:
        case ("keep", persona, rank, letters, _):
            try:
                images.keep(f"c{number}", persona, rank, [ten(letter) for letter in sorted(letters)])
            except TooLarge:
                assert rank != UNKEPT
            return str(persona)
        case ("release", which):
            found = holders(images).get(f"c{which}", ("", 0, 0))
            images.release(f"c{which}")
            return str(found[0])
        case ("drop", persona, needed):
            images.drop(persona, frozenset(f"c{each}" for each in needed))
            return str(persona)
        case _:
            clock[0] += operation[1] * DAY // 2
            return ""


def holders(images: Images) -> dict[str, tuple[str, int, int]]:
    with images.holdings.reading() as accounts:
        rows = accounts._all("SELECT id, persona, rank, until FROM holders")
    return {ident: (persona, rank, until) for ident, persona, rank, until in rows}


def check_sums(images: Images) -> None:
    with images.holdings.reading() as accounts:
        held = accounts._all(
            "SELECT persona, hash, size, max(rank) FROM held JOIN holders USING (id) GROUP BY 1, 2, 3"
        )
        known = accounts._all("SELECT persona, rank FROM holders")
        spent = {(who, rank): size for who, rank, size in accounts._all("SELECT * FROM spent") if size}
    wanted: Counter[tuple[str, int]] = Counter()
    for persona, rank in known:
        wanted[persona, rank] += ENTRY
    for persona, _, size, rank in held:
        wanted[persona, rank] += size
    assert spent == {key: size for key, size in wanted.items() if size}
    assert images.usage().count == len({digest for _, digest, _, _ in held})


def files_held(images: Images) -> set[str]:
    with images.holdings.reading() as accounts:
        return {
            f"{digest[7:9]}/{digest[9:]}" for (digest,) in accounts._all("SELECT DISTINCT hash FROM owned")
        }


def test_processes_that_put_and_drop_and_are_killed_leave_only_whole_images(tmp_path: Path) -> None:
    directory = tmp_path / "images"
    putters = [
        subprocess.Popen(
            [sys.executable, str(PUTTER), str(directory)], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        for _ in range(2)
    ]
    try:
        for process in putters:
            assert process.stdout is not None
            for _ in range(15):
                assert process.stdout.readline() == b"put\n"
    finally:
        for process in putters:
            process.kill()
            process.wait(10)
            assert process.stdout is not None
            process.stdout.close()
    (directory / "ab").mkdir(exist_ok=True)
    (directory / "ab" / ".toolgate-tmp-half").write_bytes(b"half")
    images = Images(directory, total=1 << 20)
    os.close(images.hold())  # the locks of the dead are gone
    images.drop("bob", frozenset())
    found = on_disk(directory)
    assert found
    for name, content in found.items():
        assert hash_of(content) == "sha256:" + name.replace("/", ""), "whole, and under its own hash"
    assert images.usage().bytes <= 1 << 20
    check_sums(images)
    assert set(found) <= files_held(images), "nothing is there that counts for nobody"


def _damage(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)


def _take_away(file: Path) -> None:
    for one in file.parent.glob("images.db*"):
        one.unlink()


def test_accounts_that_are_taken_away_are_made_anew_and_nothing_kept_is_lost(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    images.keep("c_1", "ada", PLAIN, [b"before"])
    _take_away(tmp_path / "images.db")
    images.keep("c_2", "ada", PLAIN, [b"after"])
    other = Images(tmp_path / "images")
    assert (tmp_path / "images.db").exists()
    assert other.usage().count == images.usage().count == 2
    assert images.has(digest_of(b"before"))
    images.close()
    other.close()


def test_damaged_accounts_are_said_with_a_way_out_that_works_at_once(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    images.keep("c_1", "ada", PLAIN, [b"before"])
    images.close()
    _damage(tmp_path / "images.db")
    with pytest.raises(Unavailable, match="kept for undo") as said:
        images.keep("c_2", "ada", PLAIN, [b"after"])
    assert "images.db away" in said.value.fix
    assert said.value.certain
    _take_away(tmp_path / "images.db")
    images.keep("c_2", "ada", PLAIN, [b"after"])
    assert images.usage().count == 2
    images.close()
