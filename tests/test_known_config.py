"""A file that was checked before: a gate opens without the models, and decides, counts and shows the very same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolgate
from toolgate.core.errors import ConfigError
from toolgate.feature import built_in
from toolgate.policy.values import packed, plain, unpacked
from toolgate.project import config as configuration
from toolgate.project import known_config, opening, trust
from toolgate.project.checked import WritableConfig
from toolgate.project.config import Config
from toolgate.project.known_config import KnownConfig

MORE = """
consent: {expires_s: 60, notify: {desktop: true}}
scan: {payload: ask}
http: {connections: 50}
timeouts: {tool: {fs.read: 3}}
mcp: {profile: [fs.read, "code.*"]}
servers: {time: {command: time-server, env: {TZ: UTC}}}
plugins: []
"""
OPEN = """
import asyncio, json, sys, toolgate

async def main():
    async with toolgate.open(sys.argv[1]) as gate:
        return gate.policy.fingerprint

told = asyncio.run(main())
heavy = {"pydantic", "pydantic_core", "yaml", "orjson", "difflib", "uuid", "cryptography", "rich", "toolgate.project.config"}
print(json.dumps({"fingerprint": told, "heavy": sorted(heavy & set(sys.modules))}))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    made = tmp_path / "project"
    made.mkdir()
    text = (Path(__file__).parent / "policy" / "realistic.yaml").read_text()
    (made / "toolgate.yaml").write_text(text + MORE)
    trust.trust(made, trust.state_dir())
    return made


def known(root: Path) -> Config | None:
    return known_config.read(root, trust.state_dir())


def twice(root: Path) -> tuple[Config, Config]:
    """The configuration as it is read in full, and as it is known from then on."""
    full = opening.prepare(root).config
    again = opening.prepare(root).config
    assert isinstance(full, Config)
    assert isinstance(again, KnownConfig)
    return full, again


def test_a_known_configuration_says_what_the_models_say(root: Path) -> None:
    full, again = twice(root)
    brought = {key for each in built_in() for key in each.sections}
    for name in Config.model_fields:
        assert plain(getattr(again, name)) == plain(getattr(full, name)), name
    for key in brought:
        assert again.section(key) == full.section(key), key
        assert getattr(again, key) == full.section(key), key
    assert [again.says(each) for each in built_in()] == [full.says(each) for each in built_in()]
    assert again.http.model_copy(update={"reserved": 20}).reserved == 20
    assert not hasattr(again, "serverz")


def test_a_known_configuration_decides_and_counts_the_same(root: Path) -> None:
    full, again = (one.policy(True) for one in twice(root))
    assert again.fingerprint == full.fingerprint
    for persona in full.personas:
        assert again.rights(persona) == full.rights(persona)
        for tool in ("fs.write", "code.search", "exec.python", "web.fetch"):
            assert again.windows(persona, tool, ("project",)) == full.windows(persona, tool, ("project",))


def test_what_identifies_a_policy_is_what_its_models_dump(root: Path) -> None:
    policy = opening.prepare(root).config.policy_spec
    spoken = {"rules": {"__all__": {"examples"}}, "examples": True}
    dumped = policy.model_dump(mode="json", exclude_unset=True, exclude=spoken)
    assert plain(policy, {"examples"}, said=True) == dumped
    assert plain(policy) == policy.model_dump(mode="json")
    assert plain(unpacked(json.loads(json.dumps(packed(policy))))) == policy.model_dump(mode="json")


def test_a_gate_on_a_known_file_opens_without_the_models(root: Path) -> None:
    (root / "toolgate.yaml").write_text(
        "version: 1\npersonas: {ada: {phase: observe, allow: ['system.*']}}\n"
    )
    expected = opening.prepare(root).config.policy(True).fingerprint
    run = [sys.executable, "-c", OPEN, str(root)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {"fingerprint": expected, "heavy": []}


def test_only_the_code_and_the_features_that_checked_a_file_believe_what_they_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening.prepare(root)
    assert known(root) is not None
    monkeypatch.setattr(known_config, "everything", lambda more=(): built_in()[1:])
    assert known(root) is None
    monkeypatch.undo()
    monkeypatch.setattr(known_config, "_code", lambda: "of another day")
    assert known(root) is None


def test_other_bytes_and_odd_ones_are_read_in_full(root: Path) -> None:
    opening.prepare(root)
    (kept,) = (trust.state_dir() / "checked").iterdir()
    whole = kept.read_text()
    for odd in ("", "[]", "{}", whole.replace('"fields"', '"field"'), whole.replace('"said"', '"sad"')):
        kept.write_text(odd)
        assert known(root) is None
        assert isinstance(opening.prepare(root).config, Config)
    file = root / "toolgate.yaml"
    file.write_text(file.read_text().replace("expires_s: 60", "expires_s: soon"))
    with pytest.raises(ConfigError, match="expires_s"):
        opening.prepare(root)


def test_where_a_known_file_lies_is_looked_at_every_time(root: Path) -> None:
    opening.prepare(root)
    os.link(root / "toolgate.yaml", root / "second.txt")
    with pytest.raises(WritableConfig, match="several names"):
        opening.prepare(root)


async def test_a_known_policy_that_is_edited_is_read_in_full_and_in_force_at_once(root: Path) -> None:
    (root / "toolgate.yaml").write_text("version: 1\npersonas: {ada: {allow: ['system.*']}}\n")
    opening.prepare(root)
    async with toolgate.open(root) as gate:
        assert isinstance(gate.config, KnownConfig)
        assert (await gate.call("system.ping", persona="ada")).ok
        (root / "toolgate.yaml").write_text("version: 1\npersonas: {ada: {deny: ['system.*']}}\n")
        assert not (await gate.call("system.ping", persona="ada")).ok
        assert isinstance(gate.config, Config)


async def test_the_configuration_of_one_gate_opens_another(root: Path, tmp_path: Path) -> None:
    again = twice(root)[1]
    (tmp_path / "other").mkdir()
    async with toolgate.open(tmp_path / "other", again, "memory") as gate:
        assert gate.policy.fingerprint == configuration.load(root).policy(True).fingerprint
