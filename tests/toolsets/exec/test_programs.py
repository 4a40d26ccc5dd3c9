"""Programs through the gate: what they are given, what comes back, and how they end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolgate import Context
from toolgate.features.programs.arguments import ProgramRequest, preview
from toolgate.testing import Approve, Refuse

from .running import POLICY, VIEWING, code, good, opened


async def test_what_a_program_prints_gives_and_leaves_comes_back(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = "print('hi')\nimport sys\nprint('oh', file=sys.stderr)\noutput(1)\noutput({'a': [2]})\nopen('x.csv', 'w').write('1,2')"
        result = await gate.call("exec.python", {"code": program})
        found = good(result)
        assert (found["stdout"], found["stderr"], found["exit_code"], found["limit"]) == (
            "hi\n",
            "oh\n",
            0,
            None,
        )
        assert (found["outputs"], found["output"]) == ([1, {"a": [2]}], {"a": [2]})
        assert (found["proposal"], found["requests"], found["warnings"]) == (None, [], [])
        assert found["duration_ms"] > 0
        assert found["memory"] > 0
        (left,) = found["files"]
        assert (left["name"], left["size"]) == ("x.csv", 3)
        assert left["path"] == f"scratch:exec/{result.meta.call_id}/x.csv"
        read = good(await gate.call("fs.read", {"path": left["path"]}))
        assert read["content"] == "1,2"
        assert good(await gate.call("fs.hash", {"path": left["path"]}))["raw_hash"] == left["hash"]


async def test_a_program_that_fails_has_run_and_its_exit_code_says_so(root: Path) -> None:
    async with opened(root) as (gate, _):
        found = good(await gate.call("exec.python", {"code": "raise ValueError('no')"}))
        assert found["exit_code"] == 1
        assert "ValueError: no" in found["stderr"]


async def test_of_much_output_the_start_and_the_end_are_given(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = "import sys\nprint('begun')\nfor n in range(60000): print('row', n)\nprint('3 failed')\nprint('oh', file=sys.stderr)"
        result = await gate.call("exec.python", {"code": program})
        found = good(result)
        lines = found["stdout"].split("\n")
        assert (lines[0], lines[-2:], found["stderr"]) == ("begun", ["3 failed", ""], "oh\n")
        (cut,) = (at for at, line in enumerate(lines) if line.startswith("…"))
        assert all(line.startswith("row ") for line in (*lines[1:cut], *lines[cut + 1 : -2]))
        assert cut < len(lines) / 2, "more of the end than of the start"
        whole = len("begun\n3 failed\n") + sum(len(f"row {n}\n") for n in range(60000))
        missing = whole - (len(found["stdout"]) - len(lines[cut]) - 1)
        assert lines[cut] == f"… [{missing:,} characters left out] …"
        assert result.meta.truncated


async def test_caches_that_a_program_leaves_are_neither_saved_nor_told(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = "import os\nfor at in ('.pytest_cache/v', 'a/__pycache__'):\n    os.makedirs(at)\n    open(at + '/x', 'w').write('1')\nopen('a/out.txt', 'w').write('1')"
        found = good(await gate.call("exec.python", {"code": program}))
        assert [each["name"] for each in found["files"]] == ["a/out.txt"]
        assert found["warnings"] == []


async def test_a_program_that_may_start_no_other_is_told_which_tool_does(root: Path) -> None:
    async with opened(root) as (gate, _):
        refused = await gate.call("exec.python", {"code": "import subprocess\nsubprocess.run(['true'])"})
        assert refused.error is not None
        assert "exec.shell" in refused.error.fix


async def test_a_script_may_be_called_a_command(root: Path) -> None:
    async with opened(root) as (gate, _):
        found = good(await gate.call("exec.shell", {"command": "echo $((6 * 7))"}))
        assert found["stdout"] == "42\n"


async def test_a_program_that_takes_too_long_is_stopped_and_what_it_said_is_kept(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = "print('begun')\nwhile True: pass"
        late = await gate.call("exec.python", {"code": program, "timeout_ms": 400})
        assert code(late) == "timeout"
        assert (late.data["stdout"], late.data["limit"], late.data["exit_code"]) == ("begun\n", "time", None)
        kinds = [row.kind for row in await gate.events()]
        assert "unknown" not in kinds  # it had no way out


@pytest.mark.parametrize(
    ("tool", "args", "name"),
    [
        (
            "exec.python",
            {"code": "import ctypes\nprint('begun', flush=True)\nctypes.string_at(0)"},
            "SIGSEGV",
        ),
        ("exec.shell", {"script": "echo begun; kill -KILL $$"}, "SIGKILL"),
        ("exec.shell", {"argv": ["sh", "-c", "echo begun; kill -SYS $$"]}, "SIGSYS"),
    ],
)
async def test_a_program_that_a_signal_killed_has_failed_and_says_by_which(
    root: Path, tool: str, args: dict[str, Any], name: str
) -> None:
    async with opened(root) as (gate, _):
        killed = await gate.call(tool, args)
        assert (killed.ok, code(killed)) == (False, "failed")
        assert killed.error is not None
        assert f"was killed by {name}: " in killed.error.message
        assert (killed.data["signal"], killed.data["limit"], killed.data["stdout"]) == (name, None, "begun\n")
        assert "unknown" not in [row.kind for row in await gate.events()]  # it had no way out


async def test_an_exit_code_that_a_script_chooses_is_no_signal(root: Path) -> None:
    async with opened(root) as (gate, _):
        for number in (1, 127, 128, 141, 143, 255):
            found = good(await gate.call("exec.shell", {"script": f"exit {number}"}))
            assert (found["exit_code"], found["signal"]) == (number, None)


async def test_too_much_output_is_a_limit_of_its_own(root: Path) -> None:
    async with opened(root) as (gate, _):
        loud = await gate.call("exec.python", {"code": "while True: print('x' * 1000)"})
        assert (code(loud), loud.data["limit"]) == ("too_large", "output")


async def test_the_owners_time_is_never_exceeded_whatever_a_call_asks_for(root: Path) -> None:
    async with opened(root, policy=POLICY | {"timeouts": {"tool": {"exec.python": 6}}}) as (gate, _):
        late = await gate.call("exec.python", {"code": "while True: pass", "timeout": 60})
        assert (code(late), late.data["limit"]) == ("timeout", "time")


async def test_input_and_files_are_given(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = (
            "import sys\nprint(sys.stdin.read(), open('d/a.txt').read())\nopen('d/a.txt', 'a').write('!')"
        )
        found = good(
            await gate.call("exec.python", {"code": program, "stdin": "in", "files": {"d/a.txt": "given"}})
        )
        assert found["stdout"] == "in given\n"
        for name in ("../x", "/x", "a/../../x", "", "a/"):
            refused = await gate.call("exec.python", {"code": "1", "files": {name: ""}})
            assert code(refused) in ("invalid_args", "outside_mount"), name


async def test_a_shell_runs_a_list_of_words_or_a_script_but_not_both(root: Path) -> None:
    async with opened(root) as (gate, _):
        words = good(await gate.call("exec.shell", {"argv": ["printf", "%s|", "a b", "$HOME", ";ls"]}))
        assert words["stdout"] == "a b|$HOME|;ls|"
        script = good(
            await gate.call("exec.shell", {"script": "for i in 1 2; do echo $i; done | tail -1; exit 3"})
        )
        assert (script["stdout"], script["exit_code"]) == ("2\n", 3)
        for args in ({}, {"argv": ["true"], "script": "true"}):
            assert code(await gate.call("exec.shell", args)) == "invalid_args"
        assert gate.services.registry.resolve("exec.shell").risk == "high"


async def test_every_spelling_of_the_documents_leads_to_these_tools(root: Path) -> None:
    async with opened(root) as (gate, _):
        found = {
            name: gate.services.registry.resolve(name).name
            for name in (
                "code/execute/python",
                "code/execute/javascript",
                "code/execute/shell",
                "code_execute",
                "code",
            )
        }
        assert list(found.values()) == [
            "exec.python",
            "exec.javascript",
            "exec.shell",
            "code.execute",
            "code.action",
        ]
        spelled = good(await gate.call("code/execute/python", {"code": "print(1)", "timeoutMs": 9000}))
        assert spelled["stdout"] == "1\n"


@pytest.mark.parametrize(
    ("asked", "verdicts"),
    [
        ({}, ["deny", "allow", "allow"]),
        ({"files": {"a": "b"}}, ["deny", "allow", "allow"]),
        ({"network": ["example.com"]}, ["deny", "ask", "ask"]),
        ({"network": {"hosts": ["example.com"], "methods": ["GET"]}}, ["deny", "ask", "ask"]),
        ({"secrets": ["TOKEN"]}, ["deny", "ask", "ask"]),
        ({"project": "read"}, ["deny", "ask", "ask"]),
        ({"project": "overlay"}, ["deny", "ask", "ask"]),
    ],
)
async def test_what_a_program_may_reach_decides_whether_a_human_is_asked(
    root: Path, asked: dict[str, Any], verdicts: list[str]
) -> None:
    async with opened(root) as (gate, _):
        for persona, verdict in zip(("reader", "analyst", "builder"), verdicts, strict=True):
            told = await gate.explain("exec.python", {"code": "1", **asked}, persona)
            assert told.decision.verdict == verdict, persona


async def test_a_human_sees_the_program_and_what_it_may_reach(root: Path) -> None:
    async with opened(root, Refuse("exec.python"), Refuse("exec.shell")) as (gate, script):
        program = "import os\nprint('\x1b[2J')\n"
        asked = {"code": program, "project": "read", "files": {"a.csv": "1,2"}, "stdin": "xyz", "timeout": 5}
        assert code(await gate.call("exec.python", asked)) == "denied"
        reaching = {
            "argv": ["rm", "-rf", "a b"],
            "network": {"hosts": ["example.com"], "methods": ["get"]},
        }
        assert code(await gate.call("exec.shell", reaching)) == "denied"
        first, second = (question.preview.split("\n") for question in script.seen)
        assert first[:3] == [
            "run this python program of 2 lines", "1  import os", "2  print('⟨U+001B⟩[2J')"
        ]  # fmt: skip
        assert "it may reach the project at /project, read-only, without hidden names" in first
        assert "its input has 3 characters" in first
        assert "it is given the file a.csv of 3 characters" in first
        assert "for at most 5 s, in the sandbox" in first
        assert second[0] == "run rm -rf 'a b'"
        assert "it may reach the host example.com by GET" in second
        with_secret = preview(ProgramRequest.of("shell", {"argv": ["true"], "secrets": ["TOKEN"]}), [])
        assert "it may reach the secret TOKEN" in with_secret


async def test_cancelling_the_call_ends_the_program(root: Path) -> None:
    async with opened(root, policy=POLICY | VIEWING) as (gate, _):
        calling = asyncio.create_task(
            gate.call("exec.python", {"code": "import time\nwhile True: time.sleep(0.1)"})
        )
        while not (await gate.ledger_state())["running"]:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(calling, 60)
        (row,) = [row for row in await gate.events() if row.kind in ("failed", "unknown")]
        assert row.kind == "failed"
        assert "no way out" in row.body


async def test_only_a_program_with_a_way_out_leaves_its_outcome_in_doubt(root: Path) -> None:
    async with opened(root) as (gate, _):
        reconcile: Any = gate.services.registry.resolve("exec.python").reconcile
        context = Context("c_1", "builder", "exec.python")
        assert (await reconcile(context, code="1", project="overlay"))[0] == "not"
        assert (await reconcile(context, code="1", network=["example.com"]))[0] == "unknown"
        assert (await reconcile(context, code="1", secrets=["TOKEN"]))[0] == "unknown"


async def test_files_that_cannot_be_saved_are_named_with_the_reason(root: Path) -> None:
    async with opened(root) as (gate, _):
        program = "for name in ('.env', 'ok.txt', 'id_rsa'): open(name, 'w').write('x')"
        found = good(await gate.call("exec.python", {"code": program}))
        assert [file["name"] for file in found["files"]] == ["ok.txt"]
        assert sorted(warning.partition(" ")[0] for warning in found["warnings"]) == [".env", "id_rsa"]
        bare = good(await gate.call("exec.python", {"code": program}, persona="bare"))
        assert bare["files"] == []
        assert bare["warnings"] == ["3 files were not saved: bare has no scratch mount"]


async def test_nothing_starts_before_the_first_program_and_nothing_stays(root: Path) -> None:
    import psutil

    def children() -> set[int]:
        return {child.pid for child in psutil.Process().children(recursive=True)}

    before = children()  # some of an earlier test may be about to end
    async with opened(root) as (gate, _):
        await gate.call("fs.read", {"path": "a.txt"})
        assert children() <= before
        good(await gate.call("exec.python", {"code": "1"}))
        assert not children() <= before
    assert children() <= before


async def test_the_facade_of_the_documents_runs_code_and_says_how_a_run_stands(root: Path) -> None:
    async with opened(root, Approve("code.execute")) as (gate, _):
        ran = good(await gate.call("code.execute", {"code": "print(2)\noutput(3)", "language": "python"}))
        assert (ran["success"], ran["result"], ran["error"]) == (True, 3, None)
        both = good(await gate.call("code", {"action": "execute", "code": "1/0", "language": "python"}))
        assert (both["success"], both["result"]) == (False, "")
        assert "ZeroDivisionError" in both["error"]
        stood = good(await gate.call("code", {"action": "status", "job_id": ran["job_id"]}))
        assert (stood["success"], stood["result"]) == (True, {"state": "done"})
        assert stood == good(await gate.call("code.status", {"job_id": ran["job_id"]}))
        assert code(await gate.call("code.status", {"job_id": ran["job_id"]}, persona="other")) == "not_found"
        unwritten = await gate.call("code", {"action": "generate", "task": "a clock", "context": "none"})
        assert code(unwritten) == "unavailable"
        (root / "job.py").write_text("print('stored')")
        stored = good(await gate.call("code.execute", {"script": "job.py", "language": "python"}))
        assert stored["result"] == "stored\n"
        assert (
            code(await gate.call("code.execute", {"script": ".env", "language": "python"})) == "blocked_path"
        )
        assert code(await gate.call("code.execute", {})) == "invalid_args"


async def test_javascript_runs_as_python_does(root: Path) -> None:
    async with opened(root, human=False, policy=POLICY | VIEWING) as (gate, _):
        program = (
            "console.log(await Promise.resolve(1)); output({a: 2}); Deno.writeTextFileSync('x.txt', 'left');"
        )
        found = good(await gate.call("exec.javascript", {"code": program}))
        assert (found["stdout"], found["output"], found["exit_code"]) == ("1\n", {"a": 2}, 0), found["stderr"]
        assert [file["name"] for file in found["files"]] == ["x.txt"]
        facade = good(
            await gate.call("code", {"action": "execute", "code": "module.exports = 1; console.log(4)"})
        )
        assert (facade["success"], facade["result"]) == (True, 1)
        edit = (
            "Deno.writeTextFileSync('/project/a.txt', Deno.readTextFileSync('/project/a.txt').toUpperCase());"
        )
        changed = good(await gate.call("exec.javascript", {"code": edit, "project": "overlay"}, wait=False))
        assert changed["exit_code"] == 0, changed["stderr"]
        assert "+ONE" in changed["proposal"]["diff"]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("exec.python", {"code": "import sys\nsys.path.insert(0, '/project')\nimport mine"}),
        ("exec.shell", {"script": "cd /project && python3 -c 'import mine'"}),
    ],
)
async def test_importing_from_the_project_proposes_no_bytecode(
    root: Path, tool: str, args: dict[str, Any]
) -> None:
    (root / "mine.py").write_text("open('/project/made.txt', 'w').write('made')\n")
    async with opened(root, human=False, policy=POLICY | VIEWING) as (gate, _):
        found = good(await gate.call(tool, {**args, "project": "overlay"}, wait=False))
        assert found["exit_code"] == 0, found["stderr"]
        assert [file["path"] for file in found["proposal"]["files"]] == ["made.txt"]


async def test_a_shell_runs_what_is_in_the_project_and_changes_only_its_copy(root: Path) -> None:
    (root / "build.sh").write_text("#!/bin/sh\necho built > out.txt\ncp build.sh again.sh && ./again.sh\n")
    (root / "build.sh").chmod(0o755)
    async with opened(root, human=False, policy=POLICY | VIEWING) as (gate, _):
        args = {
            "script": "cd $PROJECT && sed -i 's/cp .*//' build.sh && ./build.sh && cat .env",
            "project": "overlay",
        }
        found = good(await gate.call("exec.shell", args, wait=False))
        assert found["exit_code"] == 1, found["stderr"]
        assert ".env" in found["stderr"]
        assert [file["path"] for file in found["proposal"]["files"]] == ["build.sh", "out.txt"]
        assert not (root / "out.txt").exists()


async def test_a_python_that_a_shell_starts_may_have_the_owners_packages(root: Path) -> None:
    (root / "test_it.py").write_text("def test_it():\n    assert 6 * 7 == 42\n")
    policy = POLICY | VIEWING | {"sandbox": {"packages": ["pytest"]}}
    async with opened(root, policy=policy) as (gate, _):
        script = "cd /project && python3 -m pytest -q -p no:cacheprovider test_it.py"
        args = {"script": script, "project": "read", "packages": ["pytest"]}
        found = good(await gate.call("exec.shell", args))
        assert (found["exit_code"], "1 passed" in found["stdout"]) == (0, True), found
        other = await gate.call("exec.shell", {"script": "true", "packages": ["numpy"]})
        assert code(other) == "not_allowed"
