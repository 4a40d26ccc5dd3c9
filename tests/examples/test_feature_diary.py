"""The example of a feature, brought in both ways, on both databases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgate
from faces.http.serving import house
from toolgate import feature
from toolgate.core.errors import ConfigError
from toolgate.project import trust
from toolgate.project.config import state_dir

from .running import EXAMPLES

YAML = """
version: 1
default_persona: builder
personas: {builder: {phase: contribute, allow: ["diary.*"]}, other: {phase: contribute, allow: ["diary.*"]}}
diary: {characters: 20}
"""


def environment(tmp_path: Path) -> Path:
    """A virtual environment that also has what this one has; where its packages are."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (where,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (where / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return where


@pytest.fixture(params=["named in plugins", "installed"])
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Python finds it as it finds any package; only an installed one has an entry point."""
    where = environment(tmp_path)
    shutil.copytree(EXAMPLES / "feature_diary" / "toolgate_diary", where / "toolgate_diary")
    if request.param == "installed":
        (where / "toolgate_diary-0.1.0.dist-info").mkdir()
        points = "[console_scripts]\nx = y:z\n\n[toolgate.features]\ndiary = toolgate_diary:FEATURE\n"
        (where / "toolgate_diary-0.1.0.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(where)
    monkeypatch.setattr("site.getsitepackages", lambda: [str(where)])
    feature.installed.cache_clear()
    yield request.param
    feature.installed.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolgate_diary"]:
        del sys.modules[name]


def project(tmp_path: Path, way: str, more: str = "") -> Path:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    plugins = 'plugins: ["toolgate_diary:FEATURE"]\n' if way != "installed" else ""
    (root / "toolgate.yaml").write_text(YAML + plugins + more)
    trust.trust(root, state_dir())
    return root


async def writes_and_reads(root: Path) -> None:
    async with toolgate.open(root) as gate:
        assert (await gate.call("diary.write", {"text": "it rained"})).ok
        assert (await gate.call("diary.write", {"text": "mine"}, persona="other")).ok
        long = await gate.call("diary.write", {"text": "x" * 21})
        assert long.error is not None
        assert long.error.fix == "use at most 20"
        assert [one["text"] for one in (await gate.call("diary.read")).data] == ["it rained"]
        assert (await gate.verify()).ok
    async with toolgate.open(root) as gate:  # the table is there already, and kept
        assert len(await gate.feature("diary").read()) == 2


async def test_its_tools_write_and_read_its_table(way: str, tmp_path: Path) -> None:
    await writes_and_reads(project(tmp_path, way))


@pytest.mark.postgres
async def test_its_tools_write_and_read_its_table_on_postgresql(
    way: str, tmp_path: Path, fresh_dsn: str
) -> None:
    await writes_and_reads(project(tmp_path, way, f"ledger: {{database: {fresh_dsn!r}}}\n"))


async def test_a_mistake_in_its_section_is_told_with_its_line(way: str, tmp_path: Path) -> None:
    root = project(tmp_path, way)
    file = root / "toolgate.yaml"
    file.write_text(file.read_text().replace("characters", "caracters"))
    with pytest.raises(ConfigError, match="caracters") as told:
        async with toolgate.open(root):
            pass
    assert told.value.line == 5


def run(root: Path, *words: str) -> Any:
    done = subprocess.run(
        [str(root.parent / "env" / "bin" / "python"), "-m", "toolgate", *words, "--json"],
        cwd=root,
        env=dict(os.environ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]


def test_its_command_and_its_check_are_there(way: str, tmp_path: Path) -> None:
    root = project(tmp_path, way)
    assert run(root, "call", "diary.write", '{"text": "sunny"}') == {"id": 1}
    assert [one["text"] for one in run(root, "diary")] == ["sunny"]
    checks = {one["what"]: one for one in run(root, "doctor")}
    assert checks["diary"]["found"] == "1 entries"


async def test_its_page_is_in_the_console_and_in_the_navigation(way: str, tmp_path: Path) -> None:
    config = yaml.safe_load(project(tmp_path, way).joinpath("toolgate.yaml").read_text())
    async with house(tmp_path / "project", config) as here:
        await here.gate.call("diary.write", {"text": "<b>bold</b>"})
        async with here.browser() as client:
            text = (await client.get(f"{here.site.base}/diary", headers={"Accept": "text/html"})).text
    assert f'<a href="{here.site.base}/diary" aria-current="page">' in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
