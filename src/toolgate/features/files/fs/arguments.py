"""The arguments of `fs.*`, and what a model is told of each. What a call reads and writes depends on the mount of its paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from toolgate.core.annotations import BeforeValidator, Field
from toolgate.core.effects import Effects
from toolgate.core.paths import MountPath
from toolgate.workspace.files import WorkspaceFiles

_GLOB = Field(min_length=1, max_length=1000)
_Line = Annotated[int, Field(ge=1)]


def _pairs(value: Any) -> Any:
    """One range for a list of them, and `{start, end}`, as the slices of a result are told."""
    if isinstance(value, dict) or (isinstance(value, list) and len(value) == 2 and type(value[0]) is int):
        value = [value]
    if not isinstance(value, list):
        return value
    return [
        [each["start"], each["end"]] if isinstance(each, dict) and each.keys() == {"start", "end"} else each
        for each in value
    ]


Glob = Annotated[
    Annotated[str, _GLOB] | None,
    Field(description="Only what matches: names here (`*.py`), or with `/` paths below (`**/*.py`)."),
]
Pattern = Annotated[
    str,
    _GLOB,
    Field(description="Glob: a name at any depth (`*.py`), or with `/` a path from `base` (`src/**/*.py`)."),
]
Limit = Annotated[int, Field(ge=1, le=10_000, description="Entries to give at most.")]
Detailed = Annotated[bool, Field(description="Add `details`: kind, size and time of change of each.")]
Ranges = Annotated[
    Annotated[list[tuple[_Line, _Line]], Field(min_length=1, max_length=100), BeforeValidator(_pairs)] | None,
    Field(description="Lines to read, as `[[first, last], …]`: counted from 1, both included."),
]
InSection = Annotated[
    str, Field(max_length=80, description="Only this section of a garden file, by its anchor: `concerns v1`.")
]
Content = Annotated[str, Field(description="The whole new text of the file.")]
IfMatch = Annotated[
    Annotated[str, Field(max_length=256)] | None,
    Field(description="Write only if the file has this hash: `hash` of `fs.read`, `new_hash` of a write."),
]
Added = Annotated[str, Field(description="What to add at the end; no newline is put before it.")]
Find = Annotated[str, Field(min_length=1, description="The exact text to replace, no pattern; may be lines.")]
Replace = Annotated[str, Field(description="What to put in its place.")]
Every = Annotated[bool, Field(description="Replace it wherever it stands, not only where it stands once.")]
NewPath = Annotated[
    MountPath, Field(description="Where it goes, with its new name; nothing may be there yet.")
]


def by_mount(files: WorkspaceFiles, *paths: str, writes: bool) -> Callable[[Mapping[str, Any]], Effects]:
    """Effects from the arguments of these names. A mount whose kind has no word of its own counts as the project."""

    def effects_of(args: Mapping[str, Any]) -> Effects:
        mounts = (str(args[name]).partition(":")[0] for name in paths)
        words = frozenset(files.effect_word(mount) or "project" for mount in mounts)
        return _effects(words, writes)

    return effects_of


@lru_cache(maxsize=32)
def _effects(words: frozenset[str], writes: bool) -> Effects:
    return Effects.of(tuple(words), tuple(words) if writes else ())
