"""The door for features: named in one place, loaded when needed, from anywhere."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import toolgate
from toolgate import feature as feature_module
from toolgate import testing
from toolgate.app import _tables
from toolgate.core.errors import ConfigError, DuplicateName, SetupError, Unavailable
from toolgate.core.names import Registry
from toolgate.feature import FEATURES, Feature, built_in, load, places_of
from toolgate.project.config import Config
from toolgate.project.opening import prepare
from toolgate.storage.tables import Migration, SqliteTables

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "toolgate"
ROOMY = {"version": 1, "personas": {"tester": {"phase": "collaborate"}}}
CENTRAL = ("app.py", "project/config.py", "faces/cli/root.py", "faces/console/router.py")


async def test_the_gate_is_built_from_the_features_alone() -> None:
    named = {name for each in built_in() for family in each.families for name in family.names}
    async with testing.gate() as gate:
        assert {tool.name for tool in gate.services.registry} == named
        assert set(gate.features) == {each.name for each in built_in()}


async def test_every_family_makes_exactly_the_tools_that_it_names() -> None:
    async with testing.gate() as gate:
        for feature in built_in():
            for family in feature.families:
                made = load(family.tools)(gate.features[feature.name])
                assert {tool.name for tool in made} == set(family.names)
                aliases = {alias: tool.name for tool in made for alias in tool.aliases}
                assert aliases == dict(family.aliases)


def test_every_place_that_a_feature_names_is_there() -> None:
    for feature in built_in():
        for place in places_of(feature):
            assert load(place) is not None, place
        assert (ROOT / feature.docs).is_file(), feature.name


def test_a_feature_renders_only_tools_of_its_own() -> None:
    for feature in (one for one in built_in() if one.renderings):
        named = {name for family in feature.families for name in family.names}
        assert load(feature.renderings).keys() <= named, feature.name


async def test_a_result_is_rendered_by_its_feature_and_else_as_plain_lines() -> None:
    async with testing.gate() as gate:
        args = {"message": "hello"}
        result = await gate.call("system.ping", args, persona="tester")
        assert gate.rendered(result, args).startswith("hello (toolgate ")
        result.data = {"cut": "until it lost its shape"}
        assert gate.rendered(result, args) == "cut: until it lost its shape"


@pytest.mark.parametrize("file", CENTRAL)
def test_no_central_file_names_a_feature(file: str) -> None:
    words = {package.rpartition(".")[2] for package in FEATURES} - {"files", "code", "system"}
    text = (SRC / file).read_text()
    code = "\n".join(line for line in text.splitlines() if not line.strip().startswith(("#", '"""')))
    assert not [package for package in FEATURES if package in text]
    assert not [word for word in words if f"{word}." in code or f'"{word}"' in code]


def test_the_names_of_features_load_nothing_heavy() -> None:
    program = """
import json, sys
from toolgate.feature import built_in
named = [name for each in built_in() for family in each.families for name in family.names]
print(json.dumps([len(named), [name for name in sys.modules if name.partition(".")[0] in
    {"pydantic", "asyncio", "yaml", "rich", "typer", "fastapi", "mcp", "dbos", "tree_sitter"}]]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, heavy = json.loads(done.stdout)
    assert count > 30
    assert heavy == []


async def test_a_call_loads_its_own_family_only(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, ROOMY, "memory") as gate:
        registry = gate.services.registry
        assert (await gate.call("system.ping", persona="tester")).ok
        assert "fs.write" in registry
        assert "system.ping" in registry._tools
        assert "fs.write" not in registry._tools


def test_only_what_is_installed_brings_features_by_an_entry_point(tmp_path: Path) -> None:
    """A program's own directory is on Python's path, and may be a mount that tools write into."""
    (tmp_path / "evil-1.dist-info").mkdir()
    (tmp_path / "evil-1.dist-info" / "entry_points.txt").write_text(
        "[toolgate.features]\nevil = evil:FEATURE\n"
    )
    (tmp_path / "evil.py").write_text(
        "print('ran')\nfrom toolgate.feature import Feature\nFEATURE = Feature('evil', '')\n"
    )
    (tmp_path / "app.py").write_text(
        "from toolgate.feature import everything\nprint([one.name for one in everything()])\n"
    )
    run = [sys.executable, "app.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "evil" not in done.stdout
    assert "ran" not in done.stdout


async def test_two_who_need_the_tables_at_once_both_find_them_made(tmp_path: Path) -> None:
    steps = [Migration("CREATE TABLE one (id INTEGER);", "")]
    module = SimpleNamespace(STEPS=steps)
    sys.modules["two_at_once"] = module  # type: ignore[assignment]
    feature = Feature("both", "", tables="two_at_once:STEPS")
    try:
        async with toolgate.open(tmp_path, ROOMY) as gate:
            stack = gate.features["system"].stack
            tables = _tables(prepare(tmp_path, ROOMY), feature, stack, gate.services.ledger.backend)

            async def read() -> list[dict[str, object]]:
                return await (await tables()).fetch("SELECT * FROM one")

            assert await asyncio.gather(read(), read(), read()) == [[], [], []]
    finally:
        del sys.modules["two_at_once"]


def test_a_section_of_toolgates_own_cannot_be_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Feature("other", "", sections={"jobs": "nowhere:Model"})
    monkeypatch.setattr(feature_module, "installed", lambda: (other,))
    assert Config.from_dict(ROOMY | {"jobs": {"run": True}}).jobs.run is True


def test_two_who_declare_one_name_are_told() -> None:
    registry = Registry()
    registry.declare(("diary.read",), {"diary": "diary.read"}, list)
    with pytest.raises(DuplicateName, match=r"diary\.read"):
        registry.declare(("diary.read",), {}, list)
    with pytest.raises(DuplicateName, match="diary"):
        registry.declare(("diary.write",), {"diary": "diary.write"}, list)


def test_a_family_that_does_not_make_what_it_names_is_refused() -> None:
    registry = Registry()
    registry.declare(("diary.read",), {}, list)
    with pytest.raises(SetupError, match=r"diary\.read"):
        registry.resolve("diary.read")


async def test_tables_of_a_newer_version_are_refused_untouched(tmp_path: Path) -> None:
    step = Migration("CREATE TABLE one (id INTEGER);", "")
    more = Migration("CREATE TABLE two (id INTEGER);", "")
    new, old = SqliteTables(tmp_path / "features.db"), SqliteTables(tmp_path / "features.db")
    await new.migrate("diary", [step, more])
    with pytest.raises(Unavailable, match="version 2"):
        await old.migrate("diary", [step])
    await old.migrate("other", [Migration("CREATE TABLE three (id INTEGER);", "")])
    assert await new.fetch("SELECT feature, version FROM feature_versions ORDER BY feature") == [
        {"feature": "diary", "version": 2},
        {"feature": "other", "version": 1},
    ]
    await new.close()
    await old.close()


async def test_a_migration_that_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    tables = SqliteTables(tmp_path / "features.db")
    with pytest.raises(Unavailable):
        await tables.migrate(
            "diary", [Migration("CREATE TABLE one (id INTEGER);\nCREATE TABLE one (id INTEGER);", "")]
        )
    await tables.migrate("diary", [Migration("CREATE TABLE one (id INTEGER);", "")])
    assert await tables.fetch("SELECT * FROM one") == []
    await tables.close()


async def test_a_section_that_nobody_knows_is_refused_even_with_plugins(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def toolset(services):\n    return []\n")
    config = ROOMY | {"plugins": ["./plain.py"], "diary": {}}
    with pytest.raises(ConfigError, match="diary"):
        Config.from_dict(config)
    (tmp_path / "feature.py").write_text(
        "from toolgate.feature import Feature\nFEATURE = Feature('other', '')\n"
    )
    config = ROOMY | {"plugins": ["./feature.py:FEATURE"], "diary": {}}
    with pytest.raises(ConfigError, match="diary"):
        async with toolgate.open(tmp_path, config, "memory"):
            pass


def test_a_feature_is_a_plain_value() -> None:
    assert Feature("diary", "A diary").families == ()
