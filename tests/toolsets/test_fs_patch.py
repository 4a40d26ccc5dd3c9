"""`fs.patch` through the gate: one question for many files, policy on every path, and files that move on meanwhile."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.change import content_hash
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.features.files import fs_patch
from toolgate.testing import FixedClock

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["fs.patch"]}, "asking": {"phase": "contribute"}},
    "policy": {
        "rules": [
            {"name": "people", "tools": ["fs.*"], "when": {"path": "deploy/**"}, "decision": "deny", "reason": "people do"}
        ]
    },
}  # fmt: skip
ONE = "--- a/{0}\n+++ b/{0}\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
TEXT = b"a\nb\nc\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "project"
    (root / "deploy").mkdir(parents=True)
    for name in ("x", "y", "z", ".env", "deploy/d"):
        (root / name).write_bytes(TEXT)
    return root


def rename(old: str, new: str, word: str = "rename") -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{word} from {old}\n{word} to {new}\n"


async def test_the_result_tells_hashes_hunks_and_offsets_of_every_file(project: Path) -> None:
    (project / "y").write_bytes(b"0\n" + TEXT + b"d\n")
    moved = ONE.format("y").replace("-1,3 +1,3", "-5,3 +5,3")
    created = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call(
            "fs.patch", {"diff": ONE.format("x") + moved + created + rename("z", "sub/zz")}
        )
        assert result.ok, result.error
        files = {file.pop("path"): file for file in result.data["files"]}
        was, now = content_hash(TEXT), content_hash(b"a\nB\nc\n")
        assert files["x"] == {
            "op": "modify", "origin": None, "before_hash": was, "after_hash": now, "size": 6, "hunks": 1, "offsets": [0],
            "insertions": 1, "deletions": 1,
        }  # fmt: skip
        assert (files["y"]["offsets"], result.data["moved"], result.data["hunks"]) == ([-3], 1, 3)
        assert (files["new"]["op"], files["new"]["before_hash"]) == ("create", None)
        assert (files["sub/zz"]["op"], files["sub/zz"]["origin"]) == ("rename", "z")
        assert files["sub/zz"]["before_hash"] == files["sub/zz"]["after_hash"] == was
        assert (project / "y").read_bytes() == b"0\na\nB\nc\nd\n"
        assert (project / "new").read_bytes() == b"n\n"
        assert (project / "sub/zz").read_bytes() == TEXT
        assert not (project / "z").exists()


async def test_a_header_with_wrong_counts_is_recounted_and_it_is_said(project: Path) -> None:
    wrong = ONE.format("x").replace("-1,3 +1,3", "-1,7 +1,5") + ONE.format("y")
    async with toolgate.open(project, CONFIG, "memory") as gate:
        asked = await gate.call("fs.patch", {"diff": wrong}, persona="asking", wait=False)
        assert asked.error is not None
        (question,) = await gate.approvals()
        assert "@@ -1,3 +1,3 @@" in question.preview, "whoever is asked sees what will be written"
        result = await gate.call("fs.patch", {"diff": wrong})
        assert result.ok, result.error
        assert (result.data["recounted"], result.data["hunks"]) == (1, 2)
        assert (project / "x").read_bytes() == (project / "y").read_bytes() == b"a\nB\nc\n"
        (row,) = [row for row in await gate.events() if row.kind == "committed"]
        assert "2 files, 2 hunks, 1 of them recounted" in row.body
        cut = await gate.call(
            "fs.patch", {"diff": ONE.format("z").replace("1,3", "1,9").removesuffix(" c\n")}
        )
        assert cut.error is not None
        assert "ends within the hunk" in cut.error.message


async def test_one_file_is_patched_by_path_and_either_spelling_and_undone(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        hunk = ONE.split("\n", 2)[2]
        result = await gate.call("fs.patch", {"path": "x", "diffText": hunk})
        assert result.ok, result.error
        assert result.data["new_hash"] == content_hash(b"a\nB\nc\n")
        assert result.meta.event_id is not None
        assert (await gate.undo(result.meta.event_id)).ok
        assert (project / "x").read_bytes() == TEXT
        for args in ({"path": "x", "diff_text": hunk, "diff": hunk}, {"path": "x"}, {}):
            refused = await gate.call("fs.patch", args)
            assert refused.error is not None
            assert refused.error.code == "invalid_args"


async def test_a_reject_in_the_last_file_changes_none(project: Path) -> None:
    (project / "y").write_bytes(b"other\n")
    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call("fs.patch", {"diff": ONE.format("x") + ONE.format("y")})
        assert result.error is not None
        assert (result.error.code, result.data["path"], result.data["hunk"]) == ("conflict", "y", 1)
        assert (
            "hunk 1 (line 10 of the diff) does not apply to 'y': line 1 is 'other', not 'a'"
            in result.error.message
        )
        assert (project / "x").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("diff", "code", "said"),
    [
        (ONE.format("x") + ONE.format(".env"), "blocked_path", "blocked name"),
        (rename("x", ".env"), "blocked_path", "blocked name"),
        (rename(".env", "stolen"), "blocked_path", "blocked name"),
        (rename(".env", "stolen", "copy"), "blocked_path", "blocked name"),
        (rename("x", ".toolgate/x"), "blocked_path", "blocked name"),
        (ONE.format("toolgate.yaml"), "blocked_path", "blocked name"),
        (ONE.format(".git/config"), "blocked_path", "blocked name"),
        (ONE.format("x") + ONE.format("deploy/d"), "not_allowed", "people do"),
        (rename("deploy/d", "d"), "not_allowed", "people do"),
        (rename("deploy/d", "d", "copy"), "not_allowed", "people do"),
        (rename("x", "deploy/x"), "not_allowed", "people do"),
        (ONE.format("../x"), "outside_mount", "leads upwards"),
        (ONE.format("nowhere:x"), "not_allowed", "no mount"),
        (rename("garden:g", "garden:h"), "not_allowed", "no mount"),
        (ONE.format("garden:g"), "not_allowed", "no mount"),
    ],
)  # fmt: skip
async def test_every_path_of_the_diff_goes_through_policy_before_it_is_read(
    project: Path, diff: str, code: str, said: str
) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        for text in (diff, diff.replace("\n a\n", "\n guess\n")):  # whether a guess at the content is right
            result = await gate.call("fs.patch", {"diff": text})
            assert result.error is not None
            assert (result.error.code, said in result.error.message) == (code, True), result.error
    assert (project / "x").read_bytes() == (project / ".env").read_bytes() == TEXT


async def test_a_link_is_never_patched_through(project: Path) -> None:
    (project / "link").symlink_to("x")
    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call("fs.patch", {"diff": ONE.format("link")})
        assert result.error is not None
        assert result.error.code == "blocked_path"
        assert (project / "x").read_bytes() == TEXT


class Human:
    """Approves everything; before the first answer somebody else touches a file."""

    name = "human"

    def __init__(self, file: Path) -> None:
        self.file = file
        self.questions: list[Question] = []
        self.gate: toolgate.Gate | None = None

    async def ask(self, question: Question) -> None:
        assert self.gate is not None
        self.questions.append(question)
        if len(self.questions) == 1:
            self.file.write_bytes(b"somebody was here\n" + TEXT)
        await self.gate.answer(question.id, "approve")


async def test_a_file_changed_between_question_and_answer_is_asked_about_again(project: Path) -> None:
    human = Human(project / "y")
    diff = "".join(ONE.format(name).replace("-1,3 +1,3", "-2,3 +2,3") for name in "xyz")
    for name in "xyz":
        (project / name).write_bytes(b"0\n" + TEXT)
    async with toolgate.open(project, CONFIG, clock=FixedClock(), channels=[human]) as gate:
        human.gate = gate
        result = await gate.call("fs.patch", {"diff": diff}, persona="asking")
        assert result.ok, result.error
        first, second = human.questions
        assert first.undoable
        assert (first.id != second.id, first.digest != second.digest) == (True, True)
        assert " 0\n a\n-b\n+B\n c\n--- a/z" in first.preview
        assert " somebody was here\n a\n-b\n+B\n c\n--- a/z" in second.preview
        assert second.again == "what it would do has changed since it was approved"
        assert (project / "y").read_bytes() == b"somebody was here\na\nB\nc\n"
        started = [row for row in await gate.events() if row.kind == "started"]
        assert [row.ref for row in started] == [second.id]
        assert (await gate.verify()).ok


async def test_an_approval_given_before_the_file_changed_does_not_run_the_repeated_call(
    project: Path,
) -> None:
    clock = FixedClock()
    async with toolgate.open(project, CONFIG, clock=clock) as gate:
        call = {"diff": ONE.format("x") + ONE.format("y")}
        asked = await gate.call("fs.patch", call, persona="asking", wait=False)
        await gate.answer(asked.data["question"], "approve")
        clock.advance(60)
        (project / "y").write_bytes(TEXT + b"more\n")
        again = await gate.call("fs.patch", call, persona="asking", wait=False)
        assert again.error is not None
        assert again.error.code == "pending"
        assert again.data["question"] != asked.data["question"]
        (question,) = await gate.approvals()
        assert " more" in question.preview
        assert (project / "x").read_bytes() == TEXT
        await gate.answer(question.id, "approve")
        assert (await gate.call("fs.patch", call, persona="asking", wait=False)).ok
        assert (project / "y").read_bytes() == b"a\nB\nc\nmore\n"


async def test_a_diff_that_no_longer_applies_after_the_answer_runs_nothing(project: Path) -> None:
    async with toolgate.open(project, CONFIG, clock=FixedClock()) as gate:
        call = {"diff": ONE.format("x") + ONE.format("y")}
        asked = await gate.call("fs.patch", call, persona="asking", wait=False)
        await gate.answer(asked.data["question"], "approve")
        (project / "y").write_bytes(b"gone\n")
        again = await gate.call("fs.patch", call, persona="asking", wait=False)
        assert again.error is not None
        assert again.error.code == "conflict"
        assert (project / "x").read_bytes() == TEXT


async def test_the_ledger_keeps_the_hashes_of_every_file(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        assert (await gate.call("fs.patch", {"diff": ONE.format("x") + rename("y", "w")})).ok
        started = next(row for row in await gate.events() if row.kind == "started")
        change = {
            entry["path"]: (entry["op"], entry["before"], entry["after"])
            for entry in json.loads(started.body)["change"]
        }
        was, now = content_hash(TEXT), content_hash(b"a\nB\nc\n")
        assert change == {
            "project:x": ("modify", was, now),
            "project:y": ("delete", was, None),
            "project:w": ("create", None, was),
        }


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


async def test_modes_are_changed_kept_by_renames_and_given_back_by_undo(project: Path) -> None:
    (project / "x").chmod(0o640)
    (project / "y").chmod(0o750)
    diff = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n" + rename("y", "sub/run")
    diff += "diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call("fs.patch", {"diff": diff})
        assert result.ok, result.error
        assert [mode_of(project / name) for name in ("x", "sub/run", "new")] == [0o750, 0o750, 0o755]
        assert result.meta.event_id is not None
        undone = await gate.undo(result.meta.event_id)
        assert undone.ok, undone.error
        assert (mode_of(project / "x"), mode_of(project / "y")) == (0o640, 0o750)
        assert not (project / "sub").exists()


async def test_the_question_says_that_a_file_becomes_executable(project: Path) -> None:
    diff = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    async with toolgate.open(project, CONFIG, "memory") as gate:
        await gate.call("fs.patch", {"diff": diff}, persona="asking", wait=False)
        (question,) = await gate.approvals()
        assert question.preview.startswith("old mode 644\nnew mode 755\n--- a/x")


async def test_a_patch_in_scratch_needs_no_question_where_scratch_saves_need_none(project: Path) -> None:
    (project / "tmp").mkdir()
    config = CONFIG | {"mounts": {"project": {"path": "."}, "scratch": {"path": "tmp"}}}
    created = "--- /dev/null\n+++ b/scratch:new\n@@ -0,0 +1 @@\n+n\n"
    async with toolgate.open(project, config, "memory") as gate:
        assert (await gate.call("fs.patch", {"diff": created}, persona="asking", wait=False)).ok
        both = await gate.call(
            "fs.patch", {"diff": ONE.format("x") + created.replace("new", "2")}, persona="asking", wait=False
        )
        assert both.error is not None
        assert both.error.code == "pending"


async def test_of_a_long_diff_nothing_is_kept_in_memory_once_it_is_planned(project: Path) -> None:
    lines = "".join(f"+{number}\n" for number in range(50_000))
    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call(
            "fs.patch", {"diff": f"--- /dev/null\n+++ b/long\n@@ -0,0 +1,50000 @@\n{lines}"}
        )
        assert result.ok, result.error
    assert fs_patch._one.cache_info().currsize == 0


async def test_a_long_diff_is_parsed_beside_other_calls_also_where_another_one_took_its_place_in_memory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[threading.Thread] = []

    def forgetful(text: str, path: MountPath | None) -> Any:
        where.append(threading.current_thread())
        return fs_patch._checked(text, path)

    forgetful.cache_clear = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setattr(fs_patch, "_one", forgetful)
    lines = "".join(f"+{number}\n" for number in range(50_000))
    async with toolgate.open(project, CONFIG, "memory") as gate:
        diff = f"--- /dev/null\n+++ b/long\n@@ -0,0 +1,50000 @@\n{lines}"
        assert (await gate.call("fs.patch", {"diff": diff})).ok
    assert where
    assert threading.main_thread() not in where
