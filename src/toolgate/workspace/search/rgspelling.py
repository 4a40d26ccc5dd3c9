"""Our globs in rg's spelling: `**/name` at any depth, `/path` from the mount on."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ONE = re.compile(r"\\.|\[!?.[^\]]*\]|[*?]*\?[*?]*", re.DOTALL)
"""What is about single characters, and what is escaped."""
_ASCII = "[ -.0-~]"


def of_files(texts: Iterable[str]) -> list[str]:
    """`a/**` is also about a file `a`, which it is not in rg."""
    found: list[str] = []
    for glob in globs(texts):
        found.append(glob)
        while glob.endswith("/**"):
            glob = _ended(glob[:-3])
            found.append(glob)
    return found


def globs(texts: Iterable[str]) -> list[str]:
    return [_glob(text.rpartition(":")[2]) for text in texts]


def _glob(one: str) -> str:
    if one.endswith("/"):
        one += "**"
    if "/" not in one and one != "**":
        one = f"**/{one}"
    anchored = one if one.startswith("**") else f"/{one}"
    return _ended(anchored)


def _ended(glob: str) -> str:
    """rg drops spaces at the end."""
    return glob[:-1] + "[ ]" if glob.endswith(" ") else glob


def literal(text: str) -> str:
    return "".join("\\" + char if char in "*?[]{}!# \\" else char for char in text)


def in_bytes(globs: Iterable[str]) -> list[str]:
    """For us `?` and `[!a]` are about a character, for rg about a byte. Where that differs a choice is made wider, and
    what is left out narrower, or is not said at all."""
    found: list[str] = []
    for glob in globs:
        if not glob.startswith("!"):
            found.append(_ONE.sub(lambda one: one[0] if _same(one[0]) else "*", glob))
        elif all(_same(one) or one[0] in "*?" for one in _ONE.findall(glob)):
            found.append(_ONE.sub(lambda one: one[0] if _same(one[0]) else one[0].replace("?", _ASCII), glob))
    return found


def _same(one: str) -> bool:
    """An escaped character, or a set of ASCII characters."""
    return one[0] == "\\" or (one[0] == "[" and one[1] != "!" and one.isascii())
