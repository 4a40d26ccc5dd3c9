"""`code.diff`, `code.log`, `code.blame`, `code.show`: a project's history. They read, and change nothing.

A path with a blocked name is left out at every revision; the result says how many, never which.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath, MountPaths
from toolgate.core.rendering import counted
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.code.history.shapes import (
    MAX_DIFF,
    MAX_TITLE,
    DiffBudget,
    blamed,
    commit_shape,
    diff_shape,
    fit_blame,
    fit_diff,
    fit_log,
    fit_show,
)
from toolgate.workspace.git.history import LogRequest, compare, log, show, verify
from toolgate.workspace.git.patch import Changed, shown
from toolgate.workspace.git.repositories import Repositories, Repository
from toolgate.workspace.git.worktree import blame as find_blame
from toolgate.workspace.git.worktree import compare_working_tree

# The arguments of the history tools, and what a model is told of each. Paths say themselves what they are.
# Git reads any nonsense in a date as "now", so nonsense is refused before it gets there.

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


PROJECT = MountPath("project:.")
WORKING_TREE = "working tree"
CACHE_S = 300.0
_EMPTY = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The tree without files: what a branch without commits is compared with."""


def tools(context: FeatureContext) -> list[Tool]:
    assert context.files is not None
    repositories = Repositories(
        context.files.mounts, context.directory / "cache" / "git", lambda: context.gate.policy.mounts
    )
    context.stack.push_async_callback(repositories.close)
    return [_diff(repositories), _log(repositories), _blame(repositories), _show(repositories)]


def _diff(repositories: Repositories) -> Tool:
    @tool("code.diff", reads=["project"], timeout=5.0, cache_s=CACHE_S, fit=fit_diff)
    async def diff(
        base: Base = "HEAD",
        compare: Compare = None,
        paths: Paths = None,
        context_lines: Around = 3,
        ignore_whitespace: IgnoreSpace = False,
        max_diff_size: MaxDiff = MAX_DIFF,
        view: View = "unified",
    ) -> dict[str, Any]:
        """The git diff: what changed between two commits, or since a commit in the working directory (without `compare`)."""
        repository, names = await _several(repositories, paths or [])
        old = await _commit_or_empty(repository, base)
        options: dict[str, Any] = {
            "paths": names, "context": context_lines, "ignore_whitespace": ignore_whitespace,
        }  # fmt: skip
        new, changed = await _compared(repository, old, compare, options)
        return {
            "base": base,
            "base_hash": old,
            "compare": compare or WORKING_TREE,
            "compare_hash": new,
            **diff_shape(changed, DiffBudget(max_diff_size), view),
        }

    return diff


async def _compared(
    repository: Repository, old: str, revision: str | None, options: dict[str, Any]
) -> tuple[str | None, Changed]:
    if revision is not None:
        new = (await verify(repository.batch, revision)).hash
        return new, await compare(repository.view, old, new, repository.visible, **options)
    spoil()  # it depends on every tracked file, and git looks at them faster than we could prove them
    if repository.place.bare:
        raise InvalidArgs("a bare repository has no working directory", "give `compare` a revision")
    return None, await compare_working_tree(repository.view, old, repository.visible, **options)


def _log(repositories: Repositories) -> Tool:
    @tool("code.log", reads=["project"], timeout=10.0, cache_s=CACHE_S, fit=fit_log)
    async def history(
        path: Touching = PROJECT,
        limit: MaxCommits = 20,
        since: Since = "",
        until: Until = "",
        author: Author = "",
        grep: Grep = "",
        include_diff: WithDiff = False,
        skip: Skip = 0,
        oneline: OneLine = False,
    ) -> dict[str, Any]:
        """The git log: the history of what is checked out, newest commit first; of one file or directory by `path`."""
        repository = await repositories.at(path)
        inside = repository.place.inside(path)
        wanted = LogRequest(
            None if inside == "." else inside, limit, check_time(since), check_time(until), author, grep, include_diff, skip,
        )  # fmt: skip
        if since or until:
            spoil()  # "2 weeks ago" is another time each time
        tip = repository.view.refs.head_id
        if tip is None:
            empty = {"commits": [], "total_commits": 0, "skip": skip, "truncated": False}
            return {"summary": "no commits yet", **empty}
        repository.graph.want()
        entries, more = await log(repository.view, repository.batch, tip.decode(), wanted, repository.visible)
        room = DiffBudget(MAX_DIFF)
        commits = [commit_shape(entry.commit, entry.changed, room, include_diff) for entry in entries]
        if oneline:
            commits = [{**commit, "message": commit["message"].partition("\n")[0]} for commit in commits]
        result: dict[str, Any] = {
            "summary": _log_summary(commits, more, skip) if commits else _no_commits(path, wanted),
            "commits": commits,
            "total_commits": len(commits),
            "skip": skip,
            "truncated": more or room.full,
        }
        if more:
            result["next"] = f"there are older commits: go on with skip={skip + len(commits)}"
        elif room.full:
            result["next"] = "not all diffs are here: ask code.show for one commit"
        return result

    return history


def _log_summary(commits: list[dict[str, Any]], more: bool, skip: int) -> str:
    authors = {commit["author"] for commit in commits}
    last = "the last " if more and not skip else ""
    before = f", after {skip:,} newer" if skip else ""
    return f"{last}{counted(len(commits), 'commit')} by {counted(len(authors), 'author')}{before}"


def _no_commits(path: MountPath, wanted: LogRequest) -> str:
    """Of what there are none: a misspelt path must not read like a file without history."""
    of = f" of {path.shown!r}" if wanted.path else ""
    filters = [name for name in ("since", "until", "author", "grep") if getattr(wanted, name)]
    matching = f" that match {' and '.join(filters)}" if filters else ""
    return f"no commits{of}{matching}" + (f" after the newest {wanted.skip:,}" if wanted.skip else "")


def _blame(repositories: Repositories) -> Tool:
    @tool("code.blame", reads=["project"], timeout=10.0, cache_s=CACHE_S, fit=fit_blame)
    async def blame(
        path: MountPath,
        start_line: FirstLine = 1,
        end_line: LastLine = None,
        include_content: WithContent = True,
    ) -> dict[str, Any]:
        """The git blame: who last changed each line of a file as it is now, and in which commit."""
        if end_line is not None and end_line < start_line:
            raise InvalidArgs(
                f"the lines {start_line} to {end_line} are none", "let `end_line` be the larger one"
            )
        repository = await repositories.at(path)
        name = repository.place.inside(path)
        if repository.view.refs.head_id is None:
            raise NotFound("the repository has no commits yet", "commit something first")
        repository.graph.want()
        found = await find_blame(repository.view, repository.batch, name, start_line, end_line)
        if not found.asked and found.total:
            raise InvalidArgs(
                f"{path.shown} has {found.total:,} lines, none from {start_line:,} on", "ask for fewer"
            )
        return {"path": shown(path.shown), **blamed(found, include_content)}

    return blame


def _show(repositories: Repositories) -> Tool:
    @tool("code.show", reads=["project"], timeout=5.0, cache_s=CACHE_S, fit=fit_show)
    async def show_commit(commit: Commit, include_diff: WithDiff = True) -> dict[str, Any]:
        """Show a git commit: who, when, why, which files, and the diff (of a merge where asked, against its first parent)."""
        repository = await repositories.at(PROJECT)
        found = await verify(repository.batch, commit)
        changed = await show(repository.view, found, repository.visible)
        room = DiffBudget(MAX_DIFF)
        shape = commit_shape(found, changed, room, include_diff, whole=True)
        title = found.message.partition("\n")[0][:MAX_TITLE]
        files = counted(len(changed.files), "file")
        result: dict[str, Any] = {
            "summary": f"{found.short} {title} ({files})",
            "commit": shape,
            "truncated": room.full or not changed.whole,
        }
        if result["truncated"]:
            result["next"] = "ask code.diff with `paths`, base the first parent, compare this commit"
        return result

    return show_commit


async def _several(repositories: Repositories, paths: list[MountPath]) -> tuple[Repository, list[str]]:
    """The one repository that all paths belong to, and the paths in it; none means all of it."""
    first = await repositories.at(paths[0] if paths else PROJECT)
    for path in paths[1:]:
        if await repositories.at(path) is not first:
            raise InvalidArgs(
                f"{path.shown} belongs to another repository", "compare one repository at a time"
            )
    names = [first.place.inside(path) for path in paths]
    return first, [] if "." in names else names


async def _commit_or_empty(repository: Repository, revision: str) -> str:
    if revision == "HEAD" and repository.view.refs.head_id is None:
        return _EMPTY[repository.view.refs.hash_name]
    return (await verify(repository.batch, revision)).hash
