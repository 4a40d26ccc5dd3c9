"""The process that parses: it can be late, lie, die and be killed, and nobody is the worse for it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import toolgate
from toolgate.workspace.outline import worker
from toolgate.workspace.outline.outline import Language, Outliner, language_of

PYTHON = language_of("a.py")
assert PYTHON is not None
HOSTILE = "(" * 200_000


@pytest.fixture
def outliner() -> Iterator[Outliner]:
    with Outliner() as made:
        yield made


def names(outliner: Outliner, text: str, language: Language = PYTHON) -> list[str]:
    return [symbol.name for symbol in outliner.outline(text, language).symbols]


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends in time, its parent or not."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def test_one_process_starts_when_it_is_needed_and_serves_all(outliner: Outliner) -> None:
    assert outliner.worker.pid is None
    assert names(outliner, "def a(): pass") == ["a"]
    first = outliner.worker.pid
    texts = [f"class C{number}:\n  def m(self): pass\n" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: names(outliner, text), texts))
    assert found == [[f"C{number}"] for number in range(40)]
    assert outliner.worker.pid == first


def test_it_inherits_nothing_and_is_limited(outliner: Outliner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", "evil.py")
    monkeypatch.setenv("SECRET", "value")
    names(outliner, "x = 1")
    about = Path(f"/proc/{outliner.worker.pid}")
    assert (about / "environ").read_bytes() == b""
    assert os.readlink(about / "cwd") == "/"
    assert {os.readlink(about / "fd" / each).partition(":")[0] for each in os.listdir(about / "fd")} <= {
        "pipe", "/dev/null",
    }  # fmt: skip
    limits = {line[:26].strip(): line[26:].split() for line in (about / "limits").read_text().splitlines()}
    assert limits["Max file size"][0] == "0"
    assert int(limits["Max address space"][0]) < 1 << 30
    assert int(limits["Max cpu time"][0]) < 60


def test_a_late_one_is_replaced_and_what_made_it_late_is_not_asked_again(
    outliner: Outliner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CPU_SECONDS", 0.2)
    made = outliner.outline(HOSTILE, PYTHON)
    assert (made.symbols, made.complete, "takes longer" in made.note) == ([], False, True)
    assert outliner.worker.pid is None
    assert outliner.outline(HOSTILE, PYTHON) is made
    assert outliner.worker.pid is None, "nobody was asked"
    assert names(outliner, "def after(): pass") == ["after"]


def test_one_that_was_killed_is_replaced(outliner: Outliner) -> None:
    names(outliner, "a = 1")
    pid = outliner.worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert names(outliner, "def b(): pass") == ["b"]


LIARS = {
    "ends": "raise SystemExit",
    "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "is silent": "import time; time.sleep(60)",
    "says too much": "import os; os.write(1, b'\\xff' * 100_000)",
    "says no JSON": "import os; os.read(0, 9); os.write(1, (3).to_bytes(4, 'big') + b'{{{')",
    "says a list": "import os; os.read(0, 9); os.write(1, (2).to_bytes(4, 'big') + b'[]')",
    "answers before it is asked": "import os; os.write(1, (2).to_bytes(4, 'big') + b'{}' + b'more')",
    "half": "import os; os.read(0, 9); os.write(1, (99).to_bytes(4, 'big') + b'{}')",
}


@pytest.mark.parametrize("how", LIARS)
def test_a_process_that_lies_or_dies_gives_an_empty_outline(
    outliner: Outliner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    program = tmp_path / "liar.py"
    program.write_text(LIARS[how])
    monkeypatch.setattr(worker, "_PROGRAM", program)
    monkeypatch.setattr(worker, "START_SECONDS", 0.5)
    made = outliner.outline("def a(): pass\n" + "#" * 300_000, PYTHON)
    assert (made.symbols, made.complete, bool(made.note)) == ([], False, True)


def test_symbols_that_are_none_are_left_out(
    outliner: Outliner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = (
        '{"symbols":[[0,"ok","class",1,2],[5,"deep","class",1,2],[0,1,"class",1,2],[0,"x"],"y",[-1,"x","k",1,1],'
        '[0,"x","k",9,1],[0,"x","k",true,1]],"complete":true}'
    )
    program = tmp_path / "liar.py"
    program.write_text(
        "import os\nsize = int.from_bytes(os.read(0, 4), 'big')\nos.read(0, size)\n"
        f"said = {told.encode()!r}\nos.write(1, len(said).to_bytes(4, 'big') + said)\nos.read(0, 1)\n"
    )
    monkeypatch.setattr(worker, "_PROGRAM", program)
    made = outliner.outline("x", PYTHON)
    assert ([each.name for each in made.symbols], made.complete) == (["ok"], False)


def test_closing_ends_it_in_the_middle_of_its_work(
    outliner: Outliner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CPU_SECONDS", 30.0)
    monkeypatch.setattr(worker, "START_SECONDS", 30.0)
    names(outliner, "a = 1")
    monkeypatch.setattr(worker, "WALL_SECONDS", 30.0)
    pid = outliner.worker.pid
    assert pid is not None
    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        asked = pool.submit(outliner.outline, HOSTILE, PYTHON)
        while not outliner.worker._lock.locked() and not asked.done():
            os.sched_yield()
        outliner.close()
        made = asked.result(10)
    assert time.monotonic() - begun < 10
    assert (made.symbols, made.complete) == ([], False)
    assert gone(pid)
    assert outliner.outline("b = 1", PYTHON).note == "the gate is closing"


async def test_a_gate_that_closes_takes_its_worker_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(): pass\n")
    config = {"version": 1, "default_persona": "r", "personas": {"r": {"phase": "observe"}}}
    before = _children()
    async with toolgate.open(tmp_path, config, "memory") as gate:
        assert (await gate.call("code.outline", {"path": "a.py"})).ok
        (pid,) = _children() - before
    assert gone(pid)


def _children() -> set[int]:
    return {
        int(pid)
        for task in os.listdir("/proc/self/task")
        for pid in Path(f"/proc/self/task/{task}/children").read_text().split()
    }


def test_it_does_not_outlive_a_gate_that_was_killed() -> None:
    """Idle it sees its end; busy it has a second of processor time."""
    for text in ("'x = 1'", "'(' * 200_000"):
        program = (
            "import sys\nfrom toolgate.workspace.outline.outline import Outliner\n"
            "from toolgate.workspace.outline.outline import language_of\n"
            "made = Outliner()\npython = language_of('a.py')\nmade.outline('y = 1', python)\n"
            "print(made.worker.pid, flush=True)\n"
            f"made.outline({text}, python)\nsys.stdin.read()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parents[1])},
        )  # fmt: skip
        with parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            parent.kill()
        assert gone(pid)
