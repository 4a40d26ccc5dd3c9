"""The arguments of the history tools, and what a model is told of each. Paths say themselves what they are.

Git reads any nonsense in a date as "now", so nonsense is refused before it gets there.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath, MountPaths
from toolgate.features.code.history.shapes import MAX_DIFF

_LISTED = """
ago last now today yesterday noon midnight tea never am pm a an and at on the of t z utc gmt
one two three four five six seven eight nine ten
second seconds sec secs minute minutes min mins hour hours day days week weeks month months year years
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
"""
_WORDS = frozenset(_LISTED.split())
_TOKEN = re.compile(r"[A-Za-z]+|\d+(?:st|nd|rd|th)?|[\s.,:/+-]+|.", re.S)


def check_time(text: str) -> str:
    for token in _TOKEN.findall(text):
        known = token.lower() in _WORDS or token[0].isdigit() or not token.strip(" .,:/+-")
        if not known:
            raise InvalidArgs(f"{text!r} is not a time", 'write a date (2026-01-31) or "2 weeks ago"')
    if text and not re.search(r"\w", text):
        raise InvalidArgs(f"{text!r} is not a time", 'write a date (2026-01-31) or "2 weeks ago"')
    return text


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
    Literal["unified", "split", "stat"],
    Field(
        description="Hunks as `lines`, or as `rows` with old and new lines side by side; `stat`: the files alone."
    ),
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
OneLine = Annotated[bool, Field(description="Tell each commit in one line, without its files.")]
Skip = Annotated[
    int, Field(ge=0, le=1_000_000, description="Of those that match, leave out so many of the newest.")
]
FirstLine = Annotated[int, _LINE, Field(description="First line, counted from 1.")]
LastLine = Annotated[
    Annotated[int, _LINE] | None,
    Field(description="Last line, included; without it, the end of the file."),
]
WithContent = Annotated[bool, Field(description="Whether to give the text of each line, too.")]
