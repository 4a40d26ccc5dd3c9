"""What toolgate starts outside the sandbox is held: writing it asks whatever the rules say, a change holds the server."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import Change, FileChange, Gate, MountPath, tool
from toolgate.features.servers import filepins
from toolgate.policy.held import Held
from toolgate.project.config import Config
from toolgate.project.plugins import own_code

from .world import HERE, code, status

SERVER = (HERE / "raw_server.py").read_text()
FREE = {"phase": "contribute", "allow": ["fs.*", "t.*", "up.*", "exec.*", "jobs.*"]}
READS_ALL = {"version": 1, "default_persona": "ada", "personas": {"ada": FREE}}
FILES = (
    "tools/server.py", "tools/helper.py", "tools/deep/mod.py", "tools/notes.txt", "pkg/__init__.py", "pkg/main.py",
    "web/package.json", "web/index.js", "web/lib/a.js", "bin/run", "src/app.py", "README.md", "lib/vendored.py",
    "data/x.db", "settings.json", "start.sh", "far/impl.py",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "project"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/usr/bin/env python3\n" if name == "bin/run" else "{}\n")
    (root / "bin" / "run").chmod(0o755)
    scripts = {
        "start": "node srv/index.js",
        "prestart": "sh tools/first.sh",
        "all": "npm run start",
        "x": "node src/x.js",
    }
    (root / "package.json").write_text(json.dumps({"scripts": scripts}))
    (root / "link.py").symlink_to("far/impl.py")
    (root / "current").symlink_to("far")
    (tmp_path / "outside.py").write_text("")
    return root


def held_by(root: Path, server: dict[str, Any], environ: dict[str, str] | None = None, **more: Any) -> Held:
    config = Config.from_dict({"version": 1, "servers": {"up": server}, **more})
    return Held.of(own_code(config, root, None, None, environ or {"PATH": "/usr/bin:/bin"}).held)


PY: dict[str, Any] = {"command": "python3", "args": ["tools/server.py"]}
MODULE: dict[str, Any] = {"command": "python3", "args": ["-m", "pkg.main"]}
HELD: list[tuple[dict[str, Any], str]] = [
    (PY, "tools/server.py"),
    (PY, "tools/json.py"),
    (PY, "tools/helper.py"),
    (PY, "tools/deep/new.py"),
    (PY, "tools/json/__init__.py"),
    (PY, "tools/__pycache__/helper.cpython-311.pyc"),
    (PY, "tools/_json.cpython-311-x86_64-linux-gnu.so"),
    (PY, "Tools/SERVER.py"),
    (PY, "tools/server.py."),
    (PY, "tools/ｓerver.py"),
    (PY, "tools"),
    ({"command": "python3", "args": ["-u", "./tools/../tools/server.py"]}, "tools/server.py"),
    ({"command": "python3", "args": ["server.py"], "cwd": "tools"}, "tools/server.py"),
    ({"command": "python3", "args": ["${env:WHERE}/server.py"]}, "tools/server.py"),
    (MODULE, "pkg/main.py"),
    (MODULE, "json.py"),
    (MODULE, "pkg/new/mod.py"),
    ({"command": "python3", "args": ["-mpkg.main"]}, "pkg/main.py"),
    ({"command": "python3", "args": ["-c", "import pkg.main"]}, "pkg/main.py"),
    ({"command": "uv", "args": ["run", "-m", "pkg.main"]}, "pkg/main.py"),
    ({"command": "uv", "args": ["run", "--script", "tools/server.py"]}, "tools/server.py"),
    ({"command": "uv", "args": ["run", "thing"]}, "pyproject.toml"),
    ({"command": "uv", "args": ["--directory", "tools", "run", "thing"]}, "tools/pyproject.toml"),
    ({"command": "node", "args": ["web"]}, "web/index.js"),
    ({"command": "node", "args": ["web"]}, "web/package.json"),
    ({"command": "node", "args": ["web/index.js"]}, "web/lib/a.js"),
    ({"command": "node", "args": ["web/index.js"]}, "web/node_modules/x/index.json"),
    ({"command": "node", "args": ["web/index.js"]}, "node_modules/x/index.js"),
    ({"command": "node", "args": ["--require=./web/hook.js", "/usr/lib/x.js"]}, "web/hook.js"),
    ({"command": "npx", "args": ["./web"]}, "web/new.js"),
    ({"command": "npx", "args": ["-y", "thing"]}, "node_modules/.bin/thing"),
    ({"command": "npx", "args": ["."]}, "anything.txt"),
    ({"command": "npm", "args": ["start"]}, "srv/index.js"),
    ({"command": "npm", "args": ["start"]}, "srv/beside.js"),
    ({"command": "sh", "args": ["-c", "npm run -s all"]}, "srv/index.js"),
    ({"command": "npm", "args": ["start"]}, "tools/first.sh"),
    ({"command": "node", "args": ["web/index.js"]}, "package.json"),
    ({"command": "npx", "args": ["-y", "thing"], "cwd": "web/lib"}, "web/.npmrc"),
    ({"command": "java", "args": ["-cp", "far/*", "Main"]}, "far/new.jar"),
    ({"command": "go", "args": ["run", "./cmd"]}, "internal/x.go"),
    ({"command": "npx", "args": ["tsx", "web/a.ts"]}, "tsconfig.json"),
    ({"command": "npx", "args": ["-y", "thing"]}, ".npmrc"),
    ({"command": "npx", "args": ["-y", "thing"]}, "package.json"),
    ({"command": "sh", "args": ["-c", "exec npx -y thing"]}, ".npmrc"),
    ({"command": "bunx", "args": ["thing"]}, "bunfig.toml"),
    ({"command": "pnpm", "args": ["dlx", "thing"]}, ".pnpmfile.cjs"),
    ({"command": "yarn", "args": ["start"]}, ".yarnrc"),
    ({"command": "docker", "args": ["compose", "run", "thing"]}, "compose.override.yaml"),
    ({"command": "direnv", "args": ["exec", "/usr", "thing"]}, ".envrc"),
    ({"command": "nix", "args": ["run"]}, "flake.nix"),
    ({"command": "mvn", "args": ["exec:java"]}, ".mvn/extensions.xml"),
    ({"command": "npm", "args": ["start"]}, "package.json"),
    ({"command": "make", "args": ["serve"]}, "Makefile"),
    ({"command": "./bin/run"}, "bin/run"),
    ({"command": "./bin/run"}, "bin/json.py"),
    ({"command": "bash", "args": ["start.sh"]}, "start.sh"),
    ({"command": "bash", "args": ["-c", "cd tools && exec python3 server.py"]}, "tools/server.py"),
    ({"command": "env", "args": ["PYTHONPATH=lib", "python3", "/usr/x.py"]}, "lib/vendored.py"),
    ({"command": "python3", "args": ["link.py"]}, "far/impl.py"),
    ({"command": "python3", "args": ["link.py"]}, "far/json.py"),
    ({"command": "python3", "args": ["link.py"]}, "link.py"),
    ({"command": "python3", "args": ["current/impl.py"]}, "far/impl.py"),
    ({"command": "python3", "args": ["../outside.py"], "env": {"PYTHONPATH": "lib"}}, "lib/new.txt"),
    ({"command": "python3", "args": ["../outside.py"], "env": {"PYTHONPATH": "/x:lib"}}, "lib/vendored.py"),
    ({"command": "thing", "env": {"NODE_PATH": "web"}}, "web/index.js"),
    ({"command": "thing", "env": {"PATH": "bin:/usr/bin"}}, "bin/thing"),
    ({"command": "thing", "env": {"LD_PRELOAD": "lib/x.so"}}, "lib/x.so"),
    ({"command": "thing", "env": {"NODE_OPTIONS": "--require web/hook.js"}}, "web/hook.js"),
    ({"command": "thing", "args": ["--config=settings.json"]}, "settings.json"),
    ({"command": "thing", "args": ["--plugins", "tools"]}, "tools/any.thing"),
    ({"command": "thing", "cwd": "tools"}, "tools/any.thing"),
    ({"command": "python3", "args": ["tools/not-there-yet.py"]}, "tools/not-there-yet.py"),
    ({"command": "java", "args": ["-cp", "/x.jar:lib", "Main"]}, "lib/a.class"),
    ({"command": "uvicorn", "args": ["app:app"]}, "app.py"),
    ({"command": "python3", "args": ["-m", "gunicorn", "src.app:app"]}, "src/app.py"),
    ({"command": "bash", "args": ["-c", "PATH=bin:$PATH run"]}, "bin/run"),
    ({"command": "bash", "args": ["-c", "$PWD/bin/run"]}, "bin/run"),
    ({"command": "mix", "args": ["run"]}, "lib/new.ex"),
    ({"command": "swift", "args": ["run"]}, "Sources/main.swift"),
    ({"command": "dotnet", "args": ["run"]}, "Program.cs"),
    ({"command": "cargo", "args": ["run"]}, "crates/one/src/lib.rs"),
    ({"command": "pwsh", "args": ["-File", "tools/run.ps1"]}, "tools/beside.psm1"),
    ({"command": "honcho", "args": ["start"]}, "Procfile"),
    ({"command": "uv", "args": ["run", "thing"]}, "setup.py"),
    ({"command": "thing", "env": {"SETTINGS": "settings.json"}}, "settings.json"),
    ({"command": "thing", "env": {"HOOK": "bin/run"}}, "bin/run"),
]  # fmt: skip


@pytest.mark.parametrize(("server", "path"), HELD, ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_server_is_started_from_is_held_by_every_way_of_naming_it(
    project: Path, server: dict[str, Any], path: str
) -> None:
    held = held_by(project, server, {"PATH": "/usr/bin:/bin", "WHERE": "tools"})
    found = held.find(MountPath.parse(path))
    assert found is not None
    assert found.by == "the server up"


@pytest.mark.parametrize(
    ("server", "path"),
    [
        (PY, "README.md"),
        (PY, "src/app.py"),
        (PY, "tools/notes.txt"),
        (PY, "toolsmith/server.py"),
        (PY, "scratch:tools/server.py"),
        ({**PY, "args": ["-I", "tools/server.py"]}, "tools/other.py"),
        (MODULE, "README.md"),
        ({"command": "npx", "args": ["-y", "server-filesystem", "."]}, "src/app.py"),
        ({"command": "thing", "args": ["--db", "data/x.db"], "data": ["data/x.db"]}, "data/x.db"),
        ({"command": "thing", "env": {"WORK": ".", "LOG": "data"}}, "data/new.txt"),
        ({"command": "thing", "env": {"DB": "data/x.db"}}, "data/x.db"),
        ({"command": "bash", "args": ["start.sh"]}, "tools/server.py"),
        ({"url": "https://127.0.0.1:1/mcp"}, "tools/server.py"),
    ],
)
def test_what_it_is_not_started_from_is_not_held(project: Path, server: dict[str, Any], path: str) -> None:
    assert held_by(project, server).find(MountPath.parse(path)) is None


SCRIPTS: list[tuple[str, str]] = [
    ("exec python3 tools/server.py", "tools/server.py"),
    ("exec python3 tools/server.py", "tools/json.py"),
    ('exec python3 "$(dirname "$0")/tools/server.py"', "tools/server.py"),
    ('HERE=$(pwd)\nexec node "$HERE/web/index.js"', "web/lib/a.js"),
    ("exec ${ROOT}/bin/run --now", "bin/run"),
    (". ./lib/common.bash", "lib/common.bash"),
    ("source deep.sh", "far/impl.py"),
    ("cd tools && python3 server.py", "tools/helper.py"),
    ("python3 -u -m pkg.main", "pkg/main.py"),
    ("uvicorn src.app:app", "src/app.py"),
    ("npm start", "srv/index.js"),
    ("PYTHONPATH=lib python3 /opt/x.py", "lib/vendored.py"),
]


@pytest.mark.parametrize(("text", "path"), SCRIPTS)
@pytest.mark.parametrize("name", ["start.sh", "bin/begin"])
def test_what_a_shell_script_of_the_project_starts_is_held(
    project: Path, text: str, path: str, name: str
) -> None:
    text = text.replace("$0)/tools", "$0)/../tools") if "/" in name else text
    (project / name).write_text(f"#!/bin/sh\n# not README.md\n{text}\n")
    (project / "deep.sh").write_text("exec python3 far/impl.py\n")
    held = held_by(project, {"command": "sh", "args": [name]})
    assert held.find(MountPath.parse(path)) is not None
    assert held.find(MountPath.parse("README.md")) is None
    assert held.find(MountPath.parse("data/new.txt")) is None


def test_the_project_that_a_first_start_installs_is_held(project: Path) -> None:
    (project / "pyproject.toml").write_text("")
    held = held_by(project, {"command": "uv", "args": ["run", "thing"]})
    assert held.find(MountPath.parse("src/app.py"))
    assert held.find(MountPath.parse("README.md")) is None


def test_what_links_beside_a_program_lead_to_is_held(project: Path) -> None:
    (project / "tools" / "part").symlink_to("../src")
    (project / "tools" / "one.py").symlink_to("../lib/vendored.py")
    held = held_by(project, PY)
    for name in ("src/app.py", "src/new.py", "lib/vendored.py"):
        assert held.find(MountPath.parse(name)), name
    assert held.find(MountPath.parse("lib/other.py")) is None
    pins = own_code(Config.from_dict({"version": 1, "servers": {"up": PY}}), project, None, None, {}).kept[
        "servers"
    ]["up"]
    before = pins.snapshot().files
    (project / "src" / "app.py").write_text("evil")
    assert "src/app.py has changed" in pins.check(before)


def test_packages_that_are_installed_as_links_are_held(project: Path) -> None:
    (project / "node_modules" / "@own").mkdir(parents=True)
    (project / "node_modules" / "@own" / "lib").symlink_to("../../web/lib")
    held = held_by(project, {"command": "node", "args": ["bin/run"]})
    assert held.find(MountPath.parse("web/lib/a.js"))
    packages = project.parent / "env" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (project.parent / "env" / "pyvenv.cfg").write_text("")
    (project.parent / "env" / "bin").mkdir()
    (project.parent / "env" / "bin" / "server").write_text("#!/usr/bin/python3\n")
    (packages / "own.pth").write_text(f"{project}/src\n")
    (packages / "__editable___own_finder.py").write_text(f"MAPPING = {{'pkg': '{project}/pkg'}}\n")
    held = held_by(project, {"command": str(project.parent / "env" / "bin" / "server")})
    for name in ("src/app.py", "pkg/main.py"):
        assert held.find(MountPath.parse(name)), name


def test_a_file_is_held_by_every_mount_that_leads_to_it(project: Path) -> None:
    (project.parent / "far").mkdir()
    (project.parent / "far" / "s.py").write_text("")
    mounts = {"lib": {"path": "../far", "writable": "**"}}
    held = held_by(
        project, {"command": "python3", "args": [str(project.parent / "far" / "s.py")]}, mounts=mounts
    )
    assert held.find(MountPath.parse("lib:s.py"))
    assert held.find(MountPath.parse("lib:json.py"))


# --- through the gate -------------------------------------------------------------------------------------------


def served(**more: Any) -> dict[str, Any]:
    up = {"command": sys.executable, "args": ["-S", "tools/server.py"], "pin": "first"} | more
    return READS_ALL | {"servers": {"up": up}}


@pytest.fixture
def serving(project: Path) -> Path:
    (project / "tools" / "server.py").write_text(SERVER)
    return project


PATCH = "--- a/tools/server.py\n+++ b/tools/server.py\n@@ -1 +1 @@\n-{}\n+evil\n"
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("fs.write", {"path": "tools/server.py", "content": "evil"}),
    ("fs.write", {"path": "tools/json.py", "content": "evil"}),
    ("fs.edit", {"path": "tools/server.py", "find": "{}", "replace": "evil"}),
    ("fs.patch", {"diff": PATCH}),
    ("fs.append", {"path": "tools/server.py", "text": "evil"}),
    ("fs.delete", {"path": "tools/server.py"}),
    ("fs.delete", {"path": "tools"}),
    ("fs.move", {"path": "tools/server.py", "new_path": "old.py"}),
    ("fs.move", {"path": "README.md", "new_path": "tools/json.py"}),
    ("fs.move", {"path": "tools", "new_path": "elsewhere"}),
    ("t.sly", {}),
    ("t.plain", {"path": "tools/server.py"}),
]  # fmt: skip


def sly_tools(project: Path) -> list[toolgate.Tool]:
    def plan() -> Change:
        """Writes what no argument names."""
        return Change((FileChange(MountPath.parse("tools/server.py"), b"{}\n", b"evil"),))

    @tool("t.sly", writes=["project"], plan=plan)
    async def sly(change: Change) -> None: ...

    @tool("t.plain", writes=["project"])
    async def plain(path: MountPath) -> None:
        """Plans nothing."""

    return [sly, plain]


async def test_every_way_of_writing_it_asks_whatever_the_rules_say(project: Path) -> None:
    config = served() | {"policy": {"rules": [{"persona": "*", "tools": ["*"], "decision": "allow"}]}}
    async with toolgate.open(project, config, "memory", tools=sly_tools(project)) as gate:
        free = await gate.call("fs.write", {"path": "src/app.py", "content": "x = 1\n"})
        assert free.ok, free.error
        for name, args in WAYS:
            asked = await gate.call(name, args, wait=False)
            assert code(asked) == "pending", (name, args, asked.error)
            question = next(one for one in await gate.approvals() if one.id == asked.data["question"])
            assert question.rule == "hard:held"
            assert "run by toolgate outside the sandbox, as the server up" in question.reason
            await gate.answer(question.id, "deny")
        assert (project / "tools" / "server.py").read_text() == "{}\n"


async def pending(gate: Gate, name: str, args: dict[str, Any]) -> str:
    asked = await gate.call(name, args, wait=False)
    assert code(asked) == "pending", asked.error
    return str(asked.data["question"])


async def test_a_grant_does_not_cover_it_and_a_deny_stays_one(project: Path) -> None:
    rules = [{"name": "asks", "persona": "*", "tools": ["fs.write"], "decision": "ask"}]
    config = served() | {"policy": {"rules": rules}}
    config["personas"] = {"ada": FREE, "eve": {"phase": "observe", "deny": ["fs.*"]}}
    write = {"path": "src/app.py", "content": "x = 1\n"}
    async with toolgate.open(project, config, "memory") as gate:
        await gate.answer(await pending(gate, "fs.write", write), "approve", scope={"seconds": 3600})
        assert (await gate.call("fs.write", write | {"content": "x = 2\n"}, wait=False)).ok
        held = {"path": "tools/server.py", "content": "x"}
        await gate.answer(await pending(gate, "fs.write", held), "deny")
        refused = await gate.call("fs.write", held | {"content": "y"}, persona="eve", wait=False)
        assert refused.data["rule"] == "deny:eve"
        why = await gate.explain("fs.write", held, "ada")
        assert why.decision.rule == "hard:held"


async def test_taking_back_a_write_of_it_asks_too(project: Path) -> None:
    async with toolgate.open(project, served(), "memory") as gate:
        args = {"path": "tools/server.py", "content": "approved\n"}
        await gate.answer(await pending(gate, "fs.write", args), "approve")
        done = await gate.call("fs.write", args, wait=False)
        assert done.ok, done.error
        undone = await gate.undo(done.meta.call_id, wait=False)
        assert code(undone) == "pending"
        assert "outside the sandbox, as the server up" in undone.error.message


def shown(gate: Gate) -> dict[str, str]:
    assert gate.upstream is not None
    return {one["tool"]: one["definition"] for one in gate.upstream.diff("up")}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tools/server.py", "tools/server.py has changed"),
        ("tools/helper.py", "tools/helper.py has changed"),
        ("tools/colorsys.py", "tools/colorsys.py is new"),
        ("tools/deep/json.py", "tools/deep/json.py is new"),
    ],
)
async def test_a_change_holds_the_server_until_it_is_approved_again(
    serving: Path, name: str, said: str
) -> None:
    async with toolgate.open(serving, served(pin="ask")) as gate:
        await gate.upstream.discover("up")
        assert (await gate.approve_server("up", shown(gate))).ok
        assert (await gate.call("up.pid")).ok
    (serving / name).write_text(SERVER + "# another\n" if name.endswith("server.py") else "")
    async with toolgate.open(serving, served(pin="ask")) as gate:
        held = await gate.call("up.pid")
        assert code(held) == "not_allowed"
        assert said in held.error.message
        assert "toolgate servers approve up" in held.error.fix
        await gate.upstream.discover("up")
        assert status(gate)["state"] == "idle"  # not started, not even to look
        assert all(said in why for why in status(gate)["held"].values())
        assert (await gate.approve_server("up", shown(gate))).ok
        again = await gate.call("up.pid")
        assert again.ok, again.error
        assert gate.upstream.diff("up") == []


async def test_what_is_approved_is_the_file_that_was_shown(serving: Path) -> None:
    async with toolgate.open(serving, served(pin="ask")) as gate:
        await gate.upstream.discover("up")
        before = shown(gate)
        (serving / "tools" / "server.py").write_text(SERVER + "# another\n")
        assert code(await gate.approve_server("up", before)) == "conflict"
        bare = {name: text.partition("+")[0] for name, text in before.items()}
        assert code(await gate.approve_server("up", bare)) == "conflict"


async def test_an_approval_that_knew_nothing_of_files_holds_the_server(serving: Path) -> None:
    async with toolgate.open(serving, served()) as gate:
        assert (await gate.call("up.pid")).ok
        (pins,) = (serving.parent / "state").glob("servers/*/up.pins.json")
    kept = json.loads(pins.read_text())
    del kept["files"]
    pins.write_text(json.dumps(kept))
    async with toolgate.open(serving, served()) as gate:
        held = await gate.call("up.pid")
        assert "nobody has approved the files that it is started from: tools/" in held.error.message


async def test_more_code_than_can_be_pinned_is_not_started(
    serving: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with toolgate.open(serving, served()) as gate:
        assert (await gate.call("up.pid")).ok
    monkeypatch.setattr(filepins, "MOST_FILES", 2)
    async with toolgate.open(serving, served()) as gate:
        held = await gate.call("up.pid")
        assert code(held) == "not_allowed"
        assert "too many to pin" in held.error.message
        assert code(await gate.approve_server("up", {"pid": ""})) == "not_allowed"


def test_a_mode_that_makes_it_a_program_is_a_change(project: Path) -> None:
    config = Config.from_dict({"version": 1, "servers": {"up": PY}})
    pins = own_code(config, project, None, None, {"PATH": "/usr/bin"}).kept["servers"]["up"]
    before = pins.snapshot().files
    assert pins.check(before) == ""
    file = project / "tools" / "server.py"
    file.chmod(stat.S_IMODE(os.stat(file).st_mode) | 0o111)
    assert "tools/server.py has changed" in pins.check(before)


async def test_a_server_that_a_changed_policy_names_is_held_at_once(serving: Path) -> None:
    file = serving.parent / "policy.yaml"
    file.write_text(json.dumps(READS_ALL))
    async with toolgate.open(serving, file, "memory") as gate:
        args = {"path": "tools/server.py", "content": "x = 1\n"}
        assert (await gate.call("fs.write", args, wait=False)).ok
        file.write_text(json.dumps(served()))
        await pending(gate, "fs.write", args | {"content": "x = 2\n"})
        file.write_text(json.dumps(READS_ALL))
        assert (await gate.call("fs.write", args | {"content": "x = 3\n"}, wait=False)).ok
