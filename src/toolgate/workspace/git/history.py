"""Commits and comparisons of commits. Only object ids that were verified reach git's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolgate.core.conceal import Secrets
from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.core.records import dataclass
from toolgate.workspace.git.commits import COMMIT_KEPT, Commit, conceal_hunks, known_commit, said_by
from toolgate.workspace.git.patch import Changed, Visible, parse
from toolgate.workspace.git.program import Batch, Output, maybe_in_thread
from toolgate.workspace.git.view import GitView

DIFF_SECONDS = 5.0
LOG_SECONDS = 10.0
OUTPUT_CAP = 8 << 20
MAX_REVISION = 400
# no rename of a huge commit may take the time of the call: git then shows both sides as they are
_COMPARE = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev", "--full-index", "--raw", "--numstat", "-M",
    "--submodule=short",
)  # fmt: skip
_MERGES = ("--diff-merges=first-parent",)
_START = b"commit "
_FORMAT = "--format=commit %H"
_AT_ONCE = 200


@dataclass(slots=True)
class LogEntry:
    commit: Commit
    changed: Changed


class Part(NamedTuple):
    """What git printed of one commit."""

    id: str
    data: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class LogRequest:
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
    return known_commit(found.id, found.content, batch.view.secrets())


async def compare(
    view: GitView, old: str, new: str, visible: Visible, *, paths: Sequence[str] = (), context: int = 3,
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
    changed = await _parsed(output, visible)
    await conceal_hunks(view, [changed], fresh)
    return changed


async def _parsed(output: Output, visible: Visible) -> Changed:
    return await maybe_in_thread(len(output.data), lambda: parse(output.data, visible, whole=output.whole))


async def _without_halves(view: GitView, old: str, new: str, visible: Visible) -> Visible:
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
    view: GitView, batch: Batch, tip: str, wanted: LogRequest, visible: Visible
) -> tuple[list[LogEntry], bool]:
    """Newest first, and whether there are more than were asked for. A merge is compared with its first parent.

    Of a path, the files are those below it, as git has it: all the files of 20 large commits take ten times as long
    as finding them. For a diff git is asked for whole commits, because half of a rename would show what a blocked name
    held; of those, what touches the path is kept.
    """
    secrets = view.secrets()
    if secrets is not None and (wanted.author or wanted.grep):
        parts, more = await _said(view, batch, tip, wanted, secrets)
    else:
        output = await _printed(view, tip, wanted)
        parts = list(_parts(output))
        more = len(parts) > wanted.limit or not output.whole
        parts = await _with_merges(view, wanted, parts[: wanted.limit])
    found = await batch.ask(*(part.id for part in parts), keep=COMMIT_KEPT)

    def entries() -> Iterator[LogEntry]:
        for part, commit in zip(parts, found, strict=True):
            changed = parse(part.data, visible, whole=part.whole, below=wanted.path or "")
            yield LogEntry(known_commit(part.id, commit.content if commit else b"", secrets), changed)

    made = await maybe_in_thread(sum(len(part.data) for part in parts), lambda: list(entries()))
    await conceal_hunks(view, [entry.changed for entry in made])
    return made, more


async def _said(
    view: GitView, batch: Batch, tip: str, wanted: LogRequest, secrets: Secrets
) -> tuple[list[Part], bool]:
    """Of the commits whose words git finds, those that have them beside secrets: git would find guesses, too."""
    filters = [f"--{name}={value}" for name, value in _filters(wanted)]
    output = await view.git(
        "log", _FORMAT, "-F", "-i", *filters, tip, "--", *([wanted.path] if wanted.path else []),
        seconds=LOG_SECONDS, cap=OUTPUT_CAP,
    )  # fmt: skip
    ids = [part.id for part in _parts(output)]
    kept: list[str] = []
    end = wanted.skip + wanted.limit + 1
    for at in range(0, len(ids), _AT_ONCE):
        some = ids[at : at + _AT_ONCE]
        for oid, found in zip(some, await batch.ask(*some, keep=COMMIT_KEPT), strict=True):
            if found is not None and said_by(found.content, oid, wanted.author, wanted.grep, secrets):
                kept.append(oid)
        if len(kept) >= end:
            break
    parts = await _compared(view, wanted, kept[wanted.skip : end - 1])
    return parts, len(kept) >= end or not output.whole


async def _printed(view: GitView, tip: str, wanted: LogRequest) -> Output:
    """Of a path without comparing merges: a git that does so while it looks for commits gives every merge of two
    branches on which the path differs, also where the merge itself changed nothing about it."""
    merges = ("--diff-merges=off",) if wanted.path else _MERGES
    filters = [f"--{name}={value}" for name, value in _filters(wanted)]
    ask = view.git if wanted.since or wanted.until else view.recall  # "2 weeks ago" is another time each time
    return await ask(
        "log", _FORMAT, "-F", "-i", "--root", *merges, *_COMPARE, *_whole(wanted), f"-n{wanted.limit + 1}",
        f"--skip={wanted.skip}", *filters, tip, "--", *([wanted.path] if wanted.path else []),
        seconds=LOG_SECONDS, cap=OUTPUT_CAP,
    )  # fmt: skip


async def _with_merges(view: GitView, wanted: LogRequest, parts: list[Part]) -> list[Part]:
    """Few merges change a path themselves, so most logs of one need no second git."""
    bare = [part.id for part in parts if not part.data.strip()] if wanted.path else []
    if not bare:
        return parts
    compared = {part.id: part for part in await _compared(view, wanted, bare)}
    return [compared.get(part.id, part) for part in parts]


async def _compared(view: GitView, wanted: LogRequest, ids: Sequence[str]) -> list[Part]:
    if not ids:
        return []
    below = () if wanted.patch or not wanted.path else (wanted.path,)
    output = await view.recall(
        "diff-tree", "--stdin", "--always", "-r", _FORMAT, "--root", *_MERGES, *_COMPARE, *_whole(wanted), "--", *below,
        seconds=LOG_SECONDS, cap=OUTPUT_CAP, stdin="".join(f"{oid}\n" for oid in ids).encode(),
    )  # fmt: skip
    compared = {oid: Part(oid, b"", False) for oid in ids}  # what does not fit in there is cut
    compared |= {part.id: part for part in _parts(output)}
    return list(compared.values())


def _whole(wanted: LogRequest) -> tuple[str, ...]:
    return ("-p", f"-U{wanted.context}", "--full-diff") if wanted.patch else ()


async def show(view: GitView, commit: Commit, visible: Visible) -> Changed:
    output = await view.recall(
        "diff-tree", "--format=", "-r", "--root", *_MERGES, *_COMPARE, "-p", commit.hash, "--",
        seconds=DIFF_SECONDS, cap=OUTPUT_CAP,
    )  # fmt: skip
    changed = await _parsed(output, visible)
    await conceal_hunks(view, [changed])
    return changed


def _filters(wanted: LogRequest) -> Iterator[tuple[str, str]]:
    for name in ("since", "until", "author", "grep"):
        value: str = getattr(wanted, name)
        if value:
            yield name, value


def _parts(output: Output) -> Iterator[Part]:
    """Each commit with what follows. No other line begins with a `c`: see `patch`."""
    data = output.data
    at = 0 if data.startswith(_START) else data.find(b"\n" + _START) + 1
    while data.startswith(_START, at):
        end = data.find(b"\n" + _START, at)
        last = end < 0
        end = len(data) if last else end + 1
        oid, _, rest = data[at + len(_START) : end].partition(b"\n")
        yield Part(oid.decode("ascii"), rest, output.whole or not last)
        at = end
