"""`python -m bench.patches REPOSITORY [PAIRS]`: what git prints between two commits, applied by `fs.patch`.

Pairs of commits are drawn at random, near ones and far ones. The first is checked out, the diff goes through the gate,
and git says whether the tree is then the second's, to the byte and the mode. The repository itself is only cloned.
The tests do the same with the project's own history.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
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
STEPS = (-1, 1, -3, 5, -10, 30, -100, 300)
IDENTICAL = "identical"
QUIET = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}
BINARY = b"\nBinary files "


class Different(AssertionError):
    """`fs.patch` did something else than git."""


def main() -> None:
    source, wanted = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    with tempfile.TemporaryDirectory() as folder:
        root = cloned(source, Path(folder) / "clone")
        print(asyncio.run(_compare(root, wanted)))


def cloned(source: Path, root: Path) -> Path:
    subprocess.run(["git", "clone", "-q", "--dissociate", str(source.resolve()), str(root)], check=True)
    return root


async def _compare(root: Path, wanted: int) -> str:
    dice = random.Random(3)
    seen: Counter[str] = Counter()
    async with toolgate.open(root, CONFIG, "memory") as gate:
        for old, new in drawn(dice, git(root, "rev-list", "HEAD").split()):
            if seen[IDENTICAL] == wanted:
                break
            if seen.total() % 30 == 0:
                print(dict(seen), file=sys.stderr, flush=True)
            seen[await pair(gate, root, old, new, *dice.choice(OPTIONS))] += 1
    return ", ".join(f"{count} {word}" for word, count in seen.most_common())


def drawn(dice: random.Random, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs without end, in both directions: each from where the last one ended, where little is to check out."""
    at = 0
    for number in count():
        if number % 30 == 0:  # elsewhere
            at = dice.randrange(len(commits))
        new = max(0, min(len(commits) - 1, at + dice.choice(STEPS)))
        yield commits[at], commits[new]
        at = new


async def pair(
    gate: toolgate.Gate, root: Path, old: str, new: str, *options: str, most: int = MAX_DIFF
) -> str:
    """What became of it, in a word. Raises where the tree is another, or was touched though it was refused."""
    diff = raw(root, "diff", *options, old, new)
    if not diff or len(diff) > most:
        return "empty or too long"
    if BINARY in diff:
        return "with binary files, which a diff does not hold"
    try:
        text = diff.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    check_out(root, old)
    result = await gate.call("fs.patch", {"diff": text})
    if not result.ok:
        assert result.error is not None
        untouched(root, f"{old} {new}")
        if result.error.code in ("not_allowed", "invalid_args", "blocked_content"):
            return f"refused: {result.error.code}"  # a blocked name, a link, a submodule, the word for a masked secret
        raise Different(f"{old} {new}: {result.error}")
    if tree_on_disk(root) != git(root, "rev-parse", f"{new}^{{tree}}"):
        raise Different(f"{old} {new}: another tree")
    return IDENTICAL


def check_out(root: Path, commit: str) -> None:
    git(root, "checkout", "-qf", commit)
    git(root, "clean", "-fdqx", "-e", ".toolgate")


def untouched(root: Path, about: str) -> None:
    """It is as it was checked out."""
    if said := git(root, "status", "--porcelain", "--", ".", ":!.toolgate"):
        raise Different(f"{about}: refused, and the tree was touched: {said[:200]}")


def tree_on_disk(root: Path) -> str:
    """The id of a tree of what is there, whatever is ignored."""
    git(root, "add", "-A", "-f", "--", ".", ":!.toolgate")
    return git(root, "write-tree")


def git(root: Path, *args: str) -> str:
    return raw(root, *args).decode("utf-8", "replace").strip()


def raw(root: Path, *args: str) -> bytes:
    """Without anybody's settings, which may make a diff look otherwise."""
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, env=QUIET).stdout


if __name__ == "__main__":
    main()
