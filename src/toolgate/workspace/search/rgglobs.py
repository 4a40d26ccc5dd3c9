"""Our globs as rg's `--glob` options. rg may be given too wide a choice, never too narrow: what it finds is judged
again by the Selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolgate.policy.globs import Glob, PathGlob
from toolgate.policy.globtext import expand
from toolgate.policy.hard import ALWAYS_BLOCKED, BLOCKED
from toolgate.workspace.search.selection import Selection

_NOT_WITHIN = set("/,{}\\")
"""What would mean something else among alternatives."""


def options(selection: Selection) -> list[str]:
    """In rg the last glob that matches decides, and those that ignore case come after all others."""
    rules = selection.rules
    wanted = globs(selection.files.texts) if selection.files is not None else ["*"]
    dots = rules.dotfiles
    listed = (one for text in [*_texts(dots.names), *_texts(dots.paths)] for one in expand(text))
    shown = [*_entered(_texts(dots.ways)), *_joined(globs(listed), _is_wild)]
    said = [*wanted, "!.*", *shown, *_not(globs(selection.excluded.texts))]
    opened = globs(way for glob in rules.unblock for way in _ways(glob.text))
    blocked = [
        *_not(_joined(globs(one for text in BLOCKED for one in expand(text)))),
        *opened,
        f"!{ALWAYS_BLOCKED}",
        *_not(globs(_hidden(selection))),
        *_not(_inner(selection)),
    ]
    return [f"--glob={glob}" for glob in said] + [f"--iglob={glob}" for glob in blocked]


def exactly(relatives: Iterable[str]) -> list[str]:
    """Options that choose these files and nothing else."""
    return [f"--glob=/{_literal(relative)}" for relative in relatives]


def globs(texts: Iterable[str]) -> list[str]:
    return [_glob(text.rpartition(":")[2]) for text in texts]


def _glob(one: str) -> str:
    if one.endswith("/"):
        one += "**"
    anchored = f"/{one}" if "/" in one else f"**/{one}" if one != "**" else one
    return anchored[:-1] + "[ ]" if anchored.endswith(" ") else anchored  # rg drops spaces at the end


def _entered(ways: Iterable[str]) -> list[str]:
    """Directories that lead to what is listed; a hidden one shows nothing else."""
    found: list[str] = []
    for way in ways:
        found.append(f"/{way}")
        if way.startswith(".") or "/." in way:
            found.append(f"!/{way}/**")
    return found


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


def _texts(compiled: Iterable[Glob | PathGlob]) -> list[str]:
    return [glob.text for glob in compiled]


def _not(found: list[str]) -> list[str]:
    return [f"!{glob}" for glob in found]


def _ways(text: str) -> list[str]:
    """The glob and the directories that lead to it, which may have a blocked name themselves."""
    parts = text.rpartition(":")[2].split("/")
    return [*("/".join(parts[:count]) for count in range(1, len(parts))), text]


def _hidden(selection: Selection) -> list[str]:
    """Hidden paths hold from the mount on, also where they have no slash."""
    texts = (glob.text.rpartition(":")[2] for glob in selection.rules.hidden)
    return [text if "/" in text else f"{text}/**" for text in texts]


def _inner(selection: Selection) -> list[str]:
    """Mounts within this one are no part of it."""
    rules = selection.rules
    return [f"/{_literal('/'.join(place[len(rules.base) :]))}" for place in rules.inner]


def _literal(text: str) -> str:
    return "".join(
        f"[{char}]" if char in "*?[{!# " else "\\" + char if char in "\\]}" else char for char in text
    )
