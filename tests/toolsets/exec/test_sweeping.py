"""What programs leave does not grow without end."""

from __future__ import annotations

import os
from pathlib import Path

from toolgate.features.programs.results import sweep
from toolgate.workspace.mounts import Mounts

from .running import good, opened


def test_the_oldest_calls_go_first_and_nothing_else_does(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    scratch = tmp_path / "scratch"
    for name in ("c_1", "c_2", "c_3", "mine"):
        (scratch / "exec" / name / "deep").mkdir(parents=True)
        (scratch / "exec" / name / "deep" / "file").write_bytes(os.urandom(100_000))
    (scratch / "exec" / "c_0").symlink_to(outside)
    with Mounts({"scratch": scratch}) as mounts:
        assert sweep(mounts, "exec", "c_3", budget=250_000) >= 1
        assert sorted(os.listdir(scratch / "exec")) in (["c_0", "c_2", "c_3", "mine"], ["c_2", "c_3", "mine"])
        sweep(mounts, "exec", "c_3", budget=1)
    assert (scratch / "exec" / "c_3" / "deep" / "file").exists()
    assert (scratch / "exec" / "mine" / "deep" / "file").exists()
    assert not (scratch / "exec" / "c_2").exists()
    assert (outside / "keep").read_text() == "x"


async def test_a_run_sweeps_after_itself(root: Path) -> None:
    old = root / ".toolgate" / "scratch" / "exec" / "c_00000000"
    async with opened(root) as (gate, _):
        old.mkdir(parents=True)
        with open(old / "large", "wb") as file:
            file.write(b"x" * (257 << 20))
        found = good(await gate.call("exec.python", {"code": "open('new.txt', 'w').write('n')"}))
        assert found["files"]
        assert not old.exists()
