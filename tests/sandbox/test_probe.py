"""Which walls stand is tried, said, and refused where none does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import as_user
from sandbox.remote import Remote, modes
from toolgate.core.errors import ConfigError, Unavailable
from toolgate.features.programs.commands import sandbox_findings
from toolgate.features.programs.config import SandboxSpec
from toolgate.project import config
from toolgate.sandbox import packages, probe
from toolgate.sandbox.host import Host, Walls
from toolgate.sandbox.inside.order import LAYERS
from toolgate.sandbox.job import Job

ROOT = os.geteuid() == 0


def asked_as_user(code: str) -> str:
    found = subprocess.run(
        as_user.command([sys.executable, "-c", code]),
        env=as_user.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def test_the_strongest_mode_that_holds_is_taken() -> None:
    assert probe.look().mode == ("root" if ROOT else "userns")
    said = asked_as_user("from toolgate.sandbox import probe; print(probe.look())")
    assert "mode='userns'" in said
    assert "this user is not root" in said


def test_a_mode_that_is_named_is_that_one_or_none() -> None:
    said = asked_as_user(
        "from toolgate.sandbox import probe; print(probe.look('root').mode, probe.look('landlock').mode)"
    )
    assert said == "None landlock\n"


def test_where_none_holds_programs_are_refused_with_the_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_try", lambda mode: (f"{mode} was switched off", 0))

    async def main() -> None:
        host = Host()
        with pytest.raises(Unavailable, match="landlock was switched off") as caught:
            await host.run(Job("python", "print(1)"))
        assert "toolgate doctor" in caught.value.fix
        await host.close()

    asyncio.run(main())
    [(state, what, found, fix)] = list(sandbox_findings(SandboxSpec()))
    assert (state, what) == ("warn", "sandbox")
    assert "no program can run" in found
    assert fix


def test_doctor_says_which_walls_stand_and_which_packages_are_missing() -> None:
    spec = SandboxSpec(packages=("pydantic", "no-such-package"))
    first, second = sandbox_findings(spec)
    assert first[2].startswith("root:" if ROOT else "userns:")
    assert second[2] == "not installed: no-such-package"


def test_packages_come_with_what_they_need_and_not_with_extras() -> None:
    found = packages.find(["pydantic"])
    names = {path.name for path in found.paths}
    assert {"pydantic", "pydantic_core", "typing_extensions.py"} <= names
    assert "email_validator" not in names
    assert all(path.exists() for path in found.paths)


@pytest.mark.parametrize("mode", modes())
async def test_a_package_with_native_code_works_behind_the_walls(mode: str) -> None:
    code = "import pydantic\nclass A(pydantic.BaseModel):\n    x: int\nprint(A(x='3').x)"
    with Remote(mode) as sandbox:
        outcome = await sandbox.run(Job("python", code, packages=packages.find(["pydantic"]).paths))
    assert outcome.stdout == b"3\n", outcome


def test_the_settings_are_read_from_the_configuration() -> None:
    text = "version: 1\nsandbox: {mode: userns, warm: 4, packages: [numpy], limits: {wall_s: 5.0, memory_bytes: 1000000}}\n"
    spec = config.loads(text).sandbox
    assert (spec.mode, spec.warm, spec.packages) == ("userns", 4, ("numpy",))
    assert (spec.limits.limits().wall_s, spec.limits.limits(32).processes) == (5.0, 32)
    for wrong in (
        "{mode: none}",
        "{warm: -1}",
        "{packages: ['../x']}",
        "{limits: {files: 1}}",
        "{off: [seccomp]}",
    ):
        with pytest.raises(ConfigError):
            config.loads(f"version: 1\nsandbox: {wrong}\n")


def test_user_numbers_are_high_fit_what_is_mapped_and_are_not_given_twice(tmp_path: Path) -> None:
    uid_map = tmp_path / "uid_map"
    for line, low, high in [("0 0 4294967295", 100_000, 1 << 31), ("0 100000 65536", 32768, 65500)]:
        uid_map.write_text(line + "\n")
        assert probe._uid_range(str(uid_map)) == (low, high)
    block = probe.Uids(200_000, 3)
    taken = [block.take() for _ in range(3)]
    assert len(set(taken)) == 3
    with pytest.raises(Unavailable, match="every user number"):
        block.take()
    block.give_back(taken[1])
    assert block.take() == taken[1]


def test_a_layer_that_does_not_exist_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="there is no layer"):
        Walls(frozenset({"everything"}))
    assert Walls().off == frozenset()


async def test_a_zygote_of_production_leaves_no_layer_out() -> None:
    from toolgate.sandbox import host as pools
    from toolgate.sandbox.prepared import WallShape

    mode = probe.look().held()
    pool = pools.Pool(mode, 0, ablation=False)
    shape = WallShape.of(Job("python", "1"), None, False, frozenset({"seccomp"}))
    with pytest.raises(Unavailable, match="leaves no layer out"):
        await pool.take(shape)
    await pool.close()


@pytest.mark.parametrize("layer", sorted(LAYERS))
@pytest.mark.parametrize("mode", [each for each in modes() if each != "landlock"])
async def test_a_program_runs_with_any_one_layer_left_out(mode: str, layer: str) -> None:
    """What each layer stops is shown by the attacks; here only that leaving it out is possible, for them."""
    with Remote(mode, off=[layer]) as sandbox:
        outcome = await sandbox.python("print(1)")
    assert outcome.stdout == b"1\n", outcome
