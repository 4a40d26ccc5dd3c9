"""The arguments of `code.*`, what a model is told of each, and what a call of them reads. Paths say themselves what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.effects import FILE_WORDS, Effects
from toolgate.core.paths import MountPaths

MOST_MATCHES = 1000
"""Matches that one search shows."""

# --- searching

Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="Regular expression within one line (rust-regex: no look-around, no back-references).",
    ),
]
Paths = Annotated[
    MountPaths,
    Field(max_length=100, description="Files and directories to search; none means the whole project."),
]
FilePattern = Annotated[
    str,
    Field(
        max_length=512,
        description="Glob of files to search: a name at any depth (`*.py`), or with `/` a path from the mount.",
    ),
]
Excluded = Annotated[
    list[Annotated[str, Field(max_length=512)]],
    Field(max_length=100, description="Globs of files and directories to skip, written like `file_pattern`."),
]
Around = Annotated[int, Field(ge=0, le=20, description="Lines to show before and after each match.")]
CaseSensitive = Annotated[bool, Field(description="Whether upper and lower case differ.")]
MaxMatches = Annotated[int, Field(ge=1, le=MOST_MATCHES, description="Matching lines to show at most.")]
FilesOnly = Annotated[
    bool,
    Field(description="Only which files match and in how many lines, most first, at most `max_matches`."),
]
Numbers = Annotated[bool, Field(description="Whether each match has `line` and `column`.")]

# --- reading

FirstLine = Annotated[int, Field(ge=1, description="First line to read, counted from 1.")]
LastLine = Annotated[
    Annotated[int, Field(ge=1)] | None,
    Field(description="Last line to read, included; without it, the end of the file."),
]
MaxLines = Annotated[int, Field(ge=1, le=10_000, description="Lines to read at most.")]
Highlight = Annotated[bool, Field(description="Add `syntax_tokens`, to colour the lines by.")]
WithMetadata = Annotated[
    bool, Field(description="Add `metadata`: number of lines, size, encoding, time of change.")
]
AsList = Annotated[bool, Field(description="Add `lines`: the content as a list.")]
WithOutline = Annotated[
    bool,
    Field(description="Add `outline`, `imports` and `exports` of what was read, if the language is known."),
]
MaxSymbols = Annotated[int, Field(ge=1, le=5000, description="Definitions to give at most.")]

# --- listing

Listed = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        description="Glob: `*` is what is there itself, `*.py` a name at any depth, `src/**` with `/` a path from `directory`.",
    ),
]
Depth = Annotated[
    int, Field(ge=1, le=100, description="Levels to go down; 1 is what is in `directory` itself.")
]
Hidden = Annotated[
    bool, Field(description="Whether to show names that begin with a dot; blocked ones never are.")
]
Order = Annotated[
    Literal["name", "modified", "size"],
    Field(description="`modified` is newest first, `size` largest first."),
]
MaxEntries = Annotated[int, Field(ge=1, le=5000, description="Entries to give at most.")]


def reads_of(args: Mapping[str, Any]) -> Effects:
    mounts = {path.partition(":")[0] for path in _paths(args)} or {"project"}
    return Effects.of(tuple(mount if mount in FILE_WORDS else "project" for mount in mounts))


def _paths(args: Mapping[str, Any]) -> Iterator[str]:
    for name in ("path", "directory"):
        if isinstance(args.get(name), str):
            yield args[name]
    yield from args.get("paths") or ()
