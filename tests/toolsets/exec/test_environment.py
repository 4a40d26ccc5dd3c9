"""A project's own environment: found by itself, used by programs that see the project, and never run outside the sandbox."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolgate.features.programs import environments
from toolgate.features.programs.commands import environment_findings
from toolgate.features.programs.config import SandboxSpec
from toolgate.features.programs.proposing import Ignored, compiled
from toolgate.policy.hard import MountRules
from toolgate.policy.model import MountSpec
from toolgate.testing import Approve

from .running import POLICY, SANDBOX, VIEWING, good, opened, tree

FREE = POLICY | VIEWING
RULES = MountRules.of("project", MountSpec(path="."))
CHECK = """\
import os, sys
import greeting
from parcel import size
assert greeting.hello() == "hello"
print(sys.prefix, size(), os.getcwd())
"""
NAMESPACES = pytest.mark.parametrize("mode", ["root", "userns"], indirect=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with sources below `src`, and an environment with a package and a program of its own."""
    root = tmp_path / "project"
    (root / "src" / "greeting").mkdir(parents=True)
    (root / "src" / "greeting" / "__init__.py").write_text("def hello(): return 'hello'\n")
    (root / "check.py").write_text(CHECK)
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    site = next((root / ".venv" / "lib").glob("python3*")) / "site-packages"
    (site / "parcel.py").write_text("def size(): return 7\n")
    (root / ".venv" / "pip.conf").write_text(
        "[global]\nindex-url = https://user:do-not-read-me@example.org\n"
    )
    program = root / ".venv" / "bin" / "parcel"
    program.write_text(
        f"#!{root}/.venv/bin/python\nimport parcel, sys\nprint('parcel', parcel.size(), sys.argv[1:])\n"
    )
    program.chmod(0o755)
    return root


async def shell(gate: Any, **args: Any) -> dict[str, Any]:
    found = good(await gate.call("exec.shell", {"project": "read", **args}, wait=False))
    assert found["exit_code"] == 0, found["stderr"]
    return found


@NAMESPACES
async def test_the_projects_programs_and_packages_are_found_without_a_setting(
    project: Path, mode: str
) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        ran = await shell(gate, argv=["python", "check.py"])
        assert ran["stdout"] == "/project/.venv 7 /project\n"
        for call in (
            {"argv": ["parcel", "a b"]},
            {"argv": [".venv/bin/parcel", "a b"]},
            {"script": "parcel 'a b'"},
        ):
            assert (await shell(gate, **call))["stdout"] == "parcel 7 ['a b']\n"
        here = good(
            await gate.call(
                "exec.python", {"project": "read", "code": "import greeting, parcel\nprint(parcel.size())"}
            )
        )
        assert here["stdout"] == "7\n", here["stderr"]


@NAMESPACES
async def test_an_environment_is_read_only_and_its_settings_stay_hidden(project: Path, mode: str) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        ran = await shell(
            gate,
            project="overlay",
            script="cat .venv/pip.conf; echo x > .venv/bin/parcel; rm -rf .venv; ls .venv; true",
        )
        assert "do-not-read-me" not in ran["stdout"]
        assert "parcel" in (await shell(gate, argv=["parcel"]))["stdout"]
        assert ran["proposal"] is None
    assert (project / ".venv" / "bin" / "parcel").read_text().startswith("#!")


@NAMESPACES
async def test_a_proposal_leaves_out_caches_and_what_git_ignores_and_says_so(
    project: Path, mode: str
) -> None:
    async with opened(project, Approve("fs.apply"), policy=FREE) as (gate, _):
        script = (
            "mkdir -p build .pytest_cache/v src/__pycache__; echo 1 > build/o; echo 2 > .pytest_cache/v/x; "
            "echo 3 > src/__pycache__/a.pyc; echo 4 > run.log; echo 5 > keep.log; echo 6 > made.txt"
        )
        found = good(await gate.call("exec.shell", {"project": "overlay", "script": script}))
        assert found["proposal"]["state"] == "applied", found["proposal"]
        assert sorted(each["path"] for each in found["proposal"]["files"]) == ["keep.log", "made.txt"]
        told = "\n".join(found["warnings"])
        assert all(name in told for name in ("build", "run.log", ".pytest_cache"))
    assert {"keep.log", "made.txt"} <= tree(project).keys()
    assert not {"run.log", "build/o", ".pytest_cache/v/x"} & tree(project).keys()


async def test_what_may_not_be_written_still_refuses_all_of_a_proposal(project: Path) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        script = "echo x > .env; echo 6 > made.txt"
        found = good(await gate.call("exec.shell", {"project": "overlay", "script": script}))
        assert found["proposal"]["state"] == "refused"
    assert "made.txt" not in tree(project)


@NAMESPACES
async def test_caches_can_be_written_where_the_project_cannot(project: Path, mode: str) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        script = 'mkdir -p "$XDG_CACHE_HOME" && echo x > "$XDG_CACHE_HOME/x" && echo "$PYTEST_ADDOPTS"; ! echo x > y'
        ran = await shell(gate, script=script)
        assert "cache_dir=" in ran["stdout"]
        assert ran["files"] == []


async def test_a_project_below_the_names_of_the_sandbox_finds_its_environment_too(project: Path) -> None:
    """`/tmp` and `/work` are other directories inside: the project's own path leads to its view all the same."""
    async with opened(project, policy=FREE) as (gate, _):
        ran = await shell(gate, script=f"head -1 .venv/bin/parcel; {project}/.venv/bin/parcel")
        assert "parcel 7 []" in ran["stdout"]
        assert ran["files"] == []
        assert ran["warnings"] == []


async def test_a_command_that_is_not_found_without_the_project_says_how_it_would_be(project: Path) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        for seen, told in (
            ("none", ["the project and its programs are not there: `project: read` shows them"]),
            ("read", []),
        ):
            ran = await gate.call("exec.shell", {"script": "parcels -q", "project": seen}, wait=False)
            assert (ran.data["exit_code"], ran.data["warnings"]) == (127, told)


async def test_false_means_that_no_environment_is_used(project: Path) -> None:
    async with opened(project, policy=FREE | {"sandbox": {**SANDBOX, "python": False}}) as (gate, _):
        ran = await shell(gate, script="ls -a; command -v parcel || echo none")
        assert ".venv" not in ran["stdout"]
        assert ran["stdout"].endswith("none\n")


def found_in(root: Path, **settings: Any) -> environments.FoundEnvironment:
    return environments.find(root, RULES, **settings)


def config(root: Path, text: str, name: str = "env") -> None:
    (root / name / "bin").mkdir(parents=True, exist_ok=True)
    (root / name / "pyvenv.cfg").write_text(text)


@pytest.mark.parametrize("home", ["/root", "/etc", "/", "/usr/../root", "../..", ""])
def test_a_written_environment_opens_no_directory_that_is_no_installation(tmp_path: Path, home: str) -> None:
    config(tmp_path, f"home = {home}\nversion = 3.11.7\n")
    assert found_in(tmp_path).environment is None


def test_a_forged_installation_in_the_project_or_above_it_is_not_believed(tmp_path: Path) -> None:
    """It looks like one, but it holds files of people: what is shut there would be opened."""
    root = tmp_path / "top" / "project"
    root.mkdir(parents=True)
    for place in (tmp_path / "top", root / "inner"):
        (place / "bin").mkdir(parents=True)
        shutil.copy("/bin/true", place / "bin" / "python3.11")
        (place / "lib" / "python3.11").mkdir(parents=True)
        (place / "lib" / "python3.11" / "os.py").write_text("")
    for place in (tmp_path / "top", root / "inner"):
        config(root, f"home = {place}/bin\nversion = 3.11.0\n")
        found = found_in(root)
        assert found.environment is None
        assert found.problems


@NAMESPACES
async def test_a_directory_that_is_made_an_environment_opens_nothing_of_what_it_holds(
    tmp_path: Path, mode: str
) -> None:
    """An agent may write `env/pyvenv.cfg` beside what a project keeps in `env`."""
    root = tmp_path / "project"
    for name in (
        "env/prod/.env",
        "env/prod.key",
        "env/share/x.pem",
        "env/lib/deep/id_rsa",
        "env/bin/server.key",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("do-not-read-me")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    config(root, f"home = {Path(os.path.realpath(sys.executable)).parent}\nversion = {version}\n")
    assert found_in(root).environment is not None
    async with opened(root, policy=FREE) as (gate, _):
        ran = await shell(gate, script="grep -r do-not-read /project; find /project/env; true")
        assert "do-not-read" not in ran["stdout"]
        assert "pyvenv.cfg" in ran["stdout"]


DEEP = (
    "node_modules/pkg/.env", "node_modules/.yarnrc", "node_modules/@corp/x/id_rsa", "node_modules/pkg/lib/secrets/live.json",
    ".venv/lib/{python}/.env", ".venv/lib/{python}/site-packages/.npmrc", ".venv/lib/{python}/site-packages/a/b/c/prod.key",
    ".venv/bin/tools/.pypirc",
)  # fmt: skip
PACKAGED = (
    "node_modules/pkg/lib/secrets/index.js", ".venv/lib/{python}/site-packages/parcel/private_key.py",
    ".venv/lib/{python}/site-packages/parcel/credentials/__init__.py", ".venv/lib/{python}/site-packages/certifi/cacert.pem",
)  # fmt: skip


def test_blocked_names_of_an_environment_are_hidden_at_any_depth_and_its_code_is_not(project: Path) -> None:
    for again in range(2):
        for each in (*DEEP, *PACKAGED):
            path = project / in_version(each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("do-not-read-me")
        for above, directories, _ in os.walk(
            project
        ):  # as an old installation, whose directories are remembered
            for each in directories:
                os.utime(Path(above, each), (1, 1))
        found = found_in(project).environment
        assert found is not None
        assert {in_version(each) for each in DEEP} <= set(found.shut), again
        assert not {in_version(each) for each in PACKAGED} & set(found.shut)
    late = project / "node_modules" / "pkg" / "late.pem"
    late.write_text("do-not-read-me")
    assert "node_modules/pkg/late.pem" in found_in(project).environment.shut  # type: ignore[union-attr]


def in_version(path: str) -> str:
    return path.format(python=f"python{sys.version_info[0]}.{sys.version_info[1]}")


def test_what_was_judged_of_a_directory_is_forgotten_when_a_name_is_added(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_SETTLED_NS", -(10**15))
    for each in ("a.key", "b.key"):
        (project / ".venv" / "bin" / each).write_text("do-not-read-me")
        os.utime(project / ".venv" / "bin", ns=(1, len(each) + ord(each[0])))
        found = found_in(project).environment
        assert found is not None
        assert f".venv/bin/{each}" in found.shut


def test_an_environment_with_too_many_names_is_not_shown_and_doctor_says_why(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "MAX_NAMES", 3)
    (said,) = environment_findings(SandboxSpec(), project, MountSpec(path="."))
    assert said.state == "warn"
    assert ".venv holds more than 3 names" in said.found


def test_a_name_that_the_owner_unblocks_is_shown_in_an_environment_too(project: Path) -> None:
    (project / ".venv" / "bin" / "a.key").write_text("")
    rules = MountRules.of("project", MountSpec(path=".", unblock=(".venv/bin/a.key",)))
    found = environments.find(project, rules).environment
    assert found is not None
    assert ".venv/bin/a.key" not in found.shut


async def test_what_the_owner_hides_in_an_environment_is_hidden_there_too(project: Path) -> None:
    inner = next((project / ".venv" / "lib").glob("python3*")) / "site-packages" / "private"
    inner.mkdir()
    (inner / "x.py").write_text("do-not-read-me")
    mounts = {"mounts": {"project": {"path": ".", "hidden": ["**/private/**", "**/private"]}}}
    async with opened(project, policy=FREE | mounts) as (gate, _):
        ran = await shell(gate, script="cat .venv/lib/*/site-packages/private/x.py; parcel")
        assert ran["stdout"] == "parcel 7 []\n"


def test_links_are_no_environments(tmp_path: Path, project: Path) -> None:
    (tmp_path / ".venv").symlink_to(project / ".venv")
    assert found_in(tmp_path).environment is None
    (tmp_path / "node_modules").symlink_to("/etc")
    assert found_in(tmp_path).environment is None


def test_an_environment_that_the_owner_hides_is_not_looked_for(project: Path) -> None:
    rules = MountRules.of("project", MountSpec(path=".", hidden=(".venv/**", ".venv")))
    assert environments.find(project, rules).environment is None


def test_doctor_says_which_environment_programs_have(project: Path, tmp_path: Path) -> None:
    spec, mount = SandboxSpec(), MountSpec(path=".")
    (said,) = environment_findings(spec, project, mount)
    assert said.state == "ok"
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]} of .venv" in said.found
    empty = tmp_path / "empty"
    empty.mkdir()
    assert [each.state for each in environment_findings(spec, empty, mount)] == ["ok"]
    (wrong,) = environment_findings(SandboxSpec(python="elsewhere"), empty, mount)
    assert wrong.state == "warn"
    assert "elsewhere" in wrong.found


@pytest.mark.parametrize("name", ["/etc", "../x", ".", "a/../b", "scratch:x"])
def test_only_a_directory_below_the_project_can_be_named(name: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SandboxSpec(python=name)


PATTERNS = [
    ("build/", "build", True, True), ("build/", "build", False, False), ("*.log", "a/b/x.log", False, True),
    ("/only", "only", False, True), ("/only", "a/only", False, False), ("a/**/z", "a/b/c/z", False, True),
    ("a/**/z", "a/z", False, True), ("**/x", "p/x", False, True), ("docs/*.txt", "docs/a/b.txt", False, False),
    ("docs/*.txt", "docs/a.txt", False, True), ("a?c", "abc", False, True), ("a?c", "a/c", False, False),
    ("[ab].x", "a.x", False, True), ("[!ab].x", "a.x", False, False), (r"\#x", "#x", False, True),
    ("a/**", "a/b", False, True), ("x ", "x", False, True),
]  # fmt: skip


@pytest.mark.parametrize(("line", "path", "directory", "hit"), PATTERNS)
def test_patterns_mean_what_git_means(
    tmp_path: Path, line: str, path: str, directory: bool, hit: bool
) -> None:
    pattern = compiled(line)
    assert pattern is not None
    assert (bool(pattern.found.fullmatch(path)) and (directory or not pattern.only_directories)) is hit
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text(line + "\n")
    asked = path + ("/" if directory else "")
    said = subprocess.run(["git", "check-ignore", "-q", asked], cwd=tmp_path, check=False)
    assert (said.returncode == 0) is hit, "git says otherwise"


async def test_hostile_patterns_cost_little() -> None:
    async def read(path: Any) -> bytes | None:
        return b"\n".join(b"*a" * 400 + b"b" for _ in range(50))

    why, _ = await Ignored(read).why("a" * 4000, False)
    assert why == ""


def test_nothing_of_an_environment_is_run_to_find_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **named: Any) -> Any:
        raise AssertionError(f"started {args}")

    for module, name in ((subprocess, "Popen"), (os, "posix_spawn"), (os, "execve"), (os, "fork")):
        monkeypatch.setattr(module, name, never)
    assert found_in(project).environment is not None


@NAMESPACES
async def test_the_tests_of_a_node_project_run_with_its_modules(project: Path, mode: str) -> None:
    if shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip("Node is not installed here")
    for name, text in {
        "package.json": '{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test test/"}}',
        "node_modules/left/package.json": '{"name": "left", "version": "1.0.0"}',
        "node_modules/left/index.js": "module.exports = (text) => text.padStart(5)\n",
        "test/pad.test.js": "const test = require('node:test'), assert = require('node:assert')\n"
        "test('pads', () => assert.equal(require('left')('ab'), '   ab'))\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    async with opened(project, policy=FREE) as (gate, _):
        for call in ({"argv": ["npm", "test"]}, {"script": "node --test test/ 2>&1"}):
            ran = await shell(gate, **call)
            assert "# pass 1" in ran["stdout"], ran


CALLS_ITSELF = """\
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 0), family=family)
    client = socket.create_connection(server.getsockname()[:2])
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    client.setblocking(False)
    held = 0
    try:
        while True:
            held += client.send(bytes(1 << 16))
    except BlockingIOError:
        print("answered at", host, held < 1 << 19)
for args in ((socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW)):
    try:
        socket.socket(*args)
    except OSError as error:
        print(error.strerror)
try:
    socket.create_connection(("127.0.0.1", PORT), 2)
except OSError as error:
    print(error.strerror)
"""


@NAMESPACES
async def test_tests_of_a_project_call_servers_that_they_start_and_nobody_elses(
    project: Path, mode: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        (project / "serve.py").write_text(CALLS_ITSELF.replace("PORT", str(outside.getsockname()[1])))
        async with opened(project, policy=FREE) as (gate, _):
            ran = await shell(gate, argv=["python", "serve.py"])
    refused = ["Permission denied"] * 3 + ["Connection refused"]
    assert ran["stdout"].splitlines() == ["answered at 127.0.0.1 True", "answered at ::1 True", *refused]


async def test_what_a_shell_starts_has_no_more_memory_than_it_may(project: Path) -> None:
    async with opened(project, policy=FREE) as (gate, _):
        script = f"{sys.executable} -c 'x = bytearray(900 << 20); print(len(x))'"
        ran = await gate.call("exec.shell", {"script": script, "project": "read"}, wait=False)
        assert str(900 << 20) not in ran.data["stdout"]


@NAMESPACES
async def test_a_python_program_runs_the_projects_tests_without_writing_there(
    project: Path, mode: str
) -> None:
    code = "import os\nprint(os.environ['PYTEST_ADDOPTS'], os.environ['VIRTUAL_ENV'])"
    async with opened(project, policy=FREE) as (gate, _):
        ran = good(await gate.call("exec.python", {"project": "read", "code": code}))
        assert ran["stdout"].startswith("-o cache_dir="), ran
        assert ran["stdout"].endswith("/project/.venv\n")
