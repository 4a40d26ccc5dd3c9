"""Every way in which a tool takes the name of something, found in the registry so that no tool is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from toolgate.core.names import Registry
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool

Kind = Literal["path", "diff", "glob", "revision"]
ABOUT_FILES = frozenset({"project", "scratch", "garden"})
GLOBS = {
    ("fs.list", "glob"), ("fs.find", "pattern"), ("fs.search", "file_pattern"), ("code.list", "pattern"),
    ("code.search", "file_pattern"), ("code.search", "exclude_patterns"),
}  # fmt: skip
REVISIONS = {("code.diff", "base"), ("code.diff", "compare"), ("code.show", "commit")}
DIFFS = {("fs.patch", "diff"), ("fs.patch", "diff_text")}
TEXTS = {
    ("fs.write", "content"), ("fs.write", "if_match"), ("fs.append", "text"), ("fs.edit", "find"), ("fs.edit", "replace"),
    ("fs.save", "content"), ("fs.search", "pattern"), ("code.search", "pattern"), ("code.list", "sort_by"), ("code.diff", "view"),
    ("code.log", "since"), ("code.log", "until"), ("code.log", "author"), ("code.log", "grep"),
    ("events.artifacts", "conversation"), ("fs.apply", "execution"), ("fs.hash", "section_anchor"), ("fs.read", "section_anchor"),
    *(("garden.add", one) for one in ("kind", "title", "participants", "id", "user", "mount")),
    *(("md.curate_list", one) for one in ("section_anchor", "reason", "items", "evidence_refs", "override_rationale", "if_match", "ops")),
    *(("md.patch_section", one) for one in ("section_anchor", "change", "replace", "append", "evidence_refs", "if_match", "rationale", "override_rationale")),
    *(("md.propose_change", one) for one in ("section_anchor", "change", "content", "replace", "append", "rationale", "override_rationale")),
}  # fmt: skip
"""Texts that name nothing; what `garden.add` makes of its ids is attacked in tests/garden."""
GIVEN: dict[str, dict[str, Any]] = {
    "fs.edit": {"find": "a", "replace": "owned", "all": True},
    "code.execute": {"language": "python"},
    "code.action": {"action": "execute", "language": "python"},
    "fs.find": {"pattern": "*"},
    "fs.search": {"pattern": "."},
    "code.search": {"pattern": "."},
    "code.show": {"commit": "HEAD"},
    "fs.patch": {"diff_text": "@@ -1 +1 @@\n-a plain page\n+owned\n"},
}
"""What a tool needs beside the name, where `owned` will not do."""


@dataclass(frozen=True, slots=True)
class Way:
    tool: str
    label: str
    kind: Kind
    args: Callable[[str], dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.tool} {self.label}"


def about_files(tool: Tool) -> bool:
    return not ABOUT_FILES.isdisjoint({*tool.effects.reads, *tool.effects.writes})


def names_of(tool: Tool) -> dict[str, bool]:
    """The arguments that hold paths, and whether they hold several."""
    found = {name: _holds(info.annotation) for name, info in tool.args.model_fields.items()}
    return {name: many for name, many in found.items() if many is not None}


def texts_of(tool: Tool) -> set[str]:
    """The arguments that hold text which is no path by its type."""
    return {
        name for name, info in tool.args.model_fields.items() if _texts(info.annotation) and name not in names_of(tool)
    }  # fmt: skip


def _holds(hint: Any) -> bool | None:
    if isinstance(hint, type) and issubclass(hint, MountPath):
        return False
    inner = [found for found in map(_holds, get_args(hint)) if found is not None]
    if not inner:
        return None
    return getattr(hint, "__origin__", None) is list or any(inner)


def _texts(hint: Any) -> bool:
    return hint is str or isinstance(hint, str) or any(map(_texts, get_args(hint)))


def ways(registry: Registry) -> list[Way]:
    found = [way for tool in registry if not tool.human for way in _ways(tool)]
    return [*found, *_diffs()]


def _ways(tool: Tool) -> Iterator[Way]:
    for name, many in names_of(tool).items():
        yield Way(tool.name, name, "path", _argument(tool, name, many))
    for name in sorted(texts_of(tool)):
        if (tool.name, name) in GLOBS:
            yield Way(tool.name, name, "glob", _argument(tool, name, name.endswith("s")))
        if (tool.name, name) in REVISIONS:
            yield Way(tool.name, name, "revision", _argument(tool, name, False))
            yield Way(tool.name, f"{name} with a path", "revision", _argument(tool, name, False, "HEAD:"))


def _argument(tool: Tool, name: str, many: bool, before: str = "") -> Callable[[str], dict[str, Any]]:
    base: dict[str, Any] = {}
    for other, info in tool.args.model_fields.items():
        if other != name and info.is_required():
            base[other] = (
                ("loot" if other.startswith("new") else "a.txt") if other in names_of(tool) else "owned"
            )
    base |= {key: value for key, value in GIVEN.get(tool.name, {}).items() if key != name}
    return lambda path: {**base, name: [path] if many else before + path}


_HUNK = "@@ -1 +1 @@\n-a plain page\n+owned\n"
_DIFFS = {
    "changes": "--- a/{0}\n+++ b/{0}\n" + _HUNK,
    "bare name": "--- {0}\n+++ {0}\n" + _HUNK,
    "makes": "--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+owned\n",
    "deletes": "--- a/{0}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a plain page\n",
    "renames to": "diff --git a/a.txt b/{0}\nsimilarity index 100%\nrename from a.txt\nrename to {0}\n",
    "renames from": "diff --git a/{0} b/loot\nsimilarity index 100%\nrename from {0}\nrename to loot\n",
    "copies from": "diff --git a/{0} b/loot\nsimilarity index 100%\ncopy from {0}\ncopy to loot\n",
    "modes": "diff --git a/{0} b/{0}\nold mode 100644\nnew mode 100755\n",
    "after another": "--- a/a.txt\n+++ b/a.txt\n" + _HUNK + "--- a/{0}\n+++ b/{0}\n" + _HUNK,
}  # fmt: skip


def _diffs() -> Iterator[Way]:
    for label, text in _DIFFS.items():
        yield Way(
            "fs.patch", f"that {label}", "diff", lambda path, text=text: {"diff": text.format(_quoted(path))}
        )  # type: ignore[misc]


def _quoted(path: str) -> str:
    """As git would write it in a diff."""
    if all(32 <= ord(char) < 127 and char not in '"\\' for char in path):
        return path
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogatepass")
    return (
        '"'
        + "".join(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:03o}" for byte in raw)
        + '"'
    )
