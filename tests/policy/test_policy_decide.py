from __future__ import annotations

from typing import Any

import pytest
from policy_world import config, facts, one, policy

from toolgate.core.errors import ConfigError, NotAllowed
from toolgate.core.paths import MountPath

OBSERVE = {"phase": "observe"}
BUILD = {"phase": "contribute"}


def rule(decision: str, **more: Any) -> dict[str, Any]:
    return {"persona": "p", "tools": "*", "decision": decision, **more}


def test_a_persona_without_a_phase_meets_silence_which_denies() -> None:
    decision = one("code.read", {"path": "a"})
    assert (decision.verdict, decision.rule, decision.step) == ("deny", "silence", 6)


def test_steps_speak_in_order_and_the_first_decides() -> None:
    args = {"path": "src/a.py"}
    everything = {"phase": "observe", "allow": ["code.*"], "deny": ["code.read"]}
    rules = [rule("allow", name="a"), rule("ask", name="b"), rule("deny", name="c")]
    assert one("code.read", {"path": ".env"}, persona=everything, rules=rules).rule == "hard:blocked-name"
    assert one("code.read", args, persona=everything, rules=rules).rule == "deny:p"
    allowed = {"phase": "observe", "allow": ["code.*"]}
    assert one("code.read", args, persona=allowed, rules=rules).rule == "rule:c"
    assert one("code.read", args, persona=allowed, rules=rules[:2]).rule == "rule:b"
    assert one("code.read", args, persona=allowed, rules=rules[:1]).rule == "rule:a"
    assert one("code.read", args, persona=allowed).rule == "allow:p"
    assert one("code.read", args, persona=OBSERVE).rule == "phase:observe/reading"


def test_an_untrusted_project_denies_everything_but_the_free_tools() -> None:
    untrusted = policy(trusted=False, personas={"p": {"phase": "collaborate", "allow": ["*"]}})
    decision = untrusted.decide(facts("code.read", {"path": "a"}))
    assert (decision.verdict, decision.rule) == ("deny", "hard:untrusted")
    assert "toolgate trust" in decision.reason
    assert untrusted.decide(facts("tools.list")).rule == "free"


@pytest.mark.parametrize("paused", [{"": "lunch"}, {"p": "lunch"}, {"boss": "lunch"}])
def test_a_pause_of_everybody_the_persona_or_a_parent_stops_even_free_tools(paused: dict[str, str]) -> None:
    made = policy(personas={"boss": OBSERVE, "p": {"parent": "boss"}, "other": OBSERVE})
    for tool, args in (("tools.list", {}), ("code.read", {"path": "a"})):
        decision = made.decide(facts(tool, args, paused=paused))
        assert (decision.verdict, decision.rule) == ("deny", "hard:paused")
        assert "lunch" in decision.reason
    other = made.decide(facts("code.read", {"path": "a"}, persona="other", paused=paused))
    assert other.verdict == ("deny" if "" in paused else "allow")


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", "a/.ENV", "ci/id_rsa", "keys/server.pem", ".git/config", "sub/.GIT/HEAD", ".git./x",
        ".toolgate/db", ".Toolgate/x", "x/.ＧＩＴ/y", "a/.g\u200bit/z", "secrets/a.txt", "Credentials.json", "my_private_key.txt",
        ".e\ufe0fnv", "a/.g\u034fit/z", "id_\u3164rsa", "sec\U000e0101rets/a.txt",
    ],
)  # fmt: skip
def test_blocked_names_hold_in_every_spelling(path: str) -> None:
    decision = one(
        "code.read", {"path": path}, persona={"phase": "collaborate", "allow": ["*"]}, rules=[rule("allow")]
    )
    assert (decision.verdict, decision.rule, decision.step) == ("deny", "hard:blocked-name", 1)


@pytest.mark.parametrize(
    "path", [".gitignore", ".github/ci.yml", "src/environment.py", "docs/keys.md", "src/secretary.py"]
)
def test_names_that_only_look_like_blocked_ones_are_open(path: str) -> None:
    assert one("code.read", {"path": path}, persona=OBSERVE).verdict == "allow"


def test_one_blocked_path_among_many_blocks_the_call() -> None:
    decision = one("fs.patch", {"paths": ["src/a.py", ".env"]}, persona={"allow": ["fs.*"]})
    assert decision.rule == "hard:blocked-name"


def test_a_mount_narrows_the_list_of_blocked_names_by_name_or_by_path() -> None:
    mounts = {"project": {"path": ".", "unblock": [".env.example", "src/secrets/**"]}}
    for path in ("deep/.env.example", "src/secrets", "src/secrets/vault.py"):
        assert one("code.read", {"path": path}, persona=OBSERVE, mounts=mounts).verdict == "allow"
    for path in (".env", "lib/secrets/vault.py", "deep/.ENV.example", ".env.example/.env"):
        assert one("code.read", {"path": path}, persona=OBSERVE, mounts=mounts).rule == "hard:blocked-name"


def test_toolgates_own_files_cannot_be_unblocked() -> None:
    mounts = {"project": {"path": ".", "unblock": ["**", ".toolgate", "toolgate.yaml"]}}
    writer = {"allow": ["*"]}
    assert (
        one("code.read", {"path": ".toolgate/db"}, persona=writer, mounts=mounts).rule == "hard:blocked-name"
    )
    assert (
        one("fs.write", {"path": "Toolgate.YAML"}, persona=writer, mounts=mounts).rule == "hard:blocked-name"
    )
    assert one("code.read", {"path": "toolgate.yaml"}, persona=writer, mounts=mounts).verdict == "allow"
    move = {"source": "a", "target": "toolgate.yaml"}
    assert one("fs.move", move, persona=writer, mounts=mounts).rule == "hard:blocked-name"


@pytest.mark.parametrize(
    ("path", "name", "word"), [(".tx/config", ".tx", "dotfiles"), ("ci/.env.test", ".env.test", "unblock")]
)
def test_a_shut_name_says_what_the_owner_can_write_to_open_it(path: str, name: str, word: str) -> None:
    shut = one("code.read", {"path": path}, persona=OBSERVE)
    assert f"`{name}` to `{word}` of the mount project" in shut.fix
    mounts = {"project": {"path": ".", word: [name]}}
    assert one("code.read", {"path": path}, persona=OBSERVE, mounts=mounts).verdict == "allow"


@pytest.mark.parametrize("path", [".toolgate/db", "Toolgate.YAML"])
def test_what_nothing_opens_names_no_way(path: str) -> None:
    refused = one("fs.write", {"path": path}, persona={"allow": ["*"]})
    assert (refused.rule, refused.fix) == ("hard:blocked-name", "")


def test_unknown_mounts_and_mounts_of_others_are_refused() -> None:
    mounts = {"garden": {"path": "garden"}}
    assert "no mount 'attic'" in one("code.read", {"path": "attic:x"}, persona=OBSERVE, mounts=mounts).reason
    assert (
        one("md.patch_section", {"path": "garden:users/me/x"}, persona=OBSERVE, mounts=mounts).verdict
        == "allow"
    )
    outsider = {"phase": "observe", "mounts": ["project"]}
    assert one("code.read", {"path": "garden:x"}, persona=outsider, mounts=mounts).rule == "hard:mount"
    assert one("garden.search", persona=outsider, mounts=mounts).rule == "hard:mount"
    gardener = {"phase": "observe", "mounts": ["garden"]}
    assert (
        one("md.patch_section", {"path": "garden:users/me/x"}, persona=gardener, mounts=mounts).verdict
        == "allow"
    )
    assert one("garden.search", persona=gardener, mounts=mounts).verdict == "allow"
    assert one("code.read", {"path": "x"}, persona=gardener, mounts=mounts).rule == "hard:mount"


def test_writes_keep_to_the_writable_globs_and_other_mounts_are_read_only() -> None:
    mounts = {
        "project": {"path": ".", "writable": ["src/**"], "hidden": ["private/**"]},
        "shared": {"path": "../shared"},
    }
    writer = {"allow": ["*"], "mounts": ["project", "shared"]}
    assert one("fs.write", {"path": "src/a"}, persona=writer, mounts=mounts).verdict == "allow"
    for path in ("docs/a", "Src/a", "shared:a", "."):
        decision = one("fs.write", {"path": path}, persona=writer, mounts=mounts)
        assert (decision.verdict, decision.rule) == ("deny", "hard:mount"), path
    assert one("code.read", {"path": "shared:a"}, persona=writer, mounts=mounts).verdict == "allow"
    assert one("code.read", {"path": "Private/a"}, persona=writer, mounts=mounts).rule == "hard:hidden"


def test_a_deny_catches_other_spellings_of_a_path_and_an_allow_does_not() -> None:
    deny = [rule("deny", when={"path": "deploy/**"})]
    for path in ("deploy/x", "Deploy/x", "DEPLOY", "deploy./x", "ｄｅｐｌｏｙ/x"):
        assert one("code.read", {"path": path}, persona=OBSERVE, rules=deny).rule == "rule:rule-1", path
    assert one("code.read", {"path": "deployment/x"}, persona=OBSERVE, rules=deny).verdict == "allow"
    allow = [rule("allow", when={"path": "src/**"})]
    assert one("fs.write", {"path": "src/x"}, persona=OBSERVE, rules=allow).verdict == "allow"
    assert one("fs.write", {"path": "Src/x"}, persona=OBSERVE, rules=allow).verdict == "deny"


def test_any_path_suffices_for_a_deny_and_an_allow_needs_all_of_them() -> None:
    some, every = {"paths": ["src/a", "docs/b"]}, {"paths": ["src/a", "src/b"]}
    where = {"path": "src/**"}
    assert one("fs.patch", some, persona={"allow": ["*"]}, rules=[rule("deny", when=where)]).verdict == "deny"
    assert one("fs.patch", every, rules=[rule("allow", when=where)]).verdict == "allow"
    assert one("fs.patch", some, rules=[rule("allow", when=where)]).rule == "silence"
    assert one("fs.patch", {"paths": []}, rules=[rule("allow", when=where)]).rule == "silence"


def test_effects_follow_the_same_any_and_all() -> None:
    deny = [rule("deny", effects={"writes": ["internet"]})]
    assert one("git.push", {"branch": "b"}, persona={"allow": ["*"]}, rules=deny).verdict == "deny"
    assert one("git.commit", persona={"allow": ["*"]}, rules=deny).verdict == "allow"
    narrow = [rule("allow", effects={"writes": ["history"]})]
    assert one("git.commit", rules=narrow).verdict == "allow"
    assert one("git.push", {"branch": "b"}, rules=narrow).rule == "silence"
    assert one("system.ping", rules=narrow).rule == "silence"


def test_two_asks_need_a_channel_that_both_accept() -> None:
    asks = [rule("ask", channels=["terminal", "console"]), rule("ask", channels=["console"]), rule("ask")]
    assert one("git.commit", rules=asks).channels == ("console",)
    impossible = [rule("ask", channels=["terminal"]), rule("ask", channels=["console"])]
    decision = one("git.commit", rules=impossible)
    assert decision.verdict == "deny"
    assert "different channels" in decision.reason


def test_a_subagent_inherits_what_it_leaves_out_and_is_bounded_by_its_parent() -> None:
    made = policy(
        personas={
            "boss": {"phase": "contribute", "allow": ["git.commit"], "deny": ["fs.delete"]},
            "p": {"parent": "boss"},
            "greedy": {"parent": "p", "phase": "collaborate", "allow": ["*"]},
            "modest": {"parent": "boss", "phase": "observe"},
        }
    )
    assert made.decide(facts("git.commit", persona="p")).rule == "allow:p"
    assert made.decide(facts("fs.delete", {"path": "a"}, persona="greedy")).rule == "deny:boss"
    assert (
        made.decide(facts("git.push", {"branch": "b"}, persona="greedy")).rule == "phase:contribute/history"
    )
    assert made.decide(facts("fs.write", {"path": "a"}, persona="modest")).rule == "phase:observe/project"


def test_the_profile_manifest_asks_for_reads_and_loosens_nothing() -> None:
    made = policy(personas={"p": OBSERVE}, policy={"profile": "manifest"})
    assert made.decide(facts("fs.read", {"path": "a"})).rule == "profile:manifest"
    assert made.decide(facts("code.read", {"path": "a"})).verdict == "allow"
    assert made.decide(facts("fs.write", {"path": "a"})).verdict == "deny"


def test_an_unknown_persona_is_denied_and_the_known_ones_are_named() -> None:
    made = policy(personas={"reviewer": OBSERVE, "builder": BUILD})
    decision = made.decide(facts("code.read", {"path": "a"}, persona="nobody"))
    assert decision.verdict == "deny"
    assert "reviewer, builder" in decision.reason
    with pytest.raises(NotAllowed) as caught:
        made.persona("nobody")
    assert "reviewer, builder" in caught.value.fix


def test_rights_change_with_the_persona_or_its_parents_and_with_nothing_else() -> None:
    def rights(boss: dict[str, Any], rules: list[dict[str, Any]]) -> str:
        return policy(personas={"boss": boss, "p": {"parent": "boss"}}, policy={"rules": rules}).rights("p")

    usual = rights(OBSERVE, [])
    assert rights(OBSERVE, [rule("deny")]) == usual
    assert rights(BUILD, []) != usual
    assert rights({**OBSERVE, "deny": ["fs.*"]}, []) != usual


def test_the_fingerprint_covers_rules_trust_mounts_and_profile_but_not_examples() -> None:
    def print_of(trusted: bool = True, rules: list[dict[str, Any]] | None = None, **sections: Any) -> str:
        rules = rules or [rule("deny", name="a", when={"args": {"x": None}})]
        return policy(trusted, personas={"p": OBSERVE}, policy={"rules": rules}, **sections).fingerprint

    usual = print_of()
    example = {"call": {"tool": "code.read", "args": {"path": "a"}}, "expect": "deny"}
    assert print_of(rules=[rule("deny", name="a", when={"args": {"x": None}}, examples=[example])]) == usual
    others = [
        print_of(trusted=False),
        print_of(rules=[rule("ask", name="a", when={"args": {"x": None}})]),
        print_of(rules=[rule("deny", name="a", when={"args": {"x": {"exists": True}}})]),
        print_of(mounts={"project": {"path": ".", "unblock": [".env"]}}),
    ]
    assert len({usual, *others}) == 5


def test_a_policy_built_by_hand_is_checked_too() -> None:
    from toolgate.policy.model import PersonaSpec
    from toolgate.policy.policy import Policy

    with pytest.raises(ConfigError, match="circle"):
        Policy({"a": PersonaSpec(parent="b"), "b": PersonaSpec(parent="a")}, config().mounts)


def test_a_path_in_another_mount_needs_its_prefix_in_a_rule() -> None:
    mounts = {"garden": {"path": "garden"}}
    persona = {"phase": "observe", "mounts": ["project", "garden"], "user": "a"}

    def read(path: str, glob: str) -> str:
        return one(
            "code.read",
            {"path": path},
            persona=persona,
            mounts=mounts,
            rules=[rule("deny", when={"path": glob})],
        ).verdict

    assert MountPath.parse("garden:users/a").mount == "garden"
    assert read("garden:users/a", "users/**") == "allow"
    assert read("garden:users/a", "garden:users/**") == "deny"
    assert read("garden:users/a", "*:users/**") == "deny"
    assert read("users/a", "*:users/**") == "deny"
    assert read("users/a", "garden:users/**") == "allow"


def test_a_subagent_cannot_use_a_mount_that_its_parent_may_not_use() -> None:
    made = policy(
        mounts={"garden": {"path": "garden"}},
        personas={
            "boss": {"phase": "observe", "mounts": ["project"]},
            "p": {"parent": "boss", "mounts": ["project", "garden"]},
        },
    )
    decision = made.decide(facts("code.read", {"path": "garden:a"}))
    assert (decision.verdict, decision.rule) == ("deny", "hard:mount")
    assert made.explain(facts("code.read", {"path": "garden:a"})).decision == decision


def test_what_was_clear_for_one_call_is_not_taken_as_clear_for_another() -> None:
    made = policy(
        mounts={"garden": {"path": "garden"}},
        personas={"p": {"allow": ["*"]}, "q": {"allow": ["*"], "mounts": ["garden"]}},
    )
    for _ in range(2):
        assert made.decide(facts("code.read", {"path": "toolgate.yaml"})).verdict == "allow"
        assert made.decide(facts("fs.write", {"path": "toolgate.yaml"})).rule == "hard:blocked-name"
        assert made.decide(facts("code.read", {"path": "toolgate.yaml"}, persona="q")).rule == "hard:mount"
        assert made.decide(facts("fs.patch", {"paths": ["toolgate.yaml", "a"]})).rule == "hard:blocked-name"


def test_a_tool_that_only_some_calls_may_use_is_in_sight_and_others_are_not() -> None:
    some = rule("ask", tools=["fs.write"], when={"path": "docs/**"}, name="docs")
    tool = facts("fs.write", {"path": "docs/a.md"}).tool
    seen = policy(personas={"p": OBSERVE}, policy={"rules": [some]}).outlook("p", tool)
    assert (seen.verdict, seen.rule) == ("ask", "rule:docs")
    assert "some calls" in seen.reason
    never = rule("deny", effects={"writes": ["project"]}, name="never")
    assert (
        policy(personas={"p": OBSERVE}, policy={"rules": [some, never]}).outlook("p", tool).rule
        == "rule:never"
    )
    named = {"phase": "observe", "deny": ["fs.*"]}
    assert policy(personas={"p": named}, policy={"rules": [some]}).outlook("p", tool).rule == "deny:p"
    child = policy(personas={"boss": named, "p": {"parent": "boss"}}, policy={"rules": [some]})
    assert child.outlook("p", tool).verdict == "deny"
    assert policy(personas={"p": OBSERVE}).outlook("p", tool).verdict == "deny"
    assert policy(personas={"p": OBSERVE}).outlook("stranger", tool).verdict == "deny"
