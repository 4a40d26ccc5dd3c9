"""`python -m bench.patches REPOSITORY [PAIRS]`: what git prints between two commits, applied by `fs.patch`.

Pairs of commits are drawn at random, near ones and far ones. The first is checked out, the diff goes through the gate,
and git says whether the tree is then the second's, to the byte and the mode. The repository itself is only cloned.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import toolgate
from bench import world

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "bench",
    "personas": {"bench": {"phase": "contribute", "allow": ["fs.patch"]}},
    "mounts": {"project": {"path": ".", "dotfiles": ["**"]}},
    "limits": world.LIMITS,
}
MAX_DIFF = 6 << 20
OPTIONS = (("-M",), ("--no-renames",), ("-M", "--full-index", "-U1"), ("-C", "-U5"), ("--patience",))


def main() -> None:
    source, wanted = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", "--shared", str(source.resolve()), str(root)], check=True)
        print(asyncio.run(_compare(root, wanted)))


async def _compare(root: Path, wanted: int) -> str:
    dice = random.Random(3)
    commits = _git(root, "rev-list", "HEAD").split()
    seen: Counter[str] = Counter()
    async with toolgate.open(root, CONFIG, "memory") as gate:
        at = 0
        while seen["identical"] < wanted:
            if (
                seen.total() % 30 == 0
            ):  # elsewhere; else on from where the last pair ended, where little is to check out
                at = dice.randrange(len(commits))
                print(dict(seen), file=sys.stderr, flush=True)
            new = max(0, min(len(commits) - 1, at + dice.choice((-1, 1, -3, 5, -10, 30, -100))))
            seen[await _pair(gate, root, commits[at], commits[new], dice)] += 1
            at = new
    return ", ".join(f"{count} {word}" for word, count in seen.most_common())


async def _pair(gate: toolgate.Gate, root: Path, old: str, new: str, dice: random.Random) -> str:
    diff = _raw(root, "diff", *dice.choice(OPTIONS), old, new)
    if not diff or len(diff) > MAX_DIFF:
        return "empty or too long"
    if any(line.startswith("-\t-") for line in _git(root, "diff", "--numstat", old, new).splitlines()):
        return "with binary files, which a diff does not hold"
    try:
        text = diff.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    _git(root, "checkout", "-qf", old)
    _git(root, "clean", "-fdqx", "-e", ".toolgate")
    result = await gate.call("fs.patch", {"diff": text})
    if not result.ok:
        assert result.error is not None
        if said := _git(root, "status", "--porcelain", "--", ".", ":!.toolgate"):
            raise SystemExit(f"{old} {new}: refused, and the tree was touched: {said[:200]}")
        if result.error.code in ("not_allowed", "invalid_args"):
            return f"refused: {result.error.code}"  # a blocked name, a link, a submodule
        raise SystemExit(f"{old} {new}: {result.error}")
    _git(root, "add", "-A", "-f", "--", ".", ":!.toolgate")
    made, meant = _git(root, "write-tree"), _git(root, "rev-parse", f"{new}^{{tree}}")
    if made != meant:
        raise SystemExit(f"{old} {new}: another tree")
    return "identical"


def _git(root: Path, *args: str) -> str:
    return _raw(root, *args).decode("utf-8", "replace").strip()


def _raw(root: Path, *args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True).stdout


if __name__ == "__main__":
    main()
