"""Commits and comparisons of commits. Only object ids that were verified reach git's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.workspace.git.aside import aside
from toolgate.workspace.git.batch import Batch
from toolgate.workspace.git.commits import COMMIT_KEPT, Commit, read_commit
from toolgate.workspace.git.patch import Changed, Visible, parse
from toolgate.workspace.git.program import Output
from toolgate.workspace.git.view import View

DIFF_SECONDS = 5.0
LOG_SECONDS = 10.0
OUTPUT_CAP = 8 << 20
MAX_REVISION = 400
# no rename of a huge commit may take the time of the call: git then shows both sides as they are
_COMPARE = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev", "--full-index", "--raw", "--numstat", "-M",
    "--submodule=short",
)  # fmt: skip
_MERGES = ("--diff-merges=first-parent", "--root")
_START = b"commit "
_FORMAT = "--format=commit %H"


@dataclass(slots=True)
class Entry:
    commit: Commit
    changed: Changed


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `log` looks for. `author` and `grep` are plain text, found in any case."""

    path: str | None = None
    limit: int = 20
    since: str = ""
    until: str = ""
    author: str = ""
    grep: str = ""
    patch: bool = False
    skip: int = 0
    """Of those that match, the newest so many were seen before."""
    context: int = 3


async def verify(batch: Batch, revision: str) -> Commit:
    """The commit that a revision names. Git itself says so, for one line of input, not for an argument."""
    if not revision or revision.startswith("-") or len(revision) > MAX_REVISION or not revision.isprintable():
        raise InvalidArgs(
            f"{revision[:80]!r} is not a revision", "name a commit: a hash, a branch, a tag, HEAD~1"
        )
    if "@{" in revision:  # git would end over it: there is no reflog and no branch config in a view
        raise NotFound(
            f"{revision!r} speaks of a reflog or an upstream, which are not read",
            "name a branch, a tag or a hash",
        )
    if revision.startswith(":/") or "^{/" in revision:  # a short one can make git use gigabytes
        raise InvalidArgs(
            f"{revision!r} looks for a commit by a pattern",
            "code.log with `grep` finds commits by their message",
        )
    [found] = await batch.ask(revision + "^{commit}", keep=COMMIT_KEPT)
    if found is None or found.kind != "commit":
        raise NotFound(
            f"there is no commit {revision!r}", "code.log lists commits; a range is given as two revisions"
        )
    return read_commit(found.id, found.content)


async def compare(
    view: View, old: str, new: str, visible: Visible, *, paths: Sequence[str] = (), context: int = 3,
    ignore_whitespace: bool = False, fresh: dict[str, str] | None = None,
) -> Changed:  # fmt: skip
    """Two trees or commits, by id."""
    if paths:
        visible = await _without_halves(view, old, new, visible)
    space = ("-w",) if ignore_whitespace else ()
    output = await view.git(
        "diff-tree", "-r", *_COMPARE, "-p", f"-U{context}", *space, old, new, "--", *paths,
        seconds=DIFF_SECONDS, cap=OUTPUT_CAP, env=fresh,
    )  # fmt: skip
    return await _parsed(output, visible)


async def _parsed(output: Output, visible: Visible) -> Changed:
    return await aside(len(output.data), lambda: parse(output.data, visible, whole=output.whole))


async def _without_halves(view: View, old: str, new: str, visible: Visible) -> Visible:
    """A comparison of some paths sees half of a rename; if the other half is blocked, so is this one."""
    output = await view.recall(
        "diff-tree", "-r", "-M", "--raw", "--no-abbrev", "--diff-filter=R", old, new, "--",
        seconds=DIFF_SECONDS, cap=OUTPUT_CAP,
    )  # fmt: skip
    hidden: set[str] = set()
    for file in (await _parsed(output, lambda _: True)).files:
        if not (visible(file.path) and visible(file.old_path or file.path)):
            hidden |= {file.path, file.old_path or file.path}
    return lambda path: path not in hidden and visible(path)


async def log(
    view: View, batch: Batch, tip: str, wanted: Wanted, visible: Visible
) -> tuple[list[Entry], bool]:
    """Newest first, and whether there are more than were asked for. A merge is compared with its first parent.

    Of a path, the files are those below it, as git has it: all the files of 20 large commits take ten times as long
    as finding them. For a diff git is asked for whole commits, because half of a rename would show what a blocked name
    held; of those, what touches the path is kept.
    """
    output, more = await _printed(view, tip, wanted)
    parts = list(_parts(output.data))
    more = more or len(parts) > wanted.limit or not output.whole
    parts = parts[: wanted.limit]
    found = await batch.ask(*(oid for oid, _ in parts), keep=COMMIT_KEPT)

    def entries() -> Iterator[Entry]:
        for index, ((oid, data), commit) in enumerate(zip(parts, found, strict=True)):
            cut = not output.whole and index == len(parts) - 1
            changed = parse(data, visible, whole=not cut, below=wanted.path or "")
            yield Entry(read_commit(oid, commit.content if commit else b""), changed)

    return await aside(len(output.data), lambda: list(entries())), more


async def _printed(view: View, tip: str, wanted: Wanted) -> tuple[Output, bool]:
    """And whether there are more.

    Of a path, the commits are found first and compared then: a git that compares merges while it looks for commits
    gives every merge of two branches on which the path differs, also where the merge itself changed nothing about it.
    """
    how = (_FORMAT, *_MERGES, *_COMPARE, *(("-p", f"-U{wanted.context}") if wanted.patch else ()))
    ask = view.git if wanted.since or wanted.until else view.recall  # "2 weeks ago" is another time each time
    find = (
        "-F", "-i", f"-n{wanted.limit + 1}", f"--skip={wanted.skip}",
        *(f"--{name}={value}" for name, value in _filters(wanted)), tip, "--",
    )  # fmt: skip
    if wanted.path is None:
        return await ask("log", *how, *find, seconds=LOG_SECONDS, cap=OUTPUT_CAP), False
    listed = await ask("log", "--format=%H", "-s", *find, wanted.path, seconds=LOG_SECONDS, cap=OUTPUT_CAP)
    ids = listed.data.split(b"\n")[:-1]
    below = () if wanted.patch else (wanted.path,)
    output = await view.recall(
        "diff-tree", "--stdin", "--always", "-r", *how, "--", *below,
        seconds=LOG_SECONDS, cap=OUTPUT_CAP, stdin=b"".join(oid + b"\n" for oid in ids[: wanted.limit]),
    )  # fmt: skip
    return output, len(ids) > wanted.limit


async def show(view: View, commit: Commit, visible: Visible) -> Changed:
    output = await view.recall(
        "diff-tree", "--format=", "-r", *_MERGES, *_COMPARE, "-p", commit.hash, "--",
        seconds=DIFF_SECONDS, cap=OUTPUT_CAP,
    )  # fmt: skip
    return await _parsed(output, visible)


def _filters(wanted: Wanted) -> Iterator[tuple[str, str]]:
    for name in ("since", "until", "author", "grep"):
        value: str = getattr(wanted, name)
        if value:
            yield name, value


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Each commit's id with what follows. No other line begins with a `c`: see `patch`."""
    at = 0 if data.startswith(_START) else data.find(b"\n" + _START) + 1
    while data.startswith(_START, at):
        end = data.find(b"\n" + _START, at)
        end = len(data) if end < 0 else end + 1
        oid, _, rest = data[at + len(_START) : end].partition(b"\n")
        yield oid.decode("ascii"), rest
        at = end
