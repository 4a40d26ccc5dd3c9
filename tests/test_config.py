from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.errors import ConfigError
from toolgate.policy.policy import Policy
from toolgate.project.config import DEFAULT_YAML, Config, load, loads, problems, schema, state_dir
from toolgate.project.config_errors import every

DESIGN_EXAMPLE = """
version: 1
default_persona: reviewer
mounts:   {project: {path: .}, garden: {path: garden}}
personas:
  reviewer: {phase: observe}
  builder:  {phase: contribute, allow: [exec.python], deny: [fs.delete], limits: {per_minute: 20, per_hour: 500, burst: 3}}
limits:   {global: {per_minute: 100, per_hour: 2000}, persona: {per_minute: 10, per_hour: 200, burst: 3}, tool: {code.search: {per_minute: 3}}}
consent:  {expires_s: 900}
policy:
  rules:
    - {persona: builder, tools: [fs.write, fs.patch], when: {path: "src/**"}, decision: ask, reason: source changes are reviewed}
    - {tools: ["fs.*"], when: {path: "deploy/**"}, decision: deny, reason: deployment files are edited by people}
"""


SEVERAL = """\
version: 1
default_persona: builder
personas:
  builder: {alow: [x], limts: {}}
  child: {parent: bilder}
cache: {bytes: lots}
servers:
  git: {command: x}
  two: {command: x, url: y}
policy:
  rules:
    - {persona: bulder, tools: ["fs.*"], decision: deny}
    - {tools: ["fs.*"], decision: maybe}
"""


def wrong(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loads(text, "toolgate.yaml")
    error = caught.value
    assert error.fix
    assert str(error).startswith(f"toolgate.yaml:{error.line}: ")
    return error


def tried(make: Callable[[], Any]) -> Any:
    """What it makes, or its ConfigError; any other exception fails the test."""
    try:
        return make()
    except ConfigError as error:
        return error


def test_the_example_of_the_design_loads() -> None:
    config = loads(DESIGN_EXAMPLE)
    assert config.personas["builder"].phase == "contribute"
    assert config.consent.expires_s == 900
    assert [rule.reason for rule in config.policy_spec.rules] == [
        "source changes are reviewed",
        "deployment files are edited by people",
    ]
    assert list(config.mounts) == ["project", "scratch", "garden"]


def test_what_init_writes_loads_and_is_roomy() -> None:
    config = loads(DEFAULT_YAML)
    assert {name: spec.phase for name, spec in config.personas.items()} == {
        "reviewer": "observe",
        "builder": "contribute",
    }
    assert config.limits.profile == "roomy"
    assert len(config.policy_spec.rules) == 2
    assert config.policy(trusted=True).persona("reviewer").mounts == {"project", "scratch", "garden"}


def test_absent_sections_have_their_documented_values() -> None:
    config = loads("version: 1")
    assert config.limits.profile == "roomy"
    assert (config.consent.expires_s, config.consent.max_open, config.consent.unattended) == (900, 25, False)
    assert config.personas == {}
    assert config.budget.tokens == 25_000
    assert config.plugins == ()
    assert config.ledger.database is None


@pytest.mark.parametrize(
    ("text", "line", "message", "fix"),
    [
        ("", 1, "not a mapping", "version: 1"),
        ("- a", 1, "not a mapping", "version: 1"),
        ("mounts: {}", 1, "`version` is missing", "version: 1"),
        ("version: 2", 1, "newer than this toolgate", "upgrade"),
        ("version: '1'", 1, "no version", "version: 1"),
        ("version: 1\n\npersona: {}", 3, "unknown key `persona`", "`personas`"),
        ("version: 1\npersonas:\n  a:\n    phase: observe\n    alow: []", 5, "unknown key `alow`", "`allow`"),
        ("version: 1\npersonas:\n  a: {phase: dance}", 3, "'dance' is not a phase", "observe (2A)"),
        ("version: 1\npersonas:\n  a:\n    limits: {per_minute: fast}", 4, "valid integer", "whole number"),
        ("version: 1\npersonas:\n  a:\n    limits: {per_minute: 0}", 4, "greater than or equal to 1", "correct"),
        ("version: 1\npersonas: [a]", 2, "valid dictionary", "mapping"),
        ("version: 1\npersonas:\n  a: {}\n  a: {}", 4, "`a` is there twice, first on line 3", "remove one"),
        ("version: 1\npersonas:\n  a: {}\n  'b c': {}", 4, "not a persona's name", "letters"),
        ("version: 1\npersonas:\n  a: {user: ann}\n  b:\n    parent: a\n    user: bob", 6, "names the user `bob`", "leave it out"),
        ("version: 1\npersonas:\n  ann: {}\n  b:\n    parent: anne", 5, "unknown parent `anne`", "`ann`"),
        ("version: 1\npersonas:\n  a: {parent: b}\n  b: {parent: a}", 3, "circle: a → b → a", "cut"),
        ("version: 1\npersonas:\n  a:\n    mounts:\n      - project\n      - gardn\nmounts: {garden: {path: g}}", 6, "unknown mount `gardn`", "`garden`"),
        ("version: 1\ndefault_persona: x", 2, "no persona `x`", "none"),
        ("version: 1\npersonas:\n  a:\n    allow:\n      - fs.*\n      - FS.*", 6, "can match no tool", "lower case"),
        ("version: 1\npolicy:\n  rules:\n    - decision: deny\n      when:\n        path:\n          - a/**\n          - /etc", 8, "absolute", "relative"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: deny, name: x}\n    - {decision: ask, name: x}", 5, "two rules are called `x`", "rename"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: maybe}", 4, "'allow', 'ask' or 'deny'", "words"),
        ("version: 1\npolicy:\n  rules:\n    - {reason: x}", 4, "decision: Field required", "add it"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: allow, tools: '*'}", 4, "must say `persona`", "add `persona`"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: deny, persona: x}", 4, "unknown persona `x`", "none"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: deny, channels: [tty]}", 4, "`channels` has no meaning", "remove"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: deny, when: {}}", 4, "`when` says nothing", "path"),
        ("version: 1\npolicy:\n  rules:\n    - {decision: deny, when: {path: 'gardn:x'}}", 4, "unknown mount `gardn`", "mounts are"),
        ("version: 1\npolicy:\n  rules:\n    - decision: deny\n      effects: {writes: [moon]}", 5, "'moon' is not an effect", "project"),
        ("version: 1\npolicy:\n  examples:\n    - {call: {tool: fs.read}, expect: deny}", 4, "whose call", "persona"),
        ("version: 1\nmounts:\n  own: {path: ./.Toolgate}", 3, "toolgate's own files", "another path"),
        ("version: 1\nmounts:\n  project: {path: ., unblock: ['garden:x']}", 3, "inside a mount", "colon"),
        ("version: 1\nconsent: {unattended: 'no'}", 2, "valid boolean", "correct"),
        ("version: 1\nplugins: ['rm -rf']", 2, "pattern", "correct"),
        ("version: 1\na: &x 1\nb: *x", 2, "anchors and aliases", "write the value out"),
        ("version: 1\na: *x", 2, "anchors and aliases", "quote"),
        ("version: 1\na: {<<: {b: 1}}", 2, "merging", "write the keys out"),
        ("version: 1\na: !!python/object:os.system x", 2, "tag", "remove"),
        ("version: 1\na: !!int x", 2, "'x' is not a int", "quote"),
        ("version: 1\n? [a]\n: b", 2, "key is not a plain text", "quote"),
        ("version: 1\na: [b", 2, "broken YAML", "brackets"),
        ("version: 1\na: b: c", 2, "broken YAML", "quotes"),
        ("version: 1\n\x07", 2, "control character", "remove"),
        ("version: 1\n---\nversion: 1", 2, "broken YAML", "check"),
        ("version: 1\na: " + "[" * 40, 2, "nested deeper", "flatten"),
    ],
)  # fmt: skip
def test_every_mistake_is_told_with_its_line_and_a_fix(text: str, line: int, message: str, fix: str) -> None:
    error = wrong(text)
    assert message in error.message
    assert fix in error.fix
    assert error.line == line


def test_mistakes_that_do_not_follow_from_each_other_are_found_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text(SEVERAL)
    found = problems(tmp_path)
    assert [(error.line, error.message.partition(": ")[2]) for error in found] == [
        (4, "personas.builder.alow: unknown key `alow`"),
        (4, "personas.builder.limts: unknown key `limts`"),
        (5, "personas.child.parent: child has the unknown parent `bilder`"),
        (6, "cache.bytes: Input should be a valid integer"),
        (8, "servers.git: `git` is a family of toolgate's own tools"),
        (9, "servers.two: a server names both `command` and `url`"),
        (12, "policy.rules.0.persona: the rule rule-1 is about the unknown persona `bulder`"),
        (13, "policy.rules.1.decision: Input should be 'allow', 'ask' or 'deny'"),
    ]
    assert all(error.fix and error.file == str(tmp_path / "toolgate.yaml") for error in found)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version: 1\npersonae: {a: {}}\ndefault_persona: a\n", 2),
        ("version: 1\npersonas: 3\ndefault_persona: a\n", 2),
        ("version: 1\npersonas:\n  a: {phase: x}\ndefault_persona: a\n", 3),
        ("version: 2\npersonae: 3\n", 1),
    ],
)
def test_what_follows_from_a_mistake_is_not_told_as_another(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "toolgate.yaml").write_text(text)
    assert [error.line for error in problems(tmp_path)] == [line]


def test_a_file_is_named_with_what_is_wrong_about_it(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.yaml"
    with pytest.raises(ConfigError, match="no such file") as caught:
        load(tmp_path)
    assert "toolgate init" in caught.value.fix
    file.write_bytes(b"version: 1\n\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        load(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(file), 2)
    file.write_bytes(b"version: 1\n#" + b"x" * (1 << 20))
    with pytest.raises(ConfigError, match="larger than"):
        load(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


def test_a_symbolic_link_to_a_file_elsewhere_is_read(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("version: 1\ndefault_persona: ''\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "toolgate.yaml").symlink_to("../shared.yaml")
    assert load(root) == loads("version: 1")


@settings(max_examples=fewer(300, 60), deadline=None)
@given(st.one_of(st.text(max_size=200), st.text("versionpalc: 1\n-[]{}&*!?|>'\"%@`#,0x.e_<~", max_size=120)))
def test_any_text_gives_a_config_or_a_config_error(text: str) -> None:
    for whole in (text, f"version: 1\n{text}", f"version: 1\npolicy:\n  rules:\n    - {text}"):
        found = tried(partial(loads, whole))
        assert isinstance(found, Config) or found.fix


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [*Config.model_json_schema(by_alias=True)["properties"], "other"]


@settings(max_examples=fewer(200, 40), deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=3))
def test_any_data_gives_a_config_or_a_config_error(data: dict[str, Any]) -> None:
    found = tried(lambda: Config.from_dict({**data, "version": 1}).policy(trusted=True))
    assert isinstance(found, Policy) or (found.fix and found.line == 0)


@settings(max_examples=fewer(200, 40), deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
def test_all_that_is_wrong_begins_with_what_is_told_alone(data: dict[str, Any]) -> None:
    given = {**data, "version": 1}
    first = tried(lambda: Config.from_dict(given))
    told = [flaw.message for flaw in every(Config.model_validate, given)]
    assert told[:1] == ([] if isinstance(first, Config) else [first.message])


@pytest.mark.parametrize(
    "persona",
    [
        pytest.param("  p{n}: {{parent: q{n}}}\n", id="parents that are not there"),
        pytest.param("  p{n}: {{parent: p{after}}}\n", id="a circle of all"),
        pytest.param("  p{n}: {{phaze: 1}}\n", id="keys that are unknown"),
    ],
)
def test_a_file_with_thousands_of_flaws_is_told_of_the_first_fifty_and_takes_no_square_of_the_time(
    tmp_path: Path, persona: str
) -> None:
    most = 4000
    text = "".join(persona.format(n=n, after=(n + 1) % most) for n in range(most))
    (tmp_path / "toolgate.yaml").write_text(f"version: 1\npersonas:\n{text}")
    begun = time.process_time()
    found = problems(tmp_path)
    assert time.process_time() - begun < 10, "half a second; some would take minutes"
    assert len(found) == 50
    assert max(len(error.message) + len(error.fix) for error in found) < 1000


def test_fifty_generations_are_a_policy_and_more_are_not() -> None:
    def family(size: int) -> dict[str, Any]:
        return {f"p{n}": {"parent": f"p{n + 1}"} for n in range(size - 1)} | {f"p{size - 1}": {}}

    assert Config.from_dict({"version": 1, "personas": family(50)})
    with pytest.raises(ConfigError, match="p0 has 50 parents or more"):
        Config.from_dict({"version": 1, "personas": family(51)})


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nledger: {postgresql://me:hush@host/db}\n",
        "version: 1\npostgresql://me:hush@host/db: 1\npostgresql://me:hush@host/db: 1\n",
        "version: !!int postgresql://me:hush@host/db\n",
        "version: 1\n? " + 500 * "hush" + "\n: 1\n",
    ],
)
def test_a_key_is_quoted_in_short_and_without_what_may_be_a_password(text: str) -> None:
    found = tried(lambda: loads(text))
    assert isinstance(found, ConfigError)
    assert "me:hush" not in found.message
    assert len(found.message) < 300


@pytest.mark.parametrize("text", ['"\\ud800": 1', 'personas: {"\\udfff": {}}', 'default_persona: "\\ud800"'])
def test_half_a_character_is_told_like_any_flaw(tmp_path: Path, text: str) -> None:
    (tmp_path / "toolgate.yaml").write_text(f"version: 1\n{text}\n")
    (found,) = problems(tmp_path)
    assert (found.line, "half a character" in found.message) == (2, True)


def test_data_of_a_library_user_is_checked_like_a_file() -> None:
    with pytest.raises(ConfigError, match=r"^personas\.a\.phase: 'x' is not a phase") as caught:
        Config.from_dict({"version": 1, "personas": {"a": {"phase": "x"}}})
    assert caught.value.file == ""
    assert Config.from_dict(yaml.safe_load(DESIGN_EXAMPLE)) == loads(DESIGN_EXAMPLE)


def test_a_number_beyond_what_json_can_say_is_still_a_policy() -> None:
    rule = {"decision": "deny", "when": {"args": {"x": 2**70}}}
    assert (
        Config.from_dict({"version": 1, "policy": {"rules": [rule]}})
        .policy(True)
        .fingerprint.startswith("sha256:")
    )


def test_the_state_directory_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TOOLGATE_STATE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_dir() == tmp_path / ".local/state/toolgate"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert state_dir() == tmp_path / ".local/state/toolgate"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_dir() == Path("/var/state/toolgate")
    monkeypatch.setenv("TOOLGATE_STATE_DIR", "/srv/gate")
    assert state_dir() == Path("/srv/gate")
    monkeypatch.setenv("TOOLGATE_STATE_DIR", "gate")
    with pytest.raises(ConfigError, match="not an absolute path"):
        state_dir()


def test_the_schema_for_editors_knows_every_key_by_its_spelling_in_the_file() -> None:
    found = schema()
    json.dumps(found)
    assert set(yaml.safe_load(DESIGN_EXAMPLE)) <= set(found["properties"])
    limits = found["$defs"]["LimitsSpec"]["properties"]
    assert {"global", "persona", "tool", "writes", "profile", "journal_bytes"} == set(limits)
    condition = found["$defs"]["ConditionSpec"]["properties"]
    assert {"in", "not", "equals"} <= set(condition)
    assert not re.search("one_of|policy_spec|everybody", json.dumps(list(found["properties"]) + list(limits)))
