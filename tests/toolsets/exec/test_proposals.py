"""What a program changed in its view of the project: one patch, put to the gate as any write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.features.programs import running, viewing
from toolgate.testing import Approve, Refuse

from .running import POLICY, VIEWING, code, good, opened, tree

FREE = POLICY | VIEWING
THREE = """\
import os
os.chdir(os.environ['PROJECT'])
with open('a.txt', 'a') as file: file.write('three\\n')
with open('b.txt', 'w') as file: file.write('BEE\\n')
with open('src/app.py') as file: text = file.read()
with open('src/app.py', 'w') as file: file.write(text.replace('app', 'application'))
"""
DIFF = """\
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
 two
+three
--- a/b.txt
+++ b/b.txt
@@ -1 +1 @@
-bee
+BEE
--- a/src/app.py
+++ b/src/app.py
@@ -1 +1 @@
-print('app')
+print('application')"""


async def changed(gate: toolgate.Gate, program: str, **more: Any) -> dict[str, Any]:
    program = "import os\nos.chdir(os.environ['PROJECT'])\n" + program
    found = good(await gate.call("exec.python", {"code": program, "project": "overlay"}, **more))
    assert found["exit_code"] == 0, found["stderr"]
    return found


async def test_three_edited_files_are_one_patch_that_is_applied_and_undone(root: Path, mode: str) -> None:
    before = tree(root)
    async with opened(root, Approve("exec.python"), Approve("fs.apply")) as (gate, script):
        found = good(await gate.call("exec.python", {"code": THREE, "project": "overlay"}))
        proposal = found["proposal"]
        assert (proposal["state"], proposal["diff"], proposal["error"]) == ("applied", DIFF, None)
        assert [file["path"] for file in proposal["files"]] == ["a.txt", "b.txt", "src/app.py"]
        assert script.seen[1].preview == DIFF
        assert script.seen[1].undoable
        after = tree(root)
        assert after == before | {
            "a.txt": "one\ntwo\nthree\n",
            "b.txt": "BEE\n",
            "src/app.py": "print('application')\n",
        }
        assert (await gate.undo(proposal["event_id"])).ok
        assert tree(root) == before


async def test_a_refused_patch_leaves_the_project_untouched_and_the_run_as_it_was(root: Path) -> None:
    before = tree(root)
    async with opened(root, Approve("exec.python"), Refuse("fs.apply", "not like this")) as (gate, _):
        found = good(await gate.call("exec.python", {"code": THREE, "project": "overlay"}))
        assert found["proposal"]["state"] == "refused"
        assert "not like this" in found["proposal"]["error"]["message"]
        assert tree(root) == before
        runs = [row.kind for row in await gate.events() if row.tool == "exec.python"]
        assert runs[0] == "committed"


async def test_a_caller_that_cannot_wait_applies_it_after_the_approval(root: Path) -> None:
    async with opened(root, human=False, policy=FREE) as (gate, _):
        found = good(await gate.call("exec.python", {"code": THREE, "project": "overlay"}, wait=False))
        proposal = found["proposal"]
        assert (proposal["state"], proposal["error"]["code"]) == ("pending", "pending")
        apply = {"execution": proposal["execution"]}
        again = await gate.call("fs.apply", apply, wait=False)
        assert again.data["question"] == proposal["question"]
        await gate.answer(proposal["question"], "approve")
        assert (await gate.call("fs.apply", apply, persona="other", wait=False)).error.code == "not_found"  # type: ignore[union-attr]
        applied = good(await gate.call("fs.apply", apply, wait=False))
        assert [file["path"] for file in applied["files"]] == ["a.txt", "b.txt", "src/app.py"]
        assert tree(root)["b.txt"] == "BEE\n"
        assert code(await gate.call("fs.apply", apply, wait=False)) == "conflict"


async def test_the_same_change_is_the_same_proposal_and_a_key_repeats_nothing(root: Path) -> None:
    async with opened(root, human=False, policy=FREE) as (gate, _):
        args = {"code": THREE + "print(os.urandom(8).hex())", "project": "overlay"}
        first = good(await gate.call("exec.python", args, wait=False, key="k"))
        other = good(await gate.call("exec.python", args, wait=False))
        assert first["proposal"]["execution"] == other["proposal"]["execution"]
        assert first["stdout"] != other["stdout"]
        await gate.answer(first["proposal"]["question"], "approve")
        again = good(await gate.call("exec.python", args, wait=False, key="k"))
        assert (again["stdout"], again["proposal"]["state"]) == (first["stdout"], "applied")
        assert tree(root)["b.txt"] == "BEE\n"
        once_more = good(await gate.call("exec.python", args, wait=False, key="k"))
        assert once_more["proposal"]["event_id"] == again["proposal"]["event_id"]


async def test_a_key_also_repeats_a_program_that_a_human_was_asked_about(root: Path) -> None:
    async with opened(root, human=False) as (gate, _):
        args = {"code": THREE, "project": "overlay"}
        asked = await gate.call("exec.python", args, wait=False, key="k")
        await gate.answer(asked.data["question"], "approve")
        first = good(await gate.call("exec.python", args, wait=False, key="k"))
        again = await gate.call("exec.python", args, wait=False, key="k")
        assert again.meta.cached
        assert good(again)["proposal"]["question"] == first["proposal"]["question"]


async def test_a_phase_that_may_not_write_runs_the_program_and_refuses_the_change(root: Path) -> None:
    before = tree(root)
    async with opened(root, policy=FREE) as (gate, _):
        found = await changed(gate, "open('a.txt', 'w').write('x')", persona="analyst")
        assert (found["proposal"]["state"], found["proposal"]["error"]["code"]) == ("refused", "not_allowed")
        assert tree(root) == before


@pytest.mark.parametrize(
    "name", [".env", "new.pem", ".toolgate/x", "toolgate.yaml", ".git/hooks/post-commit"]
)
async def test_a_change_of_a_blocked_name_is_refused_naming_it(root: Path, name: str) -> None:
    before = tree(root)
    async with opened(root, policy=FREE) as (gate, _):
        program = f"os.makedirs(os.path.dirname({name!r}) or '.', exist_ok=True)\nopen({name!r}, 'w').write('x')\nopen('a.txt', 'w').write('y')"
        proposal = (await changed(gate, program))["proposal"]
        assert proposal["state"] == "refused"
        assert name.split("/")[0] in proposal["error"]["message"]
        assert tree(root) == before


async def test_removing_a_directory_that_hides_something_is_refused(root: Path) -> None:
    before = tree(root)
    async with opened(root, policy=FREE) as (gate, _):
        proposal = (await changed(gate, "import shutil\nshutil.rmtree('src')"))["proposal"]
        assert (proposal["state"], proposal["error"]["code"]) == ("refused", "blocked_path")
        assert "src" in proposal["error"]["message"]
        assert tree(root) == before


async def test_somebody_elses_edit_while_the_program_runs_is_a_conflict(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_and_edit(mounts: Any, environment: Any) -> Any:
        """Somebody is quick: the edit comes right after the look at the project, before the program starts."""
        seen = viewing.look_over(mounts, environment)
        (root / "a.txt").write_text("theirs\n")
        (root / "new.txt").write_text("theirs\n")
        return seen

    monkeypatch.setattr(running, "look_over", look_and_edit)
    async with opened(root, policy=FREE) as (gate, _):
        for name in ("a.txt", "new.txt"):
            (root / "a.txt").write_text("one\n")
            (root / "new.txt").unlink(missing_ok=True)
            proposal = (await changed(gate, f"open('{name}', 'a').write('mine')"))["proposal"]
            assert (proposal["state"], proposal["execution"]) == ("conflict", None)
            assert f"{name!r} was changed by somebody else" in proposal["error"]["message"]
            assert (root / name).read_text() == "theirs\n"


async def test_an_edit_between_the_question_and_its_answer_is_a_conflict(root: Path) -> None:
    async with opened(root, human=False, policy=FREE) as (gate, _):
        proposal = (await changed(gate, "open('a.txt', 'w').write('mine')", wait=False))["proposal"]
        await gate.answer(proposal["question"], "approve")
        (root / "a.txt").write_text("theirs\n")
        late = await gate.call("fs.apply", {"execution": proposal["execution"]}, wait=False)
        assert code(late) == "conflict"
        assert (root / "a.txt").read_text() == "theirs\n"


async def test_removed_renamed_new_binary_and_executable_files_come_over(root: Path, mode: str) -> None:
    before = tree(root)
    program = """\
os.remove('b.txt')
os.rename('a.txt', 'c.txt')
os.makedirs('new/er')
open('new/er/run.sh', 'w').write('#!/bin/sh\\n')
os.chmod('new/er/run.sh', 0o755)
open('src/deep/data.bin', 'ab').write(bytes([0, 255]))
os.chmod('src/app.py', 0o755)
os.mkdir('empty')
os.utime('src/app.py')
"""
    async with opened(root, Approve("fs.apply"), policy=FREE) as (gate, _):
        proposal = (await changed(gate, program))["proposal"]
        assert proposal["state"] == "applied", proposal
        assert "binary" in proposal["diff"]
        bits = 0o644 if mode == "landlock" else 0o755  # there no program may change bits
        assert ("new mode 755" in proposal["diff"]) == (bits == 0o755)
        after = tree(root)
        assert {"b.txt", "a.txt"}.isdisjoint(after)
        assert after["c.txt"] == "one\ntwo\n"
        assert after["src/deep/data.bin"] == before["src/deep/data.bin"] + "\x00\xff"
        assert (root / "empty").is_dir()
        assert stat.S_IMODE((root / "new/er/run.sh").stat().st_mode) == bits
        assert stat.S_IMODE((root / "src/app.py").stat().st_mode) == bits
        assert (await gate.undo(proposal["event_id"])).ok
        assert tree(root) == before
        assert not (root / "new").exists()
        assert not (root / "empty").exists()
        assert stat.S_IMODE((root / "src/app.py").stat().st_mode) == 0o644


async def test_a_directory_made_anew_holds_only_what_the_program_put_there(root: Path, mode: str) -> None:
    (root / "src/server.key").unlink()
    async with opened(root, Approve("fs.apply"), policy=FREE) as (gate, _):
        program = "import shutil\nshutil.rmtree('src')\nos.mkdir('src')\nopen('src/only.txt', 'w').write('x')\nos.remove('b.txt')\nos.mkdir('b.txt')\nopen('b.txt/in', 'w').write('y')"
        proposal = (await changed(gate, program))["proposal"]
        assert proposal["state"] == "applied", proposal
        after = tree(root)
        assert [name for name in after if name.startswith(("src", "b.txt"))] == ["b.txt/in", "src/only.txt"]
        assert (await gate.undo(proposal["event_id"])).ok
        assert (root / "b.txt").read_text() == "bee\n"
        assert (root / "src/deep/data.bin").exists()


async def test_what_a_program_only_looked_at_or_wrote_back_is_no_change(root: Path, mode: str) -> None:
    async with opened(root, policy=FREE) as (gate, _):
        program = "text = open('a.txt').read()\nopen('a.txt', 'w').write(text)\nopen('b.txt', 'r+').close()\nos.utime('b.txt')\nopen('t', 'w').close()\nos.remove('t')"
        assert (await changed(gate, program))["proposal"] is None
        read = good(
            await gate.call(
                "exec.python",
                {
                    "code": "import os\nprint(open(os.environ['PROJECT'] + '/a.txt').read())",
                    "project": "read",
                },
            )
        )
        assert (read["stdout"], read["proposal"]) == ("one\ntwo\n\n", None)


async def test_a_view_to_read_cannot_be_written(root: Path, mode: str) -> None:
    async with opened(root, policy=FREE) as (gate, _):
        program = "import os\nopen(os.environ['PROJECT'] + '/a.txt', 'w')"
        found = good(await gate.call("exec.python", {"code": program, "project": "read"}))
        assert found["exit_code"] == 1
        assert (root / "a.txt").read_text() == "one\ntwo\n"


async def test_links_and_special_files_are_left_out_and_named(root: Path, mode: str) -> None:
    async with opened(root, Approve("fs.apply"), policy=FREE) as (gate, _):
        program = "os.symlink('/etc/passwd', 'link')\nos.symlink('a.txt', 'src/near')\nopen('c.txt', 'w').write('x')"
        found = await changed(gate, program)
        assert found["proposal"]["state"] == "applied"
        assert [file["path"] for file in found["proposal"]["files"]] == ["c.txt"]
        assert [warning.partition(" ")[0] for warning in found["warnings"]] == ["link", "src/near"]
        assert not (root / "link").is_symlink()


async def test_a_program_that_was_stopped_proposes_nothing(root: Path) -> None:
    before = tree(root)
    async with opened(root, policy=FREE) as (gate, _):
        program = "open('/project/a.txt', 'w').write('half')\nwhile True: pass"
        late = await gate.call("exec.python", {"code": program, "project": "overlay", "timeout": 0.5})
        assert (code(late), late.data["proposal"]) == ("timeout", None)
        assert tree(root) == before


async def test_a_secret_that_a_program_would_write_is_found_as_in_any_write(root: Path) -> None:
    async with opened(root, Refuse("fs.apply"), policy=FREE) as (gate, script):
        key = "AK" + "IA" + "Q7RZ3LM5XK2WB6TJ"
        await changed(gate, f"open('a.txt', 'w').write('aws = \"{key}\"')")
        (question,) = script.seen
        assert question.findings
        assert key in question.preview, "it may be anything, so it is shown"


async def test_a_kept_proposal_that_was_tampered_with_is_not_applied(root: Path) -> None:
    before = tree(root)
    async with opened(root, human=False, policy=FREE) as (gate, _):
        proposal = (await changed(gate, "open('a.txt', 'w').write('mine')", wait=False))["proposal"]
        (kept,) = (root / ".toolgate/proposals/builder").glob("*.json")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        body = json.loads(kept.read_text())
        body["manifest"][0]["path"] = "project:b.txt"
        kept.write_text(json.dumps(body))
        assert code(await gate.call("fs.apply", {"execution": proposal["execution"]}, wait=False)) == "failed"
        kept.unlink()
        assert (
            code(await gate.call("fs.apply", {"execution": proposal["execution"]}, wait=False)) == "not_found"
        )
        assert code(await gate.call("fs.apply", {"execution": "../../x"}, wait=False)) == "invalid_args"
        assert tree(root) == before


async def test_only_so_many_proposals_are_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgate.features.programs import applying

    monkeypatch.setattr(applying, "MOST_PROPOSALS", 3)
    async with opened(root, human=False, policy=FREE | {"consent": {"max_open": 10}}) as (gate, _):
        for number in range(5):
            await changed(gate, f"open('a.txt', 'w').write('{number}')", wait=False)
        assert len(os.listdir(root / ".toolgate/proposals/builder")) == 3


async def test_a_program_cannot_propose_a_held_file_without_a_question(root: Path) -> None:
    """Allowed by a rule, `fs.apply` asks all the same where the proposal has the program of a server in it."""
    rules = [{"persona": "*", "tools": ["exec.python", "fs.apply"], "decision": "allow"}]
    policy = POLICY | {
        "policy": {"rules": rules},
        "servers": {"up": {"command": "python3", "args": ["src/app.py"]}},
    }
    async with opened(root, Refuse("fs.apply", "no"), policy=policy) as (gate, script):
        free = await changed(gate, "open('a.txt', 'w').write('x')")
        assert free["proposal"]["state"] == "applied"
        found = await changed(gate, "open('src/app.py', 'w').write('x')")
        assert found["proposal"]["state"] != "applied"
        assert script.seen[0].rule == "hard:held"
        assert (root / "src" / "app.py").read_text() == "print('app')\n"


async def test_what_a_program_leaves_is_not_saved_where_a_server_loads_code_from(root: Path) -> None:
    policy = FREE | {"servers": {"up": {"command": "python3", "env": {"PYTHONPATH": ".toolgate/scratch"}}}}
    async with opened(root, policy=policy) as (gate, _):
        found = good(await gate.call("exec.python", {"code": "open('json.py', 'w').write('x')"}))
        assert found["files"] == []
        assert "outside the sandbox, as the server up" in str(found["warnings"])
