"""Dotfiles that a mount lists, as globs for rg: what is hidden otherwise, the directories that lead there, and, where
the caller chose files, only those that are chosen too. In rg the last glob that matches decides alone, so a dotfile
that is listed after the caller's choice would be searched whether or not it was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolgate.policy.globs import text_glob
from toolgate.policy.globtext import expand
from toolgate.workspace.search.rgspelling import globs, of_files

_WILD = set("*?[{")
_ODD = set("[{\\")
_FEW = 8
"""More alternatives of a path are not spelled out: each is tried with everything that is listed."""


def entered(
    ways: Iterable[str], listed: list[str], names: Iterable[str], paths: Iterable[str], files: tuple[str, ...]
) -> list[str]:
    """Directories that lead to what is listed. A hidden one shows nothing else, unless something opens it too: its
    name, or a pattern of paths."""
    opening = [text_glob(name) for name in names]
    starts = [_fixed(glob) for glob in globs(paths)]
    found: list[str] = []
    for way in ways:
        inside = f"/{way}/"
        found += met([f"/{way}"], files)
        dotted = [part for part in way.split("/") if part.startswith(".")]
        named = all(any(name.matches(part) for name in opening) for part in dotted)
        loose = bool(_WILD & set(way)) or any(
            inside.startswith(start) and start != inside for start in starts
        )
        if not (named or loose or {f"{inside}**", f"{inside}**/"} & {*listed}):
            found.append(f"!{inside}**")
    return found


def met(listed: list[str], files: tuple[str, ...]) -> list[str]:
    """Of what is listed, what is chosen too."""
    if files == ("*",):
        return listed
    chosen = of_files(one for text in files for one in (expand(text) if "/" in text else (text,)))
    if len(chosen) > _FEW:
        return listed
    return list(dict.fromkeys(glob for one in listed for other in chosen for glob in _meet(one, other)))


def _meet(listed: str, chosen: str) -> list[str]:
    """What matches both, and directories that may lead there; what is listed where no glob can say it."""
    anywhere = chosen.startswith("**/")
    if _ODD & set(chosen) and "/" in chosen.removeprefix("**/"):
        return [listed]
    ours, theirs = _fixed(listed), _fixed(chosen)
    way, _, name = listed.rpartition("/")
    if not (ours.startswith(theirs) or theirs.startswith(ours)):
        return []
    if name != "**":
        return [f"{listed}/", *_named(listed, name, chosen)]
    if anywhere and "/" in chosen.removeprefix("**/"):
        return [listed]  # its first names may be those of the listed directory itself
    if anywhere:
        return [f"{listed}/", f"{way}/{chosen}"]
    return [f"{listed}/", chosen] if theirs.startswith(f"{way}/") else [listed]


def _named(listed: str, name: str, chosen: str) -> list[str]:
    way, _, last = chosen.rpartition("/")
    if last == "**":
        return [f"{chosen}/{name}"]
    if _WILD & set(name):
        return [listed]
    if not text_glob(last).matches(name):
        return []
    return [listed] if way == "**" else [f"{way}/{name}"]


def _fixed(glob: str) -> str:
    """The path up to the first name with a wildcard; all of it where there is none."""
    wild = min((at for at, char in enumerate(glob) if char in _WILD), default=-1)
    return glob if wild < 0 else glob[: glob.rfind("/", 0, wild) + 1]
