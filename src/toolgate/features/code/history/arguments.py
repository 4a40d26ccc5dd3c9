"""The arguments of the history tools, and what a model is told of each. Paths say themselves what they are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from toolgate.core.paths import MountPath, MountPaths
from toolgate.features.code.history.shapes import MAX_DIFF

_REVISION = Field(min_length=1, max_length=400)
_TEXT = Field(max_length=200)
_LINE = Field(ge=1, le=10_000_000)

Commit = Annotated[
    str, _REVISION, Field(description="One commit: a hash, a branch, a tag or such as `HEAD~1`; no range.")
]
Base = Annotated[
    str, _REVISION, Field(description="The old side: a hash, a branch, a tag or such as `HEAD~1`; no range.")
]
Compare = Annotated[
    Annotated[str, _REVISION] | None,
    Field(description="The new side, written like `base`; without it, tracked files as they are now."),
]
Paths = Annotated[
    Annotated[MountPaths, Field(max_length=100)] | None,
    Field(description="Only these files and directories."),
]
Around = Annotated[int, Field(ge=0, le=100, description="Unchanged lines to show around each change.")]
IgnoreSpace = Annotated[bool, Field(description="Take lines that differ only in white space for equal.")]
MaxDiff = Annotated[int, Field(ge=1, le=MAX_DIFF, description="Bytes of hunks to give at most.")]
View = Annotated[
    Literal["unified", "split"],
    Field(description="Hunks as `lines`, or as `rows` with old and new lines side by side."),
]
Touching = Annotated[MountPath, Field(description="Only commits that touch this file or directory.")]
MaxCommits = Annotated[int, Field(ge=1, le=100, description="Commits to give at most.")]
Since = Annotated[
    str, _TEXT, Field(description="Only commits after this: a date (`2026-01-31`) or `2 weeks ago`.")
]
Until = Annotated[str, _TEXT, Field(description="Only commits before this, written like `since`.")]
Author = Annotated[
    str, _TEXT, Field(description="Only commits with this text in the author's name or address, in any case.")
]
Grep = Annotated[
    str, _TEXT, Field(description="Only commits with this text in the message, in any case; no pattern.")
]
WithDiff = Annotated[bool, Field(description="Whether to give the hunks of each file, too.")]
Skip = Annotated[
    int, Field(ge=0, le=1_000_000, description="Of those that match, leave out so many of the newest.")
]
FirstLine = Annotated[int, _LINE, Field(description="First line, counted from 1.")]
LastLine = Annotated[
    Annotated[int, _LINE] | None,
    Field(description="Last line, included; without it, the end of the file."),
]
WithContent = Annotated[bool, Field(description="Whether to give the text of each line, too.")]
