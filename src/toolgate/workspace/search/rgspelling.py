"""Our globs in rg's spelling: `**/name` at any depth, `/path` from the mount on."""

from __future__ import annotations

from collections.abc import Iterable


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
