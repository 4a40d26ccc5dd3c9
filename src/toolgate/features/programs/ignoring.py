"""Names that a program leaves by the way: what git ignores, and caches of usual tools. No change of the project.

Patterns are read from the project's `.gitignore` files as git reads them, and compiled for an engine without
backtracking: an agent may have written them. What is left out is never written, so a wrong pattern loses a cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import re2

from toolgate.core.paths import MountPath

CACHES = frozenset(
    {
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints",
        ".coverage", ".cache", ".parcel-cache", ".turbo", ".nyc_output", ".eslintcache", ".stylelintcache", ".DS_Store",
        ".gradle", ".sass-cache",
    }
)  # fmt: skip
"""Files and directories that tools make for themselves, by their name at any depth."""
_ENDINGS = (".pyc", ".pyo")
MAX_FILE = 256 << 10
MAX_PATTERNS = 2000
LONGEST = 1000

Read = Callable[[MountPath], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    found: re2._Regexp
    takes_back: bool
    only_directories: bool


@dataclass(slots=True)
class Ignored:
    """What the patterns of the project say, as they were before the program ran."""

    read: Read
    _known: dict[str, list[IgnorePattern]] = field(default_factory=dict)

    async def why(self, path: str, is_directory: bool) -> tuple[str, str]:
        """`a cache` or `ignored by git`, and the name that is; nothing twice where it is neither. What is in an ignored
        directory is ignored with it."""
        parts = path.split("/")
        for count, part in enumerate(parts, 1):
            name = "/".join(parts[:count])
            if part in CACHES or part.endswith(_ENDINGS):
                return "a cache", name
            if await self._ignores(parts[:count], is_directory or count < len(parts)):
                return "ignored by git", name
        return "", ""

    async def _ignores(self, parts: list[str], is_directory: bool) -> bool:
        """The last pattern that matches decides; those that are nearer to the file come after the others."""
        ignored = False
        for depth in range(len(parts)):
            relative = "/".join(parts[depth:])
            for pattern in await self._patterns("/".join(parts[:depth])):
                if (is_directory or not pattern.only_directories) and pattern.found.fullmatch(relative):
                    ignored = not pattern.takes_back
        return ignored

    async def _patterns(self, directory: str) -> list[IgnorePattern]:
        if directory not in self._known:
            place = f"{directory}/.gitignore" if directory else ".gitignore"
            content = await self.read(MountPath(f"project:{place}"))
            lines = (content or b"")[:MAX_FILE].decode("utf-8", "replace").split("\n")[:MAX_PATTERNS]
            found = (compiled(line.rstrip("\r")) for line in lines)
            self._known[directory] = [one for one in found if one is not None]
        return self._known[directory]


def compiled(line: str) -> IgnorePattern | None:
    """One line of a `.gitignore`; None where it says nothing."""
    text = line
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#") or len(text) > LONGEST:
        return None
    takes_back = text.startswith("!")
    text = text[1:] if takes_back else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text or _unclosed(text):
        return None
    try:
        found = re2.compile(("" if anchored else "(?:.*/)?") + _translated(text))
    except re2.error:
        return None
    return IgnorePattern(found, takes_back, only_directories)


def _translated(glob: str) -> str:
    made, at = "", 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            made, at = made + "(?:.*/)?", at + 3
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            made, at = made + ".+", at + 2
        elif char == "*":
            made, at = made + "[^/]*", at + 1
        elif char == "?":
            made, at = made + "[^/]", at + 1
        elif char == "[" and (end := glob.find("]", at + 2)) > 0:
            made, at = made + _one_of(glob[at + 1 : end]), end + 1
        else:
            at += char == "\\" and at + 1 < len(glob)
            made, at = made + re2.escape(glob[at]), at + 1
    return made


def _unclosed(glob: str) -> bool:
    """A set without an end matches nothing."""
    at = glob.rfind("[")
    return at >= 0 and glob[max(at - 1, 0)] != "\\" and glob.find("]", at + 2) < 0


def _one_of(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    inner = inner.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"[{'^/' if negated else ''}{inner}]"
