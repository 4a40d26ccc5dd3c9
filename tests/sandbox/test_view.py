"""A view of the project, seen from the sandbox alone: layers where the kernel has them, else a copy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.core.errors import TooLarge
from toolgate.sandbox import probe
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Altered, Job, Limits, Mode, Outcome, View
from toolgate.sandbox.prepared import Prepared

WRITE = """\
import os
os.chdir(os.environ['PROJECT'])
print(sorted(os.listdir('.')))
open('a.txt', 'a').write('!')
os.remove('b.txt')
os.mkdir('new')
open('new/c.txt', 'w').write('c')
"""
CHANGED = [
    Altered("a.txt", "file", b"a!", 0o644), Altered("b.txt", "gone"), Altered("new", "directory", mode=0o755),
    Altered("new/c.txt", "file", b"c", 0o644),
]  # fmt: skip


@pytest.fixture(params=["root", "userns", "landlock"])
def mode(request: pytest.FixtureRequest) -> Mode:
    refused = probe.look(request.param).refused
    if refused:
        pytest.skip(f"no sandbox of this kind here: {refused}")
    found: Mode = request.param
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b", "hidden"):
        (tmp_path / f"{name}.txt").write_text(name)
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "x").write_text("x")
    return tmp_path


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each process that was prepared, whether its view is a copy."""
    found: list[bool] = []
    real = Prepared.go

    def go(self: Prepared, *args: object) -> None:
        found.append(self.copied)
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Prepared, "go", go)
    return found


async def run(mode: Mode, job: Job) -> Outcome:
    host = Host(mode, warm=0)
    try:
        return await host.run(job)
    finally:
        await host.close()


def plain(outcome: Outcome) -> list[Altered]:
    """Where a directory is new, that it hides nothing old need not be said."""
    known = {each.path for each in CHANGED if each.kind == "gone"}
    return sorted(
        (each for each in outcome.delta if each.kind != "gone" or each.path in known),
        key=lambda each: each.path,
    )


async def test_what_a_program_changed_comes_back_and_the_project_stays(
    mode: Mode, root: Path, ways: list[bool]
) -> None:
    before = {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file()}
    outcome = await run(mode, Job("python", WRITE, view=View(root, ("hidden.txt", "shut"), writable=True)))
    assert (outcome.exit_code, outcome.stdout) == (0, b"['a.txt', 'b.txt']\n"), outcome.stderr
    assert plain(outcome) == CHANGED
    assert {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file()} == before
    assert ways == [mode == "landlock"]


async def test_without_layers_a_copy_does_the_same(mode: Mode, root: Path, ways: list[bool]) -> None:
    # a name below a hidden one cannot be hidden once more in a layer, which is as if there were no layers
    view = View(root, ("hidden.txt", "shut", "shut/x"), writable=True)
    outcome = await run(mode, Job("python", WRITE, view=view))
    assert (outcome.exit_code, outcome.stdout) == (0, b"['a.txt', 'b.txt']\n"), outcome.stderr
    assert plain(outcome) == CHANGED
    assert ways == [True]
    only = View(root, view.hidden)
    refused = await run(mode, Job("python", WRITE, view=only))
    assert b"Error" in refused.stderr
    assert refused.delta == ()


async def test_a_project_that_is_too_large_to_be_copied_is_refused(root: Path) -> None:
    with (root / "large").open("wb") as stream:
        stream.truncate((64 << 20) + 1)
    with pytest.raises(TooLarge, match="64 MiB"):
        await run("landlock", Job("python", "1", view=View(root)))


async def test_writes_to_a_view_are_limited_in_size_and_number(mode: Mode, root: Path) -> None:
    limits = Limits(disk_bytes=1 << 20, inodes=50)
    large = "import os\nopen(os.environ['PROJECT'] + '/x', 'wb').write(bytes(90 << 20))"
    many = "import os, time\nfor n in range(12000): open(f\"{os.environ['PROJECT']}/{n}\", 'w').close()\ntime.sleep(1)"
    for program in (large, many):
        outcome = await run(mode, Job("python", program, limits=limits, view=View(root, writable=True)))
        assert outcome.exit_code != 0, program
        assert not (root / "x").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_files_of_another_owner_can_be_written_in_root_mode_if_the_project_is_theirs(
    root: Path,
) -> None:
    for path in (root, *root.rglob("*")):
        os.chown(path, 4242, 4242)
        path.chmod(0o700)
    outcome = await run("root", Job("python", WRITE, view=View(root, ("hidden.txt", "shut"), writable=True)))
    assert outcome.exit_code == 0, outcome.stderr
    assert {each.path for each in plain(outcome)} == {"a.txt", "b.txt", "new", "new/c.txt"}
    assert (root / "a.txt").stat().st_uid == 4242
