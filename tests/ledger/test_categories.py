"""Categories of errors, from what real interpreters really write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import deno
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.ledger.traces import categorize, error_line

PYTHON = [
    ("x =", "syntax"),
    (" x = 1", "syntax"),
    ("eval('1 +')", "syntax"),
    ("import nothere", "import"),
    ("from os import nothere", "import"),
    ("1 + 'a'", "type"),
    ("(1).foo", "type"),
    ("raise TypeError('Connection refused')", "type"),
    ("foo", "reference"),
    ("def f():\n  x += 1\nf()", "reference"),
    ("raise TimeoutError('slow')", "timeout"),
    ("import socket; socket.create_connection(('127.0.0.1', 1))", "network"),
    ("import urllib.request as u; u.urlopen('http://127.0.0.1:1')", "network"),
    ("import socket; raise socket.gaierror(-2, 'Name or service not known')", "network"),
    ("raise OSError('this program has no network, so a.example cannot be reached')", "network"),
    (
        "raise OSError('HTTP 403 from http://a.example/: this program may not reach http a.example:80')",
        "network",
    ),
    ("raise MemoryError", "memory"),
    ("bytearray(1 << 60)", "memory"),
    ("raise OSError(28, 'No space left on device')", "limit"),
    ("raise PermissionError(13, 'Permission denied')", "permission"),
    ("raise OSError(30, 'Read-only file system')", "permission"),
    ("{}['a']", "runtime"),
    ("1 / 0", "runtime"),
    ("open('/nothere/x')", "runtime"),
    ("def f(): f()\nf()", "runtime"),
    ("try:\n  1/0\nexcept Exception as e:\n  raise KeyError('k') from e", "runtime"),
    ("try:\n  foo\nexcept Exception as e:\n  raise TypeError('t') from e", "type"),
    ("class Own(Exception): pass\nraise Own('x')", "runtime"),
    ("import sys; sys.exit('it did not work')", "runtime"),
    ("import sys; sys.exit(3)", "unknown"),
]
JAVASCRIPT = [
    ("let x =", "syntax"),
    ("JSON.parse('{')", "syntax"),
    ("import './nothere.mjs'", "import"),
    ("import 'node:nothere'", "import"),
    ("null.foo", "type"),
    ("foo", "reference"),
    ("require('x')", "reference"),
    ("await fetch('http://127.0.0.1:1233')", "network"),
    ("await Deno.connect({port: 1233})", "network"),
    ("Deno.readTextFileSync('/etc/hostname')", "permission"),
    ("throw new Error('x')", "runtime"),
    ("throw new RangeError('x')", "runtime"),
    ("throw 'a text'", "runtime"),
    ("Deno.exit(4)", "unknown"),
    ("const a=[]; for(;;) a.push(new Array(1e6).fill(1.5))", "memory"),
]
SHELL = [
    ("if then", "syntax"),
    ('echo "a', "syntax"),
    ("nothere --x", "reference"),
    ("set -u; echo $nothere", "reference"),
    ("./nothere", "reference"),
    ("cat /nothere", "runtime"),
    ("/dev/null", "permission"),
    ("echo 'x: Permission denied' >&2; exit 1", "permission"),
    ("echo 'x: Connection refused' >&2; exit 7", "network"),
    ("exit 3", "unknown"),
]


def failed(command: list[str], text: str | None = None, **environment: str) -> tuple[str, int]:
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | environment | {"LC_ALL": "C"},
    )
    assert done.returncode != 0, done
    return done.stderr, done.returncode


@pytest.mark.parametrize(("code", "category"), PYTHON)
def test_an_error_of_python_has_its_category(code: str, category: str) -> None:
    stderr, exit_code = failed([sys.executable, "-I", "-S", "-c", code])
    assert categorize("python", stderr, exit_code) == category, stderr


@pytest.mark.parametrize(("code", "category"), JAVASCRIPT)
def test_an_error_of_deno_has_its_category(code: str, category: str, tmp_path: Path) -> None:
    # the only network it may reach is a port on which nobody listens
    options = [
        "--no-prompt",
        "--no-remote",
        "--no-npm",
        "--no-config",
        "--allow-net=127.0.0.1:1233,0.0.0.0:1233",
    ]
    options.append("--v8-flags=--max-old-space-size=40")
    (tmp_path / "program.mjs").write_text(code)
    command = [deno.find_deno_bin(), "run", *options, str(tmp_path / "program.mjs")]
    stderr, exit_code = failed(command, NO_COLOR="1", DENO_NO_UPDATE_CHECK="1")
    assert categorize("javascript", stderr, exit_code) == category, stderr


@pytest.mark.parametrize(("code", "category"), SHELL)
def test_an_error_of_a_shell_has_its_category(code: str, category: str) -> None:
    stderr, exit_code = failed(["sh", "-c", code])
    assert categorize("shell", stderr, exit_code) == category, stderr


LIMITS = {
    "time": "timeout", "cpu": "timeout", "memory": "memory", "output": "output", "processes": "limit",
    "files": "limit", "disk": "limit", "inodes": "limit", "requests": "limit", "a new one": "limit",
}  # fmt: skip


@pytest.mark.parametrize(("limit", "category"), LIMITS.items())
def test_a_limit_says_more_than_any_text(limit: str, category: str) -> None:
    assert categorize("python", "TypeError: x", None, limit) == category


def test_the_line_that_names_the_error_is_found() -> None:
    deno = "error: Uncaught (in promise) Error: no\nthrow new Error('no')\n      ^\n    at file:///work/program.mjs:1:7\n"
    assert error_line(deno) == "error: Uncaught (in promise) Error: no"
    assert error_line("Traceback (most recent call last):\n  File\nKeyError: 'a'\n") == "KeyError: 'a'"
    assert error_line("") == ""


@given(st.sampled_from(["python", "javascript", "shell", "other"]), st.text(), st.none() | st.integers())
def test_any_text_has_a_category(language: str, stderr: str, exit_code: int | None) -> None:
    found = categorize(language, stderr, exit_code)
    assert (found == "unknown") <= (not stderr.strip())
