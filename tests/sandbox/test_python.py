"""A Python program in the sandbox behaves as one outside, as far as the walls let it."""

from __future__ import annotations

import sys

from sandbox.remote import Remote
from toolgate.sandbox.job import Job, Left


async def test_it_says_what_it_prints_and_how_it_ends(sandbox: Remote) -> None:
    outcome = await sandbox.python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (b"out\n", b"err\n", 3)
    assert outcome.limit is None
    assert outcome.duration_s > 0


async def test_the_mode_that_was_asked_for_is_the_one_that_holds(sandbox: Remote) -> None:
    assert await sandbox.ask_mode() == sandbox.mode


async def test_it_may_await_at_the_top_level(sandbox: Remote) -> None:
    outcome = await sandbox.python("import asyncio\nawait asyncio.sleep(0.01)\nprint('slept')")
    assert outcome.stdout == b"slept\n", outcome


async def test_an_error_shows_only_the_programs_own_frames(sandbox: Remote) -> None:
    outcome = await sandbox.python("def f():\n    return 1 / 0\nawait __import__('asyncio').sleep(0)\nf()\n")
    shown = outcome.stderr.decode()
    assert outcome.exit_code == 1
    assert shown.startswith(
        'Traceback (most recent call last):\n  File "<program>", line 4, in <module>\n    f()'
    )
    assert shown.endswith("ZeroDivisionError: division by zero\n")
    assert "asyncio" not in shown
    assert "inside" not in shown


async def test_a_program_that_is_no_python_says_where(sandbox: Remote) -> None:
    outcome = await sandbox.python("x = = 1")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith(b'  File "<program>", line 1\n')
    assert outcome.stderr.endswith(b"SyntaxError: invalid syntax\n")


async def test_exit_codes_are_those_of_python(sandbox: Remote) -> None:
    for code, expected, said in [
        ("raise SystemExit", 0, b""),
        ("exit(7)", 7, b""),
        ("raise SystemExit(256 + 2)", 2, b""),
        ("raise SystemExit('no')", 1, b"no\n"),
    ]:
        outcome = await sandbox.python(code)
        assert (outcome.exit_code, outcome.stderr) == (expected, said), code


async def test_it_is_the_main_module_and_sees_its_input(sandbox: Remote) -> None:
    code = (
        "import sys, dataclasses, pickle\n"
        "@dataclasses.dataclass\nclass A:\n    x: int\n"
        "assert pickle.loads(pickle.dumps(A(1))) == A(1)\n"
        "assert __name__ == '__main__'\n"
        "print(sys.stdin.read().upper(), input.__name__, len(sys.argv))"
    )
    outcome = await sandbox.run(Job("python", code, stdin="grüße".encode()))
    assert outcome.stdout.decode() == "GRÜSSE input 1\n", outcome


async def test_threads_and_what_was_registered_for_the_end_run_to_their_end(sandbox: Remote) -> None:
    code = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\n"
        "print('main')"
    )
    assert (await sandbox.python(code)).stdout == b"main\nthread\nlast\n"


async def test_the_version_and_the_library_are_the_hosts(sandbox: Remote) -> None:
    code = (
        "import sys, csv, xml.dom.minidom, unittest, lzma, ctypes, wsgiref, zoneinfo\n"
        "print(sys.version_info[:3], zoneinfo.ZoneInfo('Europe/Lisbon').key)"
    )
    outcome = await sandbox.python(code)
    assert outcome.stdout.decode() == f"{tuple(sys.version_info[:3])} Europe/Lisbon\n", outcome


async def test_nothing_of_one_program_reaches_the_next(sandbox: Remote) -> None:
    first = await sandbox.python(
        "import json, os; json.left = 1; open('f', 'w').close(); os.environ['X'] = '1'"
    )
    assert first.exit_code == 0, first
    second = await sandbox.python(
        "import json, os; print(hasattr(json, 'left'), os.listdir(), 'X' in os.environ)"
    )
    assert second.stdout == b"False ['.tmp'] False\n", second


async def test_the_environment_holds_nothing_of_the_hosts(sandbox: Remote) -> None:
    outcome = await sandbox.python("import os; print(sorted(os.environ))")
    assert outcome.stdout == b"['HOME', 'LANG', 'PATH', 'TMPDIR']\n"


async def test_temporary_files_are_possible_and_do_not_come_back(sandbox: Remote) -> None:
    code = "import tempfile\nwith tempfile.NamedTemporaryFile(delete=False) as f: f.write(b'x')\nopen('kept', 'w').write('y')"
    outcome = await sandbox.python(code)
    assert outcome.left == (Left("kept", b"y", 0o644),), outcome


async def test_a_file_that_was_left_open_is_written(sandbox: Remote) -> None:
    code = "f = open('a', 'w'); f.write('all')\nclass C: pass\nc = C(); c.c = c; c.f = open('b', 'w'); c.f.write('of it')"
    outcome = await sandbox.python(code)
    assert [one.content for one in outcome.left] == [b"all", b"of it"], outcome


async def test_many_threads_can_work_at_once_within_the_memory_it_has(sandbox: Remote) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nimport hashlib, time\n"
        "def work(n):\n    time.sleep(0.05)\n    return hashlib.sha256(bytes(1 << 20)).digest()\n"
        "with ThreadPoolExecutor(32) as pool: print(len(list(pool.map(work, range(64)))))"
    )
    outcome = await sandbox.python(code)
    assert outcome.stdout == b"64\n", outcome
