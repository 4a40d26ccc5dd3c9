"""Other programs than Python: a shell with the system's commands, and a runtime that is handed code on stdin."""

from __future__ import annotations

import os
import shutil
import tempfile

from sandbox.remote import Remote
from toolgate.sandbox.job import Job, Limits

LIMITS = Limits(processes=32)


def shell(code: str = "", argv: tuple[str, ...] = (), stdin: bytes = b"") -> Job:
    return Job("shell", code, argv=argv, stdin=stdin, limits=LIMITS)


async def test_a_script_runs_the_systems_commands(roomy: Remote) -> None:
    outcome = await roomy.run(
        shell("printf 'b\\na\\n' | sort > out; cat out; tr a-z A-Z; exit 4", stdin=b"in")
    )
    assert (outcome.stdout, outcome.exit_code) == (b"a\nb\nIN", 4), outcome
    assert [(one.path, one.content) for one in outcome.left] == [("out", b"a\nb\n")]


async def test_an_argv_is_no_script(roomy: Remote) -> None:
    outcome = await roomy.run(shell(argv=("echo", "$HOME; true", "`id`")))
    assert outcome.stdout == b"$HOME; true `id`\n"


async def test_a_command_that_is_not_there_says_so(roomy: Remote) -> None:
    outcome = await roomy.run(shell(argv=("/usr/bin/no-such-command",)))
    assert (outcome.exit_code, outcome.stderr) == (
        127,
        b"/usr/bin/no-such-command: No such file or directory\n",
    )


async def test_a_signal_is_reported_as_a_shell_does(roomy: Remote) -> None:
    assert (await roomy.run(shell("kill -9 $$"))).exit_code == 137


async def test_starting_too_many_names_the_limit(roomy: Remote) -> None:
    outcome = await roomy.run(shell("i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done"))
    assert outcome.limit == "processes", outcome


async def test_it_sees_nothing_of_the_host(roomy: Remote) -> None:
    outcome = await roomy.run(
        shell(
            "ls /root /home /var /etc/shadow 2>/dev/null; ps ax 2>/dev/null | wc -l; cat /proc/1/cmdline | tr '\\0' ' '"
        )
    )
    assert b"shadow" not in outcome.stdout
    assert b"worker" not in outcome.stdout


async def test_it_cannot_write_outside_its_directory(roomy: Remote) -> None:
    code = "for d in / /usr /usr/bin /etc /proc/sys /dev /packages /project; do (echo x > $d/made) 2>/dev/null && echo $d; done; echo ok > /tmp/t; cat /tmp/t"
    assert (await roomy.run(shell(code))).stdout == b"ok\n"


async def test_what_it_writes_cannot_be_executed(roomy: Remote) -> None:
    outcome = await roomy.run(shell("cp /bin/true mine; chmod +x mine; ./mine || echo refused"))
    assert outcome.stdout == b"refused\n"


async def test_another_runtime_runs_code_from_its_input(sandbox: Remote) -> None:
    code = "const x = await Promise.resolve(20); console.log(x + 22)"
    outcome = await sandbox.run(Job("javascript", code, limits=Limits(memory_bytes=1 << 30)))
    assert (outcome.stdout, outcome.exit_code) == (b"42\n", 0), outcome


async def test_a_program_may_lie_where_the_new_root_has_something_of_its_own(sandbox: Remote) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        program = shutil.copy("/bin/echo", directory)
        outcome = await sandbox.run(Job("javascript", argv=(program, "hello")))
    assert outcome.stdout == b"hello\n", outcome


async def test_another_runtime_is_held_by_the_same_limits(sandbox: Remote) -> None:
    for code, limits, limit in [
        ("for (;;) {}", Limits(wall_s=1), "time"),
        ("for (;;) {}", Limits(cpu_s=1, wall_s=20), "cpu"),
        ("const all = []; for (;;) all.push(new Array(1e6).fill(1))", Limits(memory_bytes=1 << 30), "memory"),
        ("for (;;) console.log('x'.repeat(1000))", Limits(output_bytes=10_000), "output"),
    ]:
        outcome = await sandbox.run(Job("javascript", code, limits=limits))
        assert outcome.limit == limit, outcome
