"""Grants as they are offered: they cover what they say, for whatever names and arguments an agent chose."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.consent import grants
from toolgate.consent.grants import check_scope, fits
from toolgate.consent.works import Scope, covered
from toolgate.core.effects import Effects
from toolgate.core.errors import CallError, InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.core.tool import tool
from toolgate.faces.cli import approvals
from toolgate.faces.console import pages_inbox
from toolgate.faces.http.consent import question_as_data
from toolgate.features.programs.arguments import effects_of
from toolgate.kits.terminal import question as terminal
from toolgate.kits.words import grant_in_words

PROGRAM = {
    "code": "print(1)\n" * 50, "stdin": "", "timeout": 30.0, "timeout_ms": None, "network": ["api.example.com", "*.a.test"],
    "secrets": ["TOKEN"], "project": "none", "files": {"token": "x"}, "packages": None, "background": False,
}  # fmt: skip


REACH = effects_of(PROGRAM)


def question(args: dict[str, Any], name: str = "exec.python") -> Question:
    return Question(
        "q_1", "d", name, args, "ada", "", Effects(), "why", "rule:x", 0, 1, False, conversation="talk"
    )


@tool("fs.write", writes=["project"])
def write(path: MountPath, content: str = "") -> None:
    """Writes."""


@tool("fs.move", writes=["project"])
def move(path: MountPath, new_path: MountPath) -> None:
    """Moves."""


def paths_choice(asked: Question, paths: list[MountPath]) -> grants.GrantChoice:
    return next(each for each in grants.choices(asked, paths) if each.key == "paths")


def test_files_are_offered_one_by_one_and_a_directory_is_called_one() -> None:
    files = [MountPath(f"project:src/f{number}.py") for number in range(grants.MANY + 1)]
    nine = paths_choice(question({}, "fs.apply"), files[:9])
    assert len(nine.paths) == 9
    assert nine.label == "calls on these paths"
    many = paths_choice(question({}, "fs.apply"), files)
    assert many.paths == ("src/**",)
    assert many.label == "calls on everything in this directory"


def test_an_offer_for_the_paths_of_a_move_keeps_its_direction() -> None:
    asked = question({"path": "project:src/a.py", "new_path": "project:src/b.py"}, "fs.move")
    offer = paths_choice(asked, list(grants.paths_of(asked, move)))
    assert offer.args == {"path": {"equals": "project:src/a.py"}, "new_path": {"equals": "project:src/b.py"}}
    form = [(name, kept) for name, _, kept in pages_inbox.offer(asked, move).same]
    assert form == [("path", True), ("new_path", True)], "the console proposes it as well"
    written = question({"path": "project:src/a.py", "content": "x"}, "fs.write")
    assert paths_choice(written, list(grants.paths_of(written, write))).args == {}


def test_a_move_is_shown_with_its_direction_in_the_terminal_and_over_http_and_its_files_keep_it() -> None:
    preview = "rename from src/a.py\nrename to src/b.py\n--- a/src/a.py\n+++ b/src/b.py\n(content unchanged, 1 bytes)"
    asked = replace(question({"path": "project:src/a.py", "new_path": "project:src/b.py"}, "fs.move"), preview=preview)  # fmt: skip
    assert ("moves", '"src/a.py" -> "src/b.py"') in list(terminal._facts(asked))
    assert question_as_data(asked)["moves"] == [{"from": "src/a.py", "to": "src/b.py"}]
    globs, kept = approvals._paths(asked)
    assert sorted(globs) == ["src/a.py", "src/b.py"]
    assert kept == {"path": {"equals": "project:src/a.py"}, "new_path": {"equals": "project:src/b.py"}}


HOSTILE = st.text(
    st.one_of(
        st.sampled_from("*?[]{},!^-~#'\" \u2028\u0085\u3000\u202e\u0430a.\uff0a\uff0c"),
        st.characters(min_codepoint=32, exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=40,
)


def parsed(text: str) -> MountPath | None:
    try:
        path = MountPath.parse(text)
    except CallError:
        return None
    return None if path.relative == "." else path


@settings(max_examples=fewer(400, 80), deadline=None)
@given(HOSTILE, st.lists(HOSTILE, max_size=6), st.sampled_from(["", "docs/", "scratch:"]))
def test_a_grant_offered_for_a_file_matches_that_file_and_no_other(
    name: str, others: list[str], before: str
) -> None:
    path = parsed(before + name)
    if path is None:
        return
    asked = question({"path": str(path), "content": "x"}, "fs.write")
    form = pages_inbox.scope_of({"paths": pages_inbox.offer(asked, write).paths, "seconds": "60"}, asked)
    typed = approvals._scope(60, grants.globs([path]), None, 0, None)
    assert typed is not None
    tried = [
        before + name[:-1],
        before + name + "x",
        f"{before}{name}/x",
        "docs/x",
        *name.split(","),
        *others,
    ]
    tried += [before + name.replace(char, "q") for char in set(name)]
    for scope in (form, typed):
        check_scope(scope.args, scope.paths)
        body = covered(scope, asked.args, Effects())
        assert fits(body, "", (path,), asked.args)
        for other in filter(None, map(parsed, tried)):
            assert fits(body, "", (other,), asked.args) is (other == path), (scope.paths, other)


@pytest.mark.parametrize(
    "name",
    ["docs/x,**", "a*", "[a]", "{a,b}", "!a", "a b", " a", "**", "]", "a" * 255, "/".join(["*" * 250] * 12)],
)
def test_no_name_of_a_file_makes_a_grant_for_more_than_it(name: str) -> None:
    path = MountPath(f"project:{name}")
    asked = question({"path": str(path), "content": ""}, "fs.write")
    scope = pages_inbox.scope_of({"paths": pages_inbox.offer(asked, write).paths}, asked)
    assert len(scope.paths) == 1
    assert fits(covered(scope, {}, Effects()), "", (path,), {})
    for other in ("docs/x", "docs/y", "anything", "a", "aa", "b"):
        assert fits(covered(scope, {}, Effects()), "", (MountPath(f"project:{other}"),), {}) is (
            other == name
        )


def words(scope: Scope, args: dict[str, Any] | None = None) -> str:
    return grant_in_words("ada", "exec.python", covered(scope, PROGRAM if args is None else args, REACH), 0)


@pytest.mark.parametrize(
    "scope",
    [
        Scope(),
        Scope(conversation="talk"),
        Scope(uses=3),
        Scope(seconds=5),
        Scope(conversation="talk", uses=1),
    ],
)
def test_a_grant_without_limits_on_arguments_says_what_that_includes(scope: Scope) -> None:
    said = words(scope)
    assert "with any arguments (any code, any files beside it, any input" in said
    assert "reaching at most host api.example.com, host *.a.test, secret TOKEN" in said


def test_a_grant_says_which_arguments_are_limited_and_which_are_not() -> None:
    said = words(Scope(grants.same(question(PROGRAM), ["code", "network", "secrets", "packages"])))
    assert "where code is exactly the one with the SHA-256 " in said
    assert 'network reaches at most "api.example.com" or "*.a.test"' in said
    assert 'secrets has at most "TOKEN"' in said
    assert "packages is left out" in said
    assert "with any other arguments (any files beside it, any input" in said
    assert "any code" not in said
    whole = words(
        Scope(grants.same(question(PROGRAM), [one.name for one in grants.limits(question(PROGRAM))]))
    )
    assert "any other arguments" not in whole
    assert "with any arguments" in grant_in_words("ada", "x.y", {"only_conversation": "talk"}, 0)


CHANGED: list[dict[str, Any]] = [
    {"code": "print(2)"}, {"stdin": "x"}, {"network": ["evil.test"]}, {"network": ["api.example.com", "b.test"]}, {"network": ["*.test"]},
    {"network": ["api.example.com:8443"]}, {"network": {"hosts": ["evil.test"], "methods": ["GET"]}}, {"secrets": ["OTHER"]},
    {"secrets": ["TOKEN", "OTHER"]}, {"project": "read"}, {"files": {"token": "y"}}, {"files": None}, {"packages": ["x"]}, {"background": True},
]  # fmt: skip


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_the_same_program_again_is_covered_and_another_is_not(changed: dict[str, Any]) -> None:
    asked = question(PROGRAM)
    scope = Scope(grants.same(asked, [one.name for one in grants.limits(asked)]))
    check_scope(scope.args, scope.paths)
    body = covered(scope, PROGRAM, REACH)
    assert fits(body, "", (), PROGRAM)
    assert fits(
        body, "", (), PROGRAM | {"timeout": 5.0, "network": {"hosts": ["x.a.test"], "methods": ["GET"]}}
    )
    assert not fits(body, "", (), PROGRAM | changed)


def test_a_command_is_kept_word_by_word() -> None:
    asked = question({"argv": ["ls", "-l", "a,b"], "script": ""}, "exec.shell")
    body = covered(Scope(grants.same(asked, ["argv"])), asked.args, REACH)
    assert fits(body, "", (), {"argv": ["ls", "-l", "a,b"]})
    for other in (["ls", "-l"], ["-l", "ls", "a,b"], ["ls", "-l", "a", "b"], ["ls -l a,b"], "ls", None):
        assert not fits(body, "", (), {"argv": other})


def test_what_the_question_does_not_have_cannot_be_kept() -> None:
    with pytest.raises(InvalidArgs, match="no argument 'colour'"):
        pages_inbox.scope_of({"same.colour": "1"}, question(PROGRAM))


def test_a_form_keeps_the_arguments_that_were_ticked() -> None:
    asked = question(PROGRAM)
    proposed = pages_inbox.offer(asked, None)
    assert all(kept for *_, kept in proposed.same)
    assert {name for name, *_ in proposed.same} == set(PROGRAM) - {"timeout", "timeout_ms"}
    scope = pages_inbox.scope_of({"same.code": "1", "same.network": "1"}, asked)
    assert set(scope.args) == {"code", "network"}


@pytest.mark.parametrize("network", [
    ["api.example.com"],
    {"hosts": ["api.example.com"]},
    {"hosts": ["api.example.com"], "methods": []},
    {"hosts": ["api.example.com"], "methods": ["GET", "POST"]},
    {"hosts": ["api.example.com", "b.example.com"], "methods": ["GET"]},
])  # fmt: skip
def test_a_grant_for_some_methods_is_none_for_others(network: Any) -> None:
    asked = question(PROGRAM | {"network": {"hosts": ["api.example.com"], "methods": ["GET"]}})
    kept = grants.same(asked, ["network"])
    body = covered(Scope(kept), asked.args, REACH)
    assert fits(body, "", (), asked.args)
    assert not fits(body, "", (), PROGRAM | {"network": network})
    open_to_all = question(PROGRAM | {"network": {"hosts": ["api.example.com"], "methods": []}})
    assert grants.same(open_to_all, ["network"]) == {"network": {"host": ["api.example.com"]}}


@pytest.mark.parametrize(("asked", "other"), [
    ("ls", ["ls"]), ("ls", ["ls", "ls"]), ("ls", [["ls"]]), ("ls", {"x": "ls"}), (1, [1, 1]), (1, "1"), (1, True), (True, 1),
    (["x"], '["x"]'), ({"a": 1}, '{"a":1}'), ('{"a":1}' + " " * 200, {"a": 1}), (json.dumps(["y" * 200]), ["y" * 200]),
    (["x", "y"], ["y", "x"]), (["x"], ["x", "x"]), ([], None), (None, ""), ("", None), ("a", "A"), ("a", "a "),
])  # fmt: skip
def test_an_argument_that_is_kept_is_no_other_value(asked: Any, other: Any) -> None:
    kept = question({"value": asked})
    body = covered(Scope(grants.same(kept, ["value"])), kept.args, Effects())
    assert fits(body, "", (), {"value": asked})
    assert not fits(body, "", (), {"value": other})
