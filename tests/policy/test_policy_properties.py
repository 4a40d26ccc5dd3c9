"""What holds for every policy: the promises of the design, tried on many of them."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from policy_world import facts, policy

from sampling import fewer
from toolgate.core.ports import Facts
from toolgate.policy.globs import expand, fold
from toolgate.policy.hard import BLOCKED, TELLING, _blocked, is_blocked
from toolgate.policy.phases import PHASES

NAMES = ["a", "b", "c"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("code.read", {"path": "src/a.py"}),
    ("code.read", {"path": "garden:notes.md"}),
    ("fs.read", {"path": "deploy/x"}),
    ("fs.write", {"path": "Deploy/x"}),
    ("fs.patch", {"paths": ["src/a.py", "docs/b.md"]}),
    ("fs.delete", {"path": ".env"}),
    ("exec.python", {"code": "1", "network": True}),
    ("git.push", {"branch": "main", "force": True}),
    ("http.get", {"url": "https://example.com"}),
    ("github.create_issue", {}),
    ("tools.list", {}),
]
tool_globs = st.lists(
    st.sampled_from(["*", "fs.*", "fs.read", "code.*", "git.push", "exec.*", "github.*"]),
    min_size=1,
    max_size=2,
)
path_globs = st.sampled_from(["**", "src/**", "deploy/**", "garden:**", "*:**", "**/*.py"])
whens = st.one_of(
    st.none(),
    st.fixed_dictionaries({"path": path_globs}),
    st.fixed_dictionaries({"mount": st.sampled_from(["project", "garden"])}),
    st.fixed_dictionaries(
        {"args": st.sampled_from([{"force": True}, {"branch": {"not": "x"}}, {"url": {"glob": "http*"}}])}
    ),
)
effects = st.sampled_from(
    [None, {"writes": ["project"]}, {"reads": ["internet", "project"]}, {"writes": ["history", "internet"]}]
)
channels = st.sampled_from([[], ["terminal"], ["console"], ["terminal", "console"]])


@st.composite
def rule(draw: st.DrawFn, decision: str | None = None) -> dict[str, Any]:
    said = decision or draw(st.sampled_from(["allow", "ask", "deny"]))
    found: dict[str, Any] = {
        "persona": draw(st.sampled_from(["*", *NAMES])),
        "tools": draw(tool_globs),
        "decision": said,
        "when": draw(whens),
        "effects": draw(effects),
        "channels": draw(channels) if said == "ask" else [],
    }
    return {key: value for key, value in found.items() if value}


def _persona(parent: str | None) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"parent": st.just(parent)} if parent else {},
        optional={
            "phase": st.sampled_from(PHASES),
            "allow": tool_globs,
            "deny": tool_globs,
            "mounts": st.sampled_from([["project"], ["garden"], ["project", "garden"]]),
        },
    )


personas = st.fixed_dictionaries({"a": _persona(None), "b": _persona("a"), "c": _persona("b")})
profiles = st.sampled_from(["default", "manifest"])
paused = st.sampled_from([{}, {}, {}, {"": "x"}, {"a": "x"}, {"b": "x"}])
calls = st.builds(
    lambda call, who, stopped: facts(call[0], call[1], persona=who, paused=stopped),
    st.sampled_from(CALLS), st.sampled_from(NAMES), paused,
)  # fmt: skip
MOUNTS = {"garden": {"path": "garden", "writable": ["notes/**"]}}


def made(
    people: dict[str, Any], rules: list[dict[str, Any]], profile: str = "default", trusted: bool = True
) -> Any:
    return policy(trusted, personas=people, mounts=MOUNTS, policy={"rules": rules, "profile": profile})


def as_persona(call: Facts, name: str) -> Facts:
    return Facts(name, call.tool, call.args, call.effects, call.paths, call.paused)


@settings(max_examples=fewer(250, 50), deadline=None)
@given(personas, st.lists(rule(), max_size=5), calls, profiles, st.booleans())
def test_a_subagent_never_gets_more_than_its_parent(
    people: dict[str, Any], rules: list[dict[str, Any]], call: Facts, profile: str, trusted: bool
) -> None:
    decided = made(people, rules, profile, trusted)
    strictness = [decided.decide(as_persona(call, name)).verdict.strictness for name in ("a", "b", "c")]
    assert strictness == sorted(strictness)


@settings(max_examples=fewer(250, 50), deadline=None)
@given(personas, st.lists(rule(), max_size=5), rule("deny"), st.integers(0, 5), calls, profiles)
def test_adding_a_deny_rule_never_loosens_a_decision(
    people: dict[str, Any],
    rules: list[dict[str, Any]],
    deny: dict[str, Any],
    at: int,
    call: Facts,
    profile: str,
) -> None:
    before = made(people, rules, profile).decide(call)
    after = made(people, [*rules[:at], deny, *rules[at:]], profile).decide(call)
    assert after.verdict.strictness >= before.verdict.strictness


@settings(max_examples=fewer(200, 40), deadline=None)
@given(st.lists(rule(), max_size=5), calls)
def test_silence_means_deny(rules: list[dict[str, Any]], call: Facts) -> None:
    """Nothing but a line that says so allows or asks: with no phase and no `allow`, only rules can."""
    assume(not call.tool.free)
    decision = made({"a": {}, "b": {"parent": "a"}, "c": {"parent": "b"}}, rules).decide(call)
    said = {word["decision"] for word in rules}
    assert decision.verdict == "deny" or (decision.rule.startswith("rule:") and decision.verdict in said)
    assert made({"a": {}, "b": {}, "c": {}}, []).decide(call).verdict == "deny"


@settings(max_examples=fewer(300, 60), deadline=None)
@given(personas, st.lists(rule(), max_size=5), calls, profiles, st.booleans())
def test_explain_arrives_at_the_decision_by_walking_every_line(
    people: dict[str, Any], rules: list[dict[str, Any]], call: Facts, profile: str, trusted: bool
) -> None:
    decided = made(people, rules, profile, trusted)
    explanation = decided.explain(call)
    assert explanation.decision == decided.decide(call)
    assert any(line.decided for line in explanation.lines)
    deciding = {line.step for line in explanation.lines if line.decided}
    assert explanation.decision.step in deciding
    rules_seen = [line for line in explanation.lines if line.text.startswith("rule ")]
    assert len(rules_seen) == len(rules) * len(decided.line(call.persona))


_LETTERS = st.text("aA.eEnvk_-ſＥ\u200b\u0301 ", max_size=4)
_PIECES = st.sampled_from([piece for glob in BLOCKED for piece in re.findall(r"[A-Za-z0-9.-]+", glob)])


@given(
    st.lists(_PIECES | _PIECES.map(str.upper) | _LETTERS | st.sampled_from("?*._- "), max_size=6).map("".join)
)
def test_a_name_that_is_not_looked_at_closer_is_in_no_spelling_on_the_list(name: str) -> None:
    exact, loose = _blocked()
    wanted = exact.fullmatch(name) is not None or loose.fullmatch(fold(name)) is not None
    assert is_blocked(name) == wanted


def test_each_blocked_name_has_a_telling_part() -> None:
    for glob in BLOCKED:
        for one in expand(glob):
            literal = re.split(r"[*?]", one)
            assert any(word in part for part in literal for word in TELLING), one
