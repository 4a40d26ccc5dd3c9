"""The small parts: names, settings, commits, refs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.workspace.git.commits import read_commit
from toolgate.workspace.git.patch import quote, shown, unquote
from toolgate.workspace.git.view import form_of


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_a_quoted_name_is_the_name(raw: bytes) -> None:
    name = raw.decode("utf-8", "surrogateescape")
    quoted = quote(name)
    assert quoted == raw or quoted.isascii()
    if quoted.startswith(b'"'):
        assert unquote(quoted) == name
    shown(name).encode("utf-8")


def test_only_words_of_form_are_taken_from_a_config() -> None:
    text = """
[core]
	autocrlf = Input ; as it is
	fileMode = false
	fsmonitor = /bin/evil
	eol = lf; rm
[core "sub"] ignorecase = true
[include]
	path = /etc/passwd
	symlinks = false
"""
    assert form_of(text) == {"autocrlf": "input", "filemode": "false", "eol": "lf"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("filemode = no", "false"), ("filemode = 0", "false"), ('filemode = "false"', "false"), ("filemode =", "false"),
        ("filemode", "true"), ("filemode # why", "true"), ("filemode = ON", "true"), ("filemode = 1", "true"),
    ],
)  # fmt: skip
def test_a_word_of_form_is_read_in_every_spelling_that_git_takes(line: str, value: str) -> None:
    assert form_of(f"[core]\n\t{line}\n") == {"filemode": value}


@given(st.binary(max_size=300))
def test_any_bytes_make_a_commit(raw: bytes) -> None:
    read_commit("0" * 40, raw).message.encode("utf-8", "surrogatepass")


def test_a_signed_commit_is_read_without_its_signature() -> None:
    content = (
        b"tree 1\nparent 2\nauthor A B <a@b> 1000000000 -0330\ncommitter C <> 99999999999999 +0000\n"
        b"gpgsig -----BEGIN\n author X <x> 1 +0000\n -----END\n\ntitle\n\nbody\n"
    )
    commit = read_commit("3", content)
    assert (commit.parents, commit.message) == (("2",), "title\n\nbody")
    assert (commit.author.name, commit.author.email, commit.author.date) == (
        "A B",
        "a@b",
        "2001-09-08T22:16:40-03:30",
    )
    assert commit.committer.date == ""


def test_a_long_line_of_a_config_takes_no_longer_to_read_than_it_is_long() -> None:
    text = "[core]\n[" + " " * 500_000 + "\n[core]\n\teol = crlf\n" + "autocrlf" + " " * 500_000 + "x"
    began = time.perf_counter()
    assert form_of(text) == {"eol": "crlf"}
    assert time.perf_counter() - began < 1
