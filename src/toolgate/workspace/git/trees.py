"""What an index remembers of trees (its extension `TREE`): with it git need not read every tree of a commit again.

Git counts entries by the numbers in it without a look at the entries, so it is kept only where every number is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_NODE = re.compile(rb"([^\0/]{0,4096})\0(-1|[0-9]{1,7}) ([0-9]{1,7})\n")
_DEEPEST = 200


def fits(content: bytes, names: Iterable[bytes], hash_size: int) -> bool:
    """Whether it speaks of these files: a directory after its parent, with the number of entries in it or -1."""
    counts = _counted(names)
    parents: list[tuple[bytes, int]] = []  # each with how many of its directories are still to come
    at = 0
    while True:
        node = _NODE.match(content, at)
        if node is None or len(parents) > _DEEPEST or bool(node[1]) != bool(parents):
            return False
        path = node[1]
        if parents:
            above, left = parents.pop()
            path = above + b"/" + path if above else path
            parents.append((above, left - 1))
        known = not node[2].startswith(b"-")
        if known and counts.get(path) != int(node[2]):
            return False
        at = node.end() + (hash_size if known else 0)
        parents.append((path, int(node[3])))
        while parents and not parents[-1][1]:
            parents.pop()
        if not parents:
            return at == len(content)


def _counted(names: Iterable[bytes]) -> Counter[bytes]:
    """How many files there are in each directory and below; the empty name is all of it."""
    counts: Counter[bytes] = Counter()
    for path, number in Counter(name.rpartition(b"/")[0] for name in names).items():
        counts[b""] += number
        while path:
            counts[path] += number
            path = path.rpartition(b"/")[0]
    return counts
