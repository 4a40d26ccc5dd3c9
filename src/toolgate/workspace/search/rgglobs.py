"""Our globs as rg's `--glob` options: `**/name` at any depth, `/path` from the mount on.

rg may be given too wide a choice, never too narrow: what it finds is judged again by the Selection. Dotfiles that a mount
lists become globs too, with the directories that lead there, and, where the caller chose files, only those that are
chosen: in rg the last glob that matches decides alone, so a dotfile that is listed after the caller's choice would be
searched whether or not it was chosen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from toolgate.policy.dotfiles import Dotfiles
from toolgate.policy.globs import Glob, PathGlob, expand, text_glob
from toolgate.policy.hard import ALWAYS_BLOCKED, BLOCKED
from toolgate.workspace.search.selection import Selection

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


_NOT_WITHIN = set("/,{}\\")
"""What would mean something else among alternatives."""
_WILD = set("*?[{")


class _Said(NamedTuple):
    """All that the options depend on, as texts: they are made once for the searches that say the same."""

    files: tuple[str, ...]
    excluded: tuple[str, ...]
    names: tuple[str, ...]
    paths: tuple[str, ...]
    ways: tuple[str, ...]
    unblock: tuple[str, ...]
    hidden: tuple[str, ...]
    inner: tuple[str, ...]


def options(selection: Selection, root: int) -> tuple[str, ...]:
    """For a search in the mount with this root handle."""
    rules = selection.rules
    names, listed, ways, tops = _of_dotfiles(rules.dotfiles)
    missing = {top for top in tops if not _there(root, top)}
    return _options(
        _Said(
            selection.files.texts if selection.files is not None else ("*",),
            selection.excluded.texts,
            names,
            tuple(text for text, top in listed if top not in missing),
            tuple(text for text, top in ways if top not in missing),
            _texts(rules.unblock),
            _texts(rules.hidden),
            tuple("/".join(place[len(rules.base) :]) for place in rules.inner),
        )
    )


def plain_options(selection: Selection, shut: Iterable[str]) -> list[str]:
    """For a tree in which the rules keep these paths shut and nothing else."""
    wanted = of_files(selection.files.texts) if selection.files is not None else []
    left_out = [*_not(globs(selection.excluded.texts)), *(f"!/{literal(path)}" for path in shut)]
    return [f"--glob={glob}" for glob in in_bytes((*wanted, *left_out))]


_Placed = tuple[tuple[str, str], ...]
"""Texts, each with the first name on its way."""


@lru_cache(maxsize=64)
def _of_dotfiles(dots: Dotfiles) -> tuple[tuple[str, ...], _Placed, _Placed, tuple[str, ...]]:
    """Names, paths, the ways to them, and all first names."""
    listed, ways = ([(text, _top(text)) for text in _texts(globs)] for globs in (dots.paths, dots.ways))
    tops = dict.fromkeys(top for _, top in (*ways, *listed))
    return _texts(dots.names), tuple(listed), tuple(ways), tuple(tops)


@lru_cache(maxsize=64)
def _options(said: _Said) -> tuple[str, ...]:
    """In rg the last glob that matches decides, and those that ignore case come after all others."""
    wanted = ["*"] if said.files == ("*",) else of_files(said.files)
    listed = met(of_files(one for text in (*said.names, *said.paths) for one in expand(text)), said.files)
    shown = [*entered(said.ways, listed, said.names, said.paths, said.files), *_joined(listed, _is_wild)]
    first = [*wanted, "!.*", *shown, *_not(globs(dict.fromkeys((*said.excluded, *_SHUT))))]
    opened = met(globs(way for text in said.unblock for way in _ways(text)), said.files)
    blocked = [
        *_not(_joined(globs(text for text in BLOCKED if text not in _SHUT))),
        *([*opened, f"!{ALWAYS_BLOCKED}"] if opened else ()),
        *_not(of_files(_hidden(said.hidden))),
        *(f"!/{literal(place)}" for place in said.inner if ALWAYS_BLOCKED not in place.split("/")),
    ]
    return (
        *(f"--glob={glob}" for glob in in_bytes(first)),
        *(f"--iglob={glob}" for glob in in_bytes(blocked)),
    )


_SHUT = (
    ALWAYS_BLOCKED,
    *(text for text in BLOCKED if text.startswith(".") and not set(text) & _WILD),
)
"""Blocked names that `!.*` hides in any spelling unless something listed leads to them: the plain one is enough."""


def _top(text: str) -> str:
    """The first name on the way; nothing where it may be any."""
    top = text.rpartition(":")[2].partition("/")[0]
    return "" if set(top) & _WILD else top


def _there(root: int, top: str) -> bool:
    """Every glob costs rg time at every file, and few projects have all that is usual."""
    try:
        return not top or bool(os.stat(top, dir_fd=root, follow_symlinks=False))
    except OSError:
        return False


def exactly(relatives: Iterable[str]) -> list[str]:
    """Options that choose these files and nothing else."""
    return [f"--glob=/{literal(relative)}" for relative in relatives]


def _joined(found: list[str], which: Callable[[str], bool] = lambda glob: True) -> list[str]:
    """Names at any depth as one glob of alternatives. rg looks up a plain name in a table, but tries every pattern on
    every file it comes to, and what ignores case is a pattern."""
    together = [
        glob for glob in found if glob.startswith("**/") and not set(glob[3:]) & _NOT_WITHIN and which(glob)
    ]
    if len(together) < 2:
        return found
    rest = [glob for glob in found if glob not in together]
    return [*rest, f"**/{{{','.join(glob[3:] for glob in together)}}}"]


def _is_wild(glob: str) -> bool:
    return bool(set(glob[3:]) & set("*?["))


def _texts(compiled: Iterable[Glob | PathGlob]) -> tuple[str, ...]:
    return tuple(glob.text for glob in compiled)


def _not(found: list[str]) -> list[str]:
    return [f"!{glob}" for glob in found]


def _ways(text: str) -> list[str]:
    """The glob and the directories that lead to it, which may have a blocked name themselves."""
    parts = text.rpartition(":")[2].split("/")
    return [*("/".join(parts[:count]) for count in range(1, len(parts))), text]


def _hidden(hidden: Iterable[str]) -> list[str]:
    """Hidden paths hold from the mount on, also where they have no slash."""
    texts = (text.rpartition(":")[2] for text in hidden)
    return [text if "/" in text else f"{text}/**" for text in texts]


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
