from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.errors import ConfigError
from toolgate.core.paths import MountPath
from toolgate.policy.globs import Net, path_glob, text_glob, tool_glob
from toolgate.policy.linear import Linear


def naive(glob: str, path: str) -> bool:
    """The dialect by its definition, without braces: segments against segments, characters against characters."""

    @cache
    def segments(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
        if not left:
            return not right
        if left[0] == "**":
            return segments(left[1:], right) or (bool(right) and segments(left, right[1:]))
        return bool(right) and chars(left[0], right[0]) and segments(left[1:], right[1:])

    @cache
    def chars(left: str, right: str) -> bool:
        if not left:
            return not right
        if left[0] == "*":
            return chars(left[1:], right) or (bool(right) and chars(left, right[1:]))
        if not right:
            return False
        if left[0] == "[":
            end = left.index("]")
            body = left[1:end]
            inside = right[0] in body.lstrip("!")
            return inside is not body.startswith("!") and chars(left[end + 1 :], right[1:])
        return left[0] in ("?", right[0]) and chars(left[1:], right[1:])

    return segments(tuple(glob.split("/")), tuple(path.split("/")) if path != "." else ())


def tried(make: Callable[[str], Any], text: str) -> Any:
    try:
        return make(text)
    except ConfigError as error:
        return error


piece = st.sampled_from(["a", "b", "ab", "*", "?", "[ab]", "[!a]", ".py", "*a*b", "a*a*a"])
segment = st.one_of(st.just("**"), st.lists(piece, min_size=1, max_size=4).map("".join)).filter(
    lambda text: text == "**" or ("**" not in text and text not in (".", ".."))
)
globs = st.lists(segment, min_size=1, max_size=5).map("/".join)
names = st.text("ab.py", min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))
paths = st.one_of(st.just("."), st.lists(names, min_size=1, max_size=5).map("/".join))


@settings(max_examples=fewer(400, 80))
@given(globs, paths)
def test_a_path_glob_matches_what_its_definition_says(glob: str, path: str) -> None:
    assert path_glob(glob).matches(MountPath(f"project:{path}")) is naive(glob, path)


@given(globs, globs, paths)
def test_braces_mean_one_or_the_other(left: str, right: str, path: str) -> None:
    if "[" in left + right:
        return
    either = path_glob(f"{{{left},{right}}}").matches(MountPath(f"project:{path}"))
    assert either is (naive(left, path) or naive(right, path))


@given(globs, paths)
def test_denying_catches_at_least_what_allowing_matches_in_any_case(glob: str, path: str) -> None:
    compiled = path_glob(glob)
    if naive(glob, path):
        assert compiled.catches(MountPath(f"project:{path}"))
        if "!" not in glob:
            assert compiled.catches(MountPath(f"project:{path.upper()}"))


mounted = st.tuples(st.sampled_from(["", "project:", "garden:", "*:"]), globs).map("".join)


@settings(max_examples=fewer(400, 80))
@given(st.lists(mounted, min_size=1, max_size=4), st.sampled_from(["project", "garden", "scratch"]), paths)
def test_globs_together_catch_what_any_of_them_catches(texts: list[str], mount: str, path: str) -> None:
    for spelled in (path, path.upper()):
        wanted = MountPath(f"{mount}:{spelled}")
        assert Net(texts).catches(wanted) is any(path_glob(text).catches(wanted) for text in texts)


@settings(max_examples=fewer(300, 60), deadline=2000)
@given(st.text(max_size=60), st.text(max_size=300))
def test_any_text_compiles_or_is_refused_and_matching_it_ends(glob: str, text: str) -> None:
    for compile_one in (text_glob, tool_glob, path_glob):
        compiled = tried(compile_one, glob)
        if isinstance(compiled, ConfigError):
            assert compiled.fix
            continue
        subject = MountPath(f"project:{text}") if compile_one is path_glob else text
        assert compiled.catches(subject) or not compiled.matches(subject)


@pytest.mark.parametrize(
    ("glob", "subject"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/" + "*a" * 60 + "b", "a/" * 100 + "a" * 250),
        ("**/a/" * 40 + "b", "a/" * 1900 + "a"),
        ("**/*a*/" * 40 + "b", "aa/" * 1300 + "a"),
    ],
)
def test_globs_that_would_make_a_backtracking_matcher_hang_do_not(glob: str, subject: str) -> None:
    assert not path_glob(glob).catches(MountPath(f"project:{subject}"))


@pytest.mark.parametrize(
    ("glob", "hint"),
    [
        ("/etc/passwd", "absolute"),
        ("../x", "`..`"),
        ("a/./b", "`.`"),
        ("a//b", "empty segment"),
        ("", "empty glob"),
        ("a[b", "unclosed `[`"),
        ("a]b", "without `[`"),
        ("a{b", "unclosed or nested"),
        ("a}b", "without `{`"),
        ("{a,}", "empty choice"),
        ("{a,{b,c}}", "nested"),
        ("a\\b", "backslash"),
        ("a**b", "mixes `**`"),
        ("[z-a]", "impossible range"),
        ("[^a]", "impossible set"),
        ("Garden:x", "mount's name"),
        ("a/b:c", "mount's name"),
        ("x\n", "control character"),
        ("{a,b}" * 7, "alternatives"),
        ("a" * 600, "600 characters"),
    ],
)
def test_an_impossible_path_glob_is_refused_with_a_reason_and_a_fix(glob: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)) as caught:
        path_glob(glob)
    assert caught.value.fix


@pytest.mark.parametrize(
    "glob", ["FS.*", "Code.read", "code", "mcp__x__y", "fs..read", ".read", "fs.", "9.x", "fs read", "fs.ré"]
)
def test_a_tool_glob_that_no_tool_could_match_is_refused(glob: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool_glob(glob)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("fs.*", ["fs.read", "fs.a.b"], ["fss.read", "code.read"]),
        ("code/*", ["code.read"], ["fs.read"]),
        ("*", ["fs.read", "clickup.createTask"], []),
        ("clickup.createTask", ["clickup.createTask"], ["clickup.createtask"]),
        ("{fs,code}.read", ["fs.read", "code.read"], ["md.read"]),
        ("*.read", ["fs.read"], ["fs.reads"]),
        ("code.?og", ["code.log"], ["code.oog.x"]),
    ],
)
def test_tool_globs_match_names_in_both_spellings(glob: str, yes: list[str], no: list[str]) -> None:
    assert [name for name in yes + no if tool_glob(glob).matches(name)] == yes


regexes = st.recursive(
    st.sampled_from(
        [
            "a",
            "b",
            ".",
            "[ab]",
            "[^a]",
            r"\d",
            r"\W",
            r"\x61",
            "é",
            r"[\s\S]",
            r"[^\W_]",
            r"[]b-\u00e9-]",
            r"\Z",
            "^",
            "",
            "a?",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{0}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=fewer(400, 80))
@given(regexes, st.sampled_from(["", "$"]), st.text("ab1é\u0662\u2028 _\n\ud800", max_size=8))
def test_a_linear_pattern_finds_what_python_finds(pattern: str, end: str, text: str) -> None:
    assert Linear(pattern + end).search(text) is (re.search(pattern + end, text) is not None)


@settings(max_examples=fewer(200, 40))
@given(regexes, st.sampled_from(["", "$"]), st.text("ab1 \n", max_size=4), st.text("ab1 \n", max_size=4))
def test_what_is_found_in_a_text_could_be_found_in_whatever_ends_as_it_does(
    pattern: str, end: str, start: str, rest: str
) -> None:
    found = Linear(pattern + end)
    assert not found.search(start + rest) or found.search_behind_anything(rest)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"\.internal$", "l", "x"),
        (r"^a+b{2}$", "abb", "abba"),
        (r"^(db|web)[0-9]\.corp$", "eb7.corp", "b7.org"),
        ("evil", "anything", None),
        (r"(a|b.)*c\Z", ".ac", ".a"),
    ],
)
def test_a_pattern_is_judged_by_the_end_of_a_text_whose_beginning_is_open(
    pattern: str, yes: str, no: str | None
) -> None:
    assert Linear(pattern).search_behind_anything(yes)
    assert no is None or not Linear(pattern).search_behind_anything(no)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(a|a)*b", "a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)x"])
def test_patterns_that_would_make_a_backtracking_matcher_hang_do_not(pattern: str) -> None:
    assert not Linear(pattern).search("a" * 2000 + "!")


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?=a)",
        "(?<!a)b",
        r"\bx",
        "(?i)a",
        "(?i:a)",
        "a*+",
        r"\N{DIGIT ONE}",
        "(",
        "(a{1,900}){900}",
        "(){99999999}",
        "a" * 501,
        "[z-a]",
    ],
)
def test_patterns_that_need_backtracking_or_too_much_room_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Linear(pattern)
    assert caught.value.fix
