"""Hosts in processes of their own, one for each mode, that run attacks and tell what became of them."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from sandbox import as_user

from .attack import BREACH, HELD, Attack

USER = 1001
SECONDS = 180
LAG_S = 3.0
MEMORY = 600 << 20


def command(module: str, mode: str, *more: str) -> list[str]:
    user = 0 if mode == "root" or os.geteuid() != 0 else USER
    return [sys.executable, "-m", module, mode, str(user), *more]


def environment() -> dict[str, str]:
    """With a secret in it, which no program may see."""
    own = [str(as_user.REPOSITORY / "src"), str(as_user.REPOSITORY / "tests")]
    path = os.pathsep.join([*own, *filter(None, sys.path)])
    return os.environ | {"PYTHONPATH": path, "HOME": "/nonexistent", "SCENE_SECRET": secrets.token_hex(16)}


def run(mode: str, names: Iterable[str]) -> dict[str, Any]:
    """Run these attacks in one host of that mode."""
    done = subprocess.run(
        command("attacks.sandbox.runner", mode), input=json.dumps(list(names)), capture_output=True, text=True,
        timeout=SECONDS, cwd="/", env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, f"{mode}: {done.stderr[-4000:]}"
    assert "never retrieved" not in done.stderr, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def faults(attack: Attack, report: Mapping[str, Any], mode: str) -> list[str]:
    """What is wrong with how an attack went; nothing, where it was stopped."""
    if "refused" in report:
        return [f"it was not run: {report['refused']}"]
    found = list(report["harm"])
    found += ["it has the secret"] * report["leaked"]
    found += ["it says that it got through"] * (BREACH in report["stdout"])
    found += [f"the host did not answer for {report['lag']:.1f} s"] * (report["lag"] > LAG_S)
    found += [f"the host uses {report['memory'] >> 20} MB"] * (report["memory"] > MEMORY)
    found += [f"it ran for {report['took']:.1f} s"] * (report["took"] > report["wall"] + 5)
    found += ["it left a file from outside"] * (report["bytes_left"] > 16 << 20)
    if not _ended((*attack.ends, *(attack.ends_alone if mode == "landlock" else ())), report):
        found.append("it neither was refused nor ended as it should")
    return found


def _ended(ends: tuple[str, ...], report: Mapping[str, Any]) -> bool:
    if "any" in ends or report["limit"] in ends:
        return True
    if "killed" in ends and (report["signal"] or (report["exit"] or 0) > 128):
        return True
    if f"exit {report['exit']}" in ends:
        return True
    said = any(line.startswith(HELD) for line in report["stdout"].splitlines())
    return said and report["exit"] == 0 and report["limit"] is None
