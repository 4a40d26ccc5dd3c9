"""What decides what toolgate does is read once, and from a place that no tool can write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.app import prepare_ledger
from toolgate.core.errors import ConfigError, SetupError
from toolgate.core.paths import MountPath
from toolgate.core.programs import find_program
from toolgate.policy.held import Held
from toolgate.project import checked, trust
from toolgate.project import config as configuration
from toolgate.project.plugins import own_code
from toolgate.workspace import placing

POLICY = "version: 1\ndefault_persona: a\npersonas: {a: {phase: contribute, allow: ['fs.*', 'p.*']}}\n"
PLUGIN = """
from toolgate import tool

@tool("p.hello", reads=["system"])
async def hello() -> str:
    "Says hello."
    return "hello"

def toolset(services):
    return [hello]
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    made = tmp_path / "project"
    for name in ("docs", "ext", ".toolgate/scratch"):
        (made / name).mkdir(parents=True)
    for name in ("far", "outside"):
        (tmp_path / name).mkdir()
    return made


def _to(*target: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        there = (root / Path(*target)).resolve()
        there.write_text(POLICY)
        (root / "toolgate.yaml").symlink_to(there)

    return make


def _relative(root: Path) -> None:
    (root / "docs" / "p.yaml").write_text(POLICY)
    (root / "toolgate.yaml").symlink_to("docs/p.yaml")


def _by_two(root: Path) -> None:
    _relative(root)
    (root / "toolgate.yaml").rename(root.parent / "outside" / "one.yaml")
    (root.parent / "outside" / "one.yaml").unlink()
    (root.parent / "outside" / "one.yaml").symlink_to(root / "docs" / "p.yaml")
    (root / "toolgate.yaml").symlink_to(root.parent / "outside" / "one.yaml")


def _by_directory(root: Path) -> None:
    (root / "docs" / "p.yaml").write_text(POLICY)
    (root.parent / "outside" / "way").symlink_to(root / "docs")
    (root / "toolgate.yaml").symlink_to(root.parent / "outside" / "way" / "p.yaml")


def _hard(root: Path) -> None:
    (root / "docs" / "p.yaml").write_text(POLICY)
    os.link(root / "docs" / "p.yaml", root / "toolgate.yaml")


def _other_mount(root: Path) -> None:
    there = root.parent / "far" / "p.yaml"
    there.write_text(POLICY + "mounts: {lib: {path: ../far, writable: '**'}}\n")
    (root / "toolgate.yaml").symlink_to(there)


def _broken(root: Path) -> None:
    (root / "docs" / "p.yaml").write_text("version: [1\nledger: {database: postgresql://elsewhere/x}\n")
    (root / "toolgate.yaml").symlink_to("docs/p.yaml")


LINKS = {
    "into the project": _relative, "by its whole path": _to("docs", "p.yaml"), "into scratch": _to(".toolgate", "scratch", "p.yaml"),
    "to another toolgate.yaml": _to("docs", "toolgate.yaml"), "by a second link": _by_two, "by a linked directory": _by_directory,
    "as a hard link": _hard, "into another mount": _other_mount, "broken besides": _broken,
}  # fmt: skip


@pytest.mark.parametrize("how", LINKS)
async def test_a_policy_that_leads_into_a_mount_is_not_read(root: Path, how: str) -> None:
    trust.trust(root, configuration.state_dir())
    LINKS[how](root)
    for opened in (lambda: configuration.load(root), lambda: prepare_ledger(root)):
        with pytest.raises(ConfigError) as caught:
            opened()
        assert "link" in caught.value.message
        assert caught.value.fix
    with pytest.raises(ConfigError):
        async with toolgate.open(root):
            pass
    assert [error.message for error in configuration.problems(root)]


def test_a_link_to_a_place_outside_every_mount_is_read(root: Path) -> None:
    _to("..", "outside", "p.yaml")(root)
    assert configuration.load(root).default_persona == "a"


def test_a_link_to_a_place_in_the_project_that_no_mount_has_is_read(root: Path) -> None:
    (root / "conf").mkdir()
    (root / "conf" / "p.yaml").write_text(POLICY + "mounts: {project: {path: docs}}\n")
    (root / "toolgate.yaml").symlink_to("conf/p.yaml")
    assert configuration.load(root).default_persona == "a"


def test_what_is_checked_is_what_was_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Swapped for another file between reading and looking where it is."""
    file = root / "toolgate.yaml"
    file.write_text(POLICY)
    (root / "docs" / "other.yaml").write_text("version: 1\n")
    usual = checked.exposed

    def swap(path: Path, *rest: Any) -> tuple[str, str]:
        (root / "docs" / "other.yaml").replace(file)
        return usual(path, *rest)

    monkeypatch.setattr(checked, "exposed", swap)
    with pytest.raises(ConfigError, match="replaced while it was read"):
        configuration.load(root)


async def test_a_link_that_takes_the_place_of_the_policy_stops_every_call(root: Path) -> None:
    trust.trust(root, configuration.state_dir())
    file = root / "toolgate.yaml"
    file.write_text(POLICY)
    async with toolgate.open(root) as gate:
        assert (await gate.call("fs.list", {"path": "."})).ok
        file.unlink()
        _relative(root)
        stopped = await gate.call("fs.list", {"path": "."})
        assert stopped.error.code == "unavailable"
        assert "symbolic link" in stopped.error.message


@pytest.mark.parametrize("name", ["docs/policy.yaml", "Docs/POLICY.yaml", "docs/policy.yaml."])
async def test_a_policy_of_another_name_in_a_mount_is_written_by_no_tool(root: Path, name: str) -> None:
    (root / "docs" / "policy.yaml").write_text(POLICY)
    async with toolgate.open(root, root / "docs" / "policy.yaml", "memory") as gate:
        refused = await gate.call("fs.write", {"path": name, "content": "x"}, wait=False)
        assert refused.error.code == "blocked_path"
        moved = await gate.call("fs.move", {"path": "docs", "new_path": "other"}, wait=False)
        assert moved.error.code == "blocked_path"


async def test_the_database_in_a_mount_is_written_by_no_tool(root: Path) -> None:
    config = configuration.loads(POLICY)
    async with toolgate.open(root, config, str(root / "docs" / "l.db")) as gate:
        for name in ("docs/l.db", "docs/l.db-wal", "docs/owners/x"):
            refused = await gate.call("fs.write", {"path": name, "content": "x"}, wait=False)
            assert refused.error.code == "blocked_path", name


async def opened_with(root: Path, plugin: str, **more: Any) -> Any:
    config = {"version": 1, "default_persona": "a", "plugins": [plugin], **more}
    config["personas"] = {"a": {"phase": "contribute", "allow": ["fs.*", "p.*"]}}
    return toolgate.open(root, config, "memory")


def _plugin_link(root: Path) -> str:
    (root / "docs" / "x.py").write_text(PLUGIN)
    (root / "ext" / "x.py").symlink_to("../docs/x.py")
    return "./ext/x.py"


def _plugin_directory(root: Path) -> str:
    (root / "docs" / "x.py").write_text(PLUGIN)
    (root / "linked").symlink_to("docs")
    return "./linked/x.py"


def _plugin_scratch(root: Path) -> str:
    (root / ".toolgate" / "scratch" / "x.py").write_text(PLUGIN)
    (root / "ext" / "x.py").symlink_to("../.toolgate/scratch/x.py")
    return "./ext/x.py"


def _plugin_hard(root: Path) -> str:
    (root / "docs" / "x.py").write_text(PLUGIN)
    os.link(root / "docs" / "x.py", root / "ext" / "x.py")
    return "./ext/x.py"


def _plugin_pipe(root: Path) -> str:
    os.mkfifo(root / "ext" / "x.py")
    return "./ext/x.py"


@pytest.mark.parametrize(
    "make", [_plugin_link, _plugin_directory, _plugin_scratch, _plugin_hard, _plugin_pipe]
)
async def test_a_plugin_that_a_tool_could_write_is_not_loaded(root: Path, make: Any) -> None:
    with pytest.raises(SetupError) as caught:
        async with await opened_with(root, make(root)):
            pass
    assert caught.value.fix


async def test_a_plugin_is_compiled_from_what_was_read_and_not_from_bytecode(root: Path) -> None:
    (root / "ext" / "x.py").write_text(PLUGIN)
    async with await opened_with(root, "./ext/x.py") as gate:
        assert (await gate.call("p.hello")).data == "hello"
    assert not (root / "ext" / "__pycache__").exists()


async def test_what_a_plugin_imports_from_a_mount_is_written_by_no_tool(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "docs"))
    (root / "docs" / "own_helper_x.py").write_text("")
    (root / "ext" / "x.py").write_text("import own_helper_x\n" + PLUGIN)
    try:
        async with await opened_with(root, "./ext/x.py") as gate:
            args = {"path": "docs/own_helper_x.py", "content": "x"}
            assert (await gate.call("fs.write", args, wait=False)).error.code == "blocked_path"
            assert (await gate.call("fs.write", {"path": "docs/other.py", "content": "x"})).ok
    finally:
        sys.modules.pop("own_helper_x", None)


async def test_a_plugin_package_in_a_mount_is_written_by_no_tool(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = root / "docs" / "own_package_x"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(root / "docs"))
    try:
        async with await opened_with(root, "own_package_x.tools:toolset") as gate:
            for name in ("tools.py", "late.py", "__pycache__/tools.cpython-311.pyc"):
                args = {"path": f"docs/own_package_x/{name}", "content": "x"}
                assert (await gate.call("fs.write", args, wait=False)).error.code == "blocked_path"
    finally:
        for name in ("own_package_x", "own_package_x.tools"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["ledger.db", "images", "log", "proposals"])
async def test_toolgates_own_files_do_not_lead_into_a_mount(root: Path, name: str) -> None:
    (root / ".toolgate" / name).symlink_to(root / "docs")
    with pytest.raises(SetupError, match="is a link"):
        async with toolgate.open(root, configuration.loads(POLICY), "memory"):
            pass


async def test_a_key_in_another_mount_is_not_used(root: Path) -> None:
    text = POLICY + "mounts: {lib: {path: ../far}}\nledger: {key_file: %s}\n"
    (root.parent / "outside" / "k.json").symlink_to(root.parent / "far" / "k.json")
    for key in (root.parent / "far" / "k.json", root.parent / "outside" / "k.json"):
        with pytest.raises(SetupError, match="tools can reach as lib:k"):
            async with toolgate.open(root, configuration.loads(text % key)):
                pass


def test_a_second_name_of_a_directory_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bind mount gives it one: here a link stands for the mount point, which is the same to `stat`."""
    (root.parent / "outside" / "p.yaml").write_text(POLICY)
    (root / "docs" / "again").symlink_to(root.parent / "outside")
    (root / "docs" / "file").symlink_to(root.parent / "outside" / "p.yaml")
    points = [str(root / "docs" / "again"), str(root / "docs" / "file"), "/proc"]
    monkeypatch.setattr(placing, "mount_points", lambda: points)
    found = placing.Placing({"project": root}).names(root.parent / "outside" / "p.yaml")
    assert set(found) == {MountPath("project:docs/again/p.yaml"), MountPath("project:docs/file")}


def test_a_mount_that_is_not_there_yet_has_names_for_what_will_be_in_it(root: Path) -> None:
    found = placing.Placing({"lib": root / "later"}).names(root / "later" / "x.py")
    assert found == [MountPath("lib:x.py")]


def test_the_kernels_list_of_mounts_is_read() -> None:
    assert "/" in placing.mount_points()


def test_toolgates_own_source_in_a_mount_is_held() -> None:
    package = Path(toolgate.__file__).parent
    found = own_code(configuration.loads(POLICY), package.parent, None, None, {}).held
    for module in ("app.py", "gate/gate.py", "project/plugins.py", "features/files/tool_types.json"):
        place = Held.of(found).find(MountPath(f"project:{package.name}/{module}"))
        assert place is not None
        assert place.by == "toolgate itself"


async def test_toolgates_own_installation_in_a_mount_is_held(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "venv" / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(root / "venv"))
    async with toolgate.open(root, configuration.loads(POLICY), "memory") as gate:
        args = {"path": "venv/lib/python3.11/site-packages/toolgate/app.py", "content": "x"}
        asked = await gate.call("fs.write", args, wait=False)
        assert asked.error.code == "pending"
        assert "as toolgate's own interpreter" in asked.error.message


@pytest.mark.parametrize(
    "path",
    ["lib/keyring.py", "lib/keyring/__init__.py", "lib/json.py", "lib/psutil.abi3.so", "LIB/uvloop.py"],
)
async def test_a_module_that_stands_in_for_what_toolgate_imports_is_held(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (root / "lib").mkdir()
    monkeypatch.syspath_prepend(str(root / "lib"))
    async with toolgate.open(root, configuration.loads(POLICY), "memory") as gate:
        asked = await gate.call("fs.write", {"path": path, "content": "x"}, wait=False)
        assert asked.error.code == "pending"
        assert "as a module that toolgate imports" in asked.error.message
        assert (await gate.call("fs.write", {"path": "lib/own.py", "content": "x"}, wait=False)).ok


@pytest.mark.parametrize("program", ["git", "rg", "notify-send"])
async def test_a_program_that_toolgate_finds_by_its_name_is_held(
    root: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    async with toolgate.open(root, configuration.loads(POLICY), "memory") as gate:
        asked = await gate.call("fs.write", {"path": program, "content": "x"}, wait=False)
        assert asked.error.code == "pending"
        assert "as a program that it finds on its PATH" in asked.error.message
        assert (await gate.call("fs.write", {"path": "other", "content": "x"}, wait=False)).ok


def test_no_program_is_started_from_where_toolgate_is_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "rg").write_text("#!/bin/sh\n")
    (root / "rg").chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", str(root / "docs")]))
    assert find_program("rg") is None
