"""Every limit holds, and the outcome names the one that was hit."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from sandbox import as_user
from sandbox.remote import Remote
from toolgate.core.errors import InvalidArgs, Unavailable
from toolgate.sandbox.job import Job, Limits, View

MIB = 1 << 20
HIT = [
    ("time", "import time; time.sleep(60)", Limits(wall_s=0.3)),
    ("time", "while True: pass", Limits(wall_s=0.3)),
    ("cpu", "while True: pass", Limits(cpu_s=1, wall_s=10)),
    ("memory", "x = 'x' * (200 << 20)", Limits(memory_bytes=100 * MIB)),
    ("memory", "import mmap; mmap.mmap(-1, 200 << 20)", Limits(memory_bytes=100 * MIB)),
    ("processes", "import os; os.fork()", Limits()),
    ("processes", "import threading, time\nfor _ in range(1000): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", Limits()),
    ("files", "import os\nwhile True: os.dup(0)", Limits(files=20)),
    ("disk", "f = open('f', 'wb')\nwhile True: f.write(bytes(1 << 16))", Limits(disk_bytes=MIB)),
    ("disk", "for n in range(99):\n    with open(str(n), 'wb') as f: f.write(bytes(100_000))\nimport time; time.sleep(1)", Limits(disk_bytes=MIB)),
    ("inodes", "for n in range(9999): open(str(n), 'w').close()\nimport time; time.sleep(1)", Limits(inodes=50)),
    ("output", "while True: print('x' * 100)", Limits(output_bytes=10_000)),
    ("output", "import sys\nwhile True: print('x' * 100, file=sys.stderr)", Limits(output_bytes=10_000)),
    ("requests", "import os\nwhile True: os.write(3, b'{}\\n'); os.read(3, 100)", Limits()),
    ("requests", "import os\nwhile True: os.write(3, b'x' * 1000)", Limits()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "code", "limits"), HIT, ids=[f"{limit}-{place}" for place, (limit, *_) in enumerate(HIT)]
)
async def test_a_limit_that_is_hit_is_named(sandbox: Remote, limit: str, code: str, limits: Limits) -> None:
    outcome = await sandbox.run(Job("python", code, limits=limits))
    assert outcome.limit == limit, outcome
    assert outcome.exit_code != 0
    assert outcome.duration_s < 8


async def test_output_is_kept_up_to_its_limit(sandbox: Remote) -> None:
    outcome = await sandbox.run(Job("python", "print('x' * 50_000)", limits=Limits(output_bytes=10_000)))
    assert outcome.stdout == b"x" * 10_000
    assert (outcome.limit, outcome.exit_code, outcome.signal) == ("output", None, 9) or outcome.exit_code == 0


async def test_what_fits_the_limits_hits_none(sandbox: Remote) -> None:
    code = "x = bytearray(60 << 20); open('f', 'wb').write(bytes(900_000)); print('x' * 9_000)"
    limits = Limits(
        memory_bytes=100 * MIB, disk_bytes=MIB, inodes=3, output_bytes=10_000, files=20, wall_s=5, cpu_s=2
    )
    outcome = await sandbox.run(Job("python", code, limits=limits))
    assert (outcome.limit, outcome.exit_code, len(outcome.left)) == (None, 0, 1), outcome.stderr


async def test_a_program_that_ignores_every_signal_is_ended(sandbox: Remote) -> None:
    code = (
        "import signal\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True: pass"
    )
    outcome = await sandbox.run(Job("python", code, limits=Limits(wall_s=0.3)))
    assert (outcome.limit, outcome.signal) == ("time", 9)


async def test_limits_cannot_be_raised_again(sandbox: Remote) -> None:
    code = (
        "import resource\n"
        "for each in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE):\n"
        "    try: resource.setrlimit(each, (resource.RLIM_INFINITY,) * 2); print('raised', each)\n"
        "    except (ValueError, OSError): pass\n"
    )
    assert (await sandbox.python(code)).stdout == b""


async def test_what_was_used_is_reported(sandbox: Remote) -> None:
    outcome = await sandbox.python("x = bytearray(50 << 20)\nfor _ in range(3_000_000): pass")
    assert outcome.cpu_s > 0.02
    assert outcome.memory_bytes > 50 * MIB


async def test_a_limit_of_nothing_is_refused(sandbox: Remote) -> None:
    with pytest.raises(InvalidArgs, match="not above zero"):
        await sandbox.run(Job("python", "1", limits=Limits(memory_bytes=0)))


async def test_without_namespaces_processes_network_and_views_are_refused(narrow: Remote) -> None:
    for job, network in [
        (Job("python", "1", limits=Limits(processes=2)), False),
        (Job("shell", "true", limits=Limits(processes=32)), False),
        (Job("python", "1"), True),
        (Job("python", "1", view=View(Path("/tmp"))), False),
    ]:
        with pytest.raises(Unavailable, match="needs namespaces"):
            await narrow.run(job, egress=network)


async def test_without_namespaces_the_users_own_files_cannot_be_marked(narrow: Remote) -> None:
    """Landlock does not see modes, times and attributes; the program runs as the user whose files these are."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    victim = directory / "victim"
    victim.write_text("x")
    for path in (directory, victim):
        if os.geteuid() == 0:
            os.chown(path, as_user.USER, as_user.USER)
        path.chmod(0o700 if path == directory else 0o600)
    before = victim.stat()
    code = (
        "import os, shutil\n"
        f"for act in (lambda: os.chmod({str(victim)!r}, 0o777), lambda: os.utime({str(victim)!r}, (1, 1)),\n"
        f"            lambda: os.chown({str(victim)!r}, -1, 0), lambda: os.setxattr({str(victim)!r}, 'user.a', b'1'),\n"
        f"            lambda: os.truncate({str(victim)!r}, 0), lambda: os.remove({str(victim)!r})):\n"
        "    try: act()\n"
        "    except OSError: pass\n"
        "open('a', 'w').write('copied'); shutil.copy2('a', 'b'); shutil.copytree('.', 'c', ignore=shutil.ignore_patterns('c', '.tmp')); print(open('b').read())\n"
    )
    outcome = await narrow.python(code)
    after = victim.stat()
    shutil.rmtree(directory)
    assert (outcome.stdout, outcome.exit_code) == (b"copied\n", 0), outcome
    assert (after.st_mode, after.st_mtime_ns, after.st_uid, after.st_size) == (
        before.st_mode, before.st_mtime_ns, before.st_uid, before.st_size,
    )  # fmt: skip
