"""Random histories of random trees, made with git in one go, and the diffs git prints between their commits."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolgate.core.paths import MountPath
from toolgate.workspace.patch import apply
from toolgate.workspace.patch.parse import parse

Tree = dict[str, tuple[bytes, bool]]
"""Name → content, executable."""

NAMES = (
    "a.txt", "b.py", "src/main.py", "src/deep/er/x.c", "with blank.txt", "grün/straße.md", "日本語.txt",
    'say "hi".txt', "docs/a b/c d.md", "empty", "é", "a/a.txt", "b/b", "tool.sh", "x", "src/y -> z",
)  # fmt: skip
WORDS = ("", "}", "    return x", "\tgo()", "import os", "+plus", "-minus", "--- a/x", "+++ b/x", "@@ -1 +1 @@", " ",
         "\\ No newline at end of file", "ünïcode", "diff --git a/x b/x", "\x0c", "a\rb")  # fmt: skip


@dataclass(frozen=True)
class Pair:
    before: Tree
    after: Tree
    diff: bytes


def git(*args: str, cwd: Path, feed: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Without anybody's configuration, and without a repository above `cwd`."""
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}
    bounds = {"GIT_CEILING_DIRECTORIES": str(cwd.parent)}
    return subprocess.run(
        ["git", *args], cwd=cwd, input=feed, capture_output=True, env=os.environ | quiet | bounds, timeout=60
    )


def some_text(dice: random.Random, size: int = 30) -> bytes:
    end = b"\r\n" if dice.random() < 0.15 else b"\n"
    lines = [_line(dice).encode() for _ in range(dice.randrange(size))]
    text = b"".join(line + end for line in lines)
    return text.removesuffix(end) if dice.random() < 0.2 else text


def _line(dice: random.Random) -> str:
    return dice.choice(WORDS) if dice.random() < 0.6 else f"line {dice.randrange(40)}"


def edited(dice: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(lines) + 1)
        kind = dice.random()
        if kind < 0.4:
            lines.insert(at, _line(dice).encode() + (b"\r" if dice.random() < 0.1 else b""))
        elif kind < 0.7:
            lines[at : at + dice.randint(1, 3)] = []
        else:
            lines[at : at + 1] = [_line(dice).encode()]
    text = b"\n".join(lines)
    return text.rstrip(b"\n") if dice.random() < 0.1 else text


def next_tree(dice: random.Random, tree: Tree) -> Tree:
    tree = dict(tree)
    for _ in range(dice.randint(1, 4)):
        kind = dice.choice(("edit", "edit", "edit", "create", "delete", "rename", "copy", "mode"))
        name = dice.choice(sorted(tree)) if tree else ""
        free = dice.choice([other for other in NAMES if other not in tree] or [""])
        if (kind == "create" or not name) and free:
            tree[free] = (b"" if dice.random() < 0.15 else some_text(dice), dice.random() < 0.2)
        elif kind == "edit":
            tree[name] = (edited(dice, tree[name][0]), tree[name][1])
        elif kind == "delete" and len(tree) > 3:
            del tree[name]
        elif kind in ("rename", "copy") and free:
            content, executable = tree.pop(name) if kind == "rename" else tree[name]
            tree[free] = (edited(dice, content) if dice.random() < 0.5 else content, executable)
        elif kind == "mode":
            tree[name] = (tree[name][0], not tree[name][1])
    return tree if tree else {"x": (b"x\n", False)}


def history(dice: random.Random, folder: Path, commits: int) -> list[Tree]:
    """A linear history in `folder`, and its trees."""
    git("init", "-q", "-b", "main", cwd=folder)
    tree: Tree = {name: (some_text(dice), dice.random() < 0.2) for name in dice.sample(NAMES, 8)}
    trees = [tree]
    while len(trees) < commits:
        tree = next_tree(dice, tree)
        if tree != trees[-1]:
            trees.append(tree)
    done = git("fast-import", "--quiet", cwd=folder, feed=b"".join(_stream(trees)))
    assert done.returncode == 0, done.stderr
    return trees


def _stream(trees: list[Tree]) -> Iterator[bytes]:
    for number, tree in enumerate(trees):
        yield b"commit refs/heads/main\ncommitter t <t@t> %d +0000\ndata 0\n" % (1_000_000 + number)
        yield b"deleteall\n"
        for name, (content, executable) in tree.items():
            quoted = b'"' + name.encode().replace(b'"', b'\\"') + b'"'
            mode = b"100755" if executable else b"100644"
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, quoted, len(content), content)


def pairs(folder: Path, trees: list[Tree], *options: str) -> list[Pair]:
    """What git prints between consecutive commits, with these options."""
    revisions = git("rev-list", "--reverse", "main", cwd=folder).stdout.split()
    assert len(revisions) == len(trees)
    shown = git(
        "diff-tree", "--stdin", "-p", "-r", *options, cwd=folder, feed=b"\n".join(revisions) + b"\n"
    ).stdout
    starts = [shown.index(revision + b"\n") for revision in revisions[1:]]
    diffs = [shown[start + 41 : end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return [Pair(*found) for found in zip(trees[:-1], trees[1:], diffs, strict=True)]


def patched(tree: Tree, diff: bytes) -> Tree:
    """The tree after our own engine; raises what it raises."""
    done = apply(parse(diff), lambda path: tree[path.relative][0] if path.relative in tree else None)
    after = dict(tree)
    for file in done.files:
        after.pop(file.path.relative, None)
        if file.after is not None:
            after[file.path.relative] = (file.after, False)
    for one in done.patched:
        if one.path.relative in after and one.op != "delete":
            kept = (
                tree[one.origin.relative][1] if one.origin.relative in tree and one.op != "create" else False
            )
            executable = bool(one.mode & 0o100) if one.mode else kept
            after[one.path.relative] = (after[one.path.relative][0], executable)
    return after


def path(name: str) -> MountPath:
    return MountPath.parse(name)


def lay_out(tree: Tree, folder: Path) -> None:
    for name, (content, executable) in tree.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if executable else 0o644)


def found_in(folder: Path) -> Tree:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), bool(file.stat().st_mode & 0o100))
        for file in folder.rglob("*")
        if file.is_file()
    }


def by_git(tree: Tree, diff: bytes, folder: Path, *options: str) -> Tree | None:
    """The tree after `git apply` in an empty folder; None where it refuses."""
    folder.mkdir()
    lay_out(tree, folder)
    done = git("apply", "--whitespace=nowarn", *options, "-", cwd=folder, feed=diff)
    found = found_in(folder)
    if done.returncode:
        assert found == tree, "git apply itself left something behind"
        return None
    return found
