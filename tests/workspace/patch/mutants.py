"""Diffs and trees, damaged at random."""

from __future__ import annotations

import random
import re

from .histories import Tree, edited, some_text

_NUMBERS = re.compile(rb"\d+")


def damaged(dice: random.Random, diff: bytes) -> bytes:
    lines = diff.splitlines(keepends=True) if dice.random() < 0.2 else diff.split(b"\n")
    joint = b"" if diff and lines[0].endswith(b"\n") else b"\n"
    kind = dice.choice(
        ("change", "sign", "delete", "twice", "number", "cut", "insert", "swap", "blank", "hunk")
    )
    at = dice.randrange(len(lines))
    if kind == "change":
        lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)] + b"?"
    elif kind == "sign":
        lines[at] = dice.choice((b" ", b"+", b"-", b"\\")) + lines[at][1:]
    elif kind == "delete":
        del lines[at]
    elif kind == "twice":
        lines.insert(at, lines[at])
    elif kind == "number":
        return _shifted(dice, lines, joint)
    elif kind == "cut":
        return diff[: dice.randrange(len(diff) + 1)]
    elif kind == "insert":
        lines.insert(
            at,
            dice.choice(
                (b" new", b"+new", b"-new", b"junk", b"", b"\\ No newline at end of file", b"@@ -1 +1 @@")
            ),
        )
    elif kind == "swap":
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "blank":
        lines[at] = lines[at].rstrip()
    else:
        heads = [index for index, line in enumerate(lines) if line.startswith(b"@@ -")]
        if heads:
            start = dice.choice(heads)
            end = next((index for index in heads if index > start), start + dice.randint(1, 6))
            lines[start:end] = []
    return joint.join(lines)


def _shifted(dice: random.Random, lines: list[bytes], joint: bytes) -> bytes:
    heads = [index for index, line in enumerate(lines) if line.startswith(b"@@ -")]
    if heads:
        at = dice.choice(heads)
        numbers = list(_NUMBERS.finditer(lines[at]))
        one = dice.choice(numbers[:4])
        new = max(0, int(one[0]) + dice.choice((-7, -3, -2, -1, 1, 2, 3, 7, 1000)))
        lines[at] = lines[at][: one.start()] + b"%d" % new + lines[at][one.end() :]
    return joint.join(lines)


def moved_on(dice: random.Random, tree: Tree) -> Tree:
    """The tree after somebody else's hand: lines shifted, edited, files gone or come."""
    tree = dict(tree)
    for _ in range(dice.randint(1, 3)):
        name = dice.choice(sorted(tree))
        content, executable = tree[name]
        kind = dice.random()
        if kind < 0.5:
            tree[name] = (some_text(dice, 6).rstrip(b"\n") + b"\n" + content, executable)
        elif kind < 0.8:
            tree[name] = (edited(dice, content), executable)
        elif kind < 0.9:
            tree[name] = (content + content, executable)
        elif len(tree) > 1:
            del tree[name]
    return tree
