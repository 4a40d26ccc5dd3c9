"""The working directory against history: its differences from a commit, and who wrote which line of a file.

Git never prints a file of it. Git says which tracked files differ; their content is read by us through the mount's handle,
put as objects into a directory of the moment, and two small trees of just these files are compared. So a directory swapped
for a link while git looks at it shows nothing from outside.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolgate.core.conceal import Secrets, conceal
from toolgate.core.errors import CallError, NotFound, NotText, TooLarge
from toolgate.core.evidence import spoil
from toolgate.core.records import dataclass, field, replace
from toolgate.workspace.confine import held, open_directory, open_file
from toolgate.workspace.git.commits import COMMIT_KEPT, LONGEST_LINE, known_commit, moment
from toolgate.workspace.git.history import DIFF_SECONDS, LOG_SECONDS, OUTPUT_CAP, compare
from toolgate.workspace.git.locate import RepositoryPlace, read_beneath
from toolgate.workspace.git.patch import Changed, Visible, unquote
from toolgate.workspace.git.program import OBJECT_CAP, Batch, Output, maybe_in_thread
from toolgate.workspace.git.view import GitView
from toolgate.workspace.reading import note, read_steady

MAX_FILES = 2000
FILE_CAP = 4 << 20
TOTAL_CAP = 64 << 20
_GONE = "000000"
_MAYBE_CONVERTED = (b"\r", b"\0", b"$Id")
"""Content without any of these, in ASCII, is stored as it is, whatever the attributes say."""


@dataclass(frozen=True, slots=True)
class WorktreeDifference:
    path: str
    old_mode: str
    old_id: str
    new_mode: str
    """`000000` where the file is gone."""
    wanted: bool
    """Asked for. The others are here because they may be the other half of a rename."""


async def compare_working_tree(
    view: GitView, base: str, visible: Visible, *, paths: Sequence[str] = (), context: int = 3, ignore_whitespace: bool = False
) -> Changed:  # fmt: skip
    """`base` is a commit or a tree. Files that git does not track are not part of it."""
    with tempfile.TemporaryDirectory(prefix="moment-", dir=view.directory) as name:
        moment = Path(name)
        index = await asyncio.to_thread(view.tracked.copy, moment, view.refs.hash_name)
        differences = await _differences(view, base, index, visible, paths)
        fresh = Moment(view, moment, index)
        # a blocked file that changed in place is not even read; one that came or went may be half of a rename
        kept = [one for one in differences if _GONE in (one.old_mode, one.new_mode) or visible(one.path)]
        old = fresh.tree({one.path: (one.old_mode, one.old_id) for one in kept if one.old_mode != _GONE})
        new = fresh.tree(await fresh.contents(kept))
        changed = await compare(
            view, old, new, visible, context=context, ignore_whitespace=ignore_whitespace,
            fresh=view.env(fresh=moment),
        )  # fmt: skip
        changed.left_out += len(differences) - len(kept)
        if paths:  # what is not shown of what was asked for
            shown = {name for file in changed.files for name in (file.path, file.old_path)}
            changed.left_out = sum(one.wanted and one.path not in shown for one in differences)
        return changed


async def _differences(
    view: GitView, base: str, index: Path, visible: Visible, paths: Sequence[str]
) -> list[WorktreeDifference]:
    """What differs under `paths`, and every blocked file that came or went, wherever it is."""
    output = await view.git(
        "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev", "--raw", "--no-renames",
        "--ignore-submodules=all", base, "--",
        seconds=DIFF_SECONDS, cap=OUTPUT_CAP, env=view.env(work_tree=True, index=index),
    )  # fmt: skip
    found = await maybe_in_thread(len(output.data), lambda: _listed(output, visible, paths))
    if not output.whole or len(found) > MAX_FILES:
        raise TooLarge(
            f"more than {MAX_FILES:,} files differ from the commit", "give `paths` to look at some of them"
        )
    return list(found.values())


def _listed(output: Output, visible: Visible, paths: Sequence[str]) -> dict[str, WorktreeDifference]:
    found: dict[str, WorktreeDifference] = {}
    for line in output.data.split(b"\n"):
        if not line.startswith(b":") or not output.whole:
            continue
        head, _, name = line.partition(b"\t")
        old_mode, new_mode, old_id, _, _ = head[1:].decode("ascii").split(" ")
        path = unquote(name)
        wanted = not paths or any(path == one or path.startswith(one + "/") for one in paths)
        if wanted or (_GONE in (old_mode, new_mode) and not visible(path)):
            found[path] = WorktreeDifference(path, old_mode, old_id, new_mode, wanted)
    return found


@dataclass(slots=True)
class Moment:
    """Objects that exist for one comparison."""

    view: GitView
    directory: Path
    index: Path

    async def contents(self, differences: Sequence[WorktreeDifference]) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        left = TOTAL_CAP
        for one in differences:
            content = None if one.new_mode == _GONE else await asyncio.to_thread(self._read, one)
            if content is None:
                continue
            left -= len(content)
            if left < 0:
                raise TooLarge(f"the changed files are larger than {TOTAL_CAP:,} bytes", "give `paths`")
            found[one.path] = (one.new_mode, await self._store(one, content))
        return found

    def _read(self, one: WorktreeDifference) -> bytes | None:
        """A file's content or a link's target; None for what is not there, or not inside."""
        relative = self.view.place.mount_path(one.path).relative
        root = self.view.place.mount.root
        try:
            if one.new_mode != "120000":
                return read_beneath(root, relative, FILE_CAP)
            parent, _, name = relative.rpartition("/")
            handle = open_directory(root, parent or ".", relative, follow=False)
            with held(handle):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                return os.fsencode(os.readlink(name, dir_fd=handle)) if stat.S_ISLNK(status.st_mode) else None
        except TooLarge:
            raise TooLarge(
                f"{one.path!r} is larger than {FILE_CAP:,} bytes", "leave it out: give `paths`"
            ) from None
        except (CallError, OSError):
            return None

    async def _store(self, one: WorktreeDifference, content: bytes) -> str:
        plain = content.isascii() and not any(mark in content for mark in _MAYBE_CONVERTED)
        if plain or one.new_mode == "120000":
            return self._write("blob", content)
        output = await self.view.git(
            "hash-object", "-w", "--stdin", f"--path={one.path}", stdin=content, seconds=DIFF_SECONDS, cap=256,
            env=self.view.env(work_tree=True, index=self.index, fresh=self.directory),
        )  # fmt: skip
        return output.data.decode("ascii").strip()

    def tree(self, files: Mapping[str, tuple[str, str]]) -> str:
        """A tree of these files, as git writes trees: sorted as if directories ended with a slash."""
        below: dict[str, dict[str, tuple[str, str]]] = {}
        entries: list[tuple[bytes, bytes]] = []
        for path, entry in files.items():
            top, slash, rest = path.partition("/")
            if slash:
                below.setdefault(top, {})[rest] = entry
            else:
                entries.append(_entry(top, *entry))
        entries += [_entry(name, "40000", self.tree(inner)) for name, inner in below.items()]
        return self._write("tree", b"".join(data for _, data in sorted(entries)))

    def _write(self, kind: str, content: bytes) -> str:
        data = b"%s %d\0" % (kind.encode(), len(content)) + content
        oid = hashlib.new(self.view.refs.hash_name, data, usedforsecurity=False).hexdigest()
        file = self.directory / oid[:2] / oid[2:]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(zlib.compress(data, 1))
        return oid


def _entry(name: str, mode: str, oid: str) -> tuple[bytes, bytes]:
    raw = name.encode("utf-8", "surrogateescape")
    return raw + (b"/" if mode == "40000" else b""), b"%s %s\0" % (mode.encode(), raw) + bytes.fromhex(oid)


BLAME_CAP = 64 << 20
MOST_LINES = 1000
"""Lines that are kept: more than any answer has room for. The others are only counted."""


@dataclass(slots=True)
class Origin:
    hash: str
    author: str = ""
    email: str = ""
    time: int = 0
    zone: str = "+0000"
    summary: str = ""
    boundary: bool = False
    """History ends here: the first commit, or the edge of a shallow clone."""
    lines: int = 0
    """How many of the lines that were asked for are its own."""

    @property
    def date(self) -> str:
        return moment(self.time, self.zone)

    @property
    def committed(self) -> bool:
        return self.hash.strip("0") != ""


@dataclass(frozen=True, slots=True)
class BlameLine:
    number: int
    origin: Origin
    content: bytes


@dataclass(slots=True)
class Blame:
    lines: list[BlameLine] = field(default_factory=list)
    """The first of those that were asked for."""
    origins: list[Origin] = field(default_factory=list)
    asked: int = 0
    total: int = 0
    """Lines of the whole file."""


def _on_disk(place: RepositoryPlace, path: str) -> bytes | None:
    relative = place.mount_path(path).relative

    def opening() -> int:
        return open_file(place.mount.root, relative, relative, follow=False)

    try:
        handle = opening()
    except NotFound:
        spoil()
        return None
    with held(handle):
        content, status = read_steady(handle, relative, OBJECT_CAP)
    note(opening, status, content)
    return content


async def blame(view: GitView, batch: Batch, path: str, first: int, last: int | None) -> Blame:
    """The lines from `first` to `last`. Numbers are those of the file as it is now. Lines that are not committed yet belong
    to nobody, as in `git blame`."""
    [kept] = await batch.ask(f"HEAD:{path}") if "\n" not in path else [None]
    if kept is None or kept.kind != "blob":
        raise NotFound(f"{path!r} is not a file in the last commit", "blame speaks of committed files")
    place = view.place
    now = None if place.bare else _on_disk(place, path)
    content = kept.content if now is None else now
    if b"\0" in content[:8000]:
        raise NotText(f"{path!r} is binary", "code.log tells its history")
    total = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    last = total if last is None else min(last, total)
    if first > last:
        return Blame(total=total)
    args = ["blame", "--porcelain", f"-L{first},{last}"]
    if now is None or _blob_id(now, view.refs.hash_name) == kept.id:
        head = view.refs.head_id or b""
        output = await view.recall(*args, head.decode(), "--", path, seconds=LOG_SECONDS, cap=BLAME_CAP)
    else:
        spoil()  # git looks at attributes in the working directory for this
        output = await view.git(
            *args, "--contents", "-", "--", path, stdin=now, seconds=LOG_SECONDS, cap=BLAME_CAP,
            env=view.env(work_tree=True),
        )  # fmt: skip
    if not output.whole:
        raise TooLarge(
            f"the blame of {path!r} is larger than {BLAME_CAP:,} bytes", "ask for a range of lines"
        )
    found = await maybe_in_thread(len(output.data), lambda: _parse(output.data, total))
    return found if (secrets := view.secrets()) is None else await _known(found, content, batch, secrets)


async def _known(found: Blame, content: bytes, batch: Batch, secrets: Secrets) -> Blame:
    """The lines from the whole file, in which a secret is found that goes over several; titles from whole messages."""
    known = conceal(content, secrets)
    if known.marks:
        lines = known.text.split(b"\n")
        found.lines = [replace(line, content=lines[line.number - 1]) for line in found.lines]
    committed = [origin for origin in found.origins if origin.committed]
    for origin, commit in zip(
        committed, await batch.ask(*(one.hash for one in committed), keep=COMMIT_KEPT), strict=True
    ):
        if commit is not None and conceal(commit.content, secrets).marks:
            made = known_commit(origin.hash, commit.content, secrets)
            origin.summary = made.message.partition("\n")[0]
            origin.author, origin.email = made.author.name, made.author.email
    return found


def _blob_id(content: bytes, hash_name: str) -> str:
    data = b"blob %d\0" % len(content) + content
    return hashlib.new(hash_name, data, usedforsecurity=False).hexdigest()


def _parse(data: bytes, total: int) -> Blame:
    """The porcelain format: a line's commit and number, what is new about the commit, a tab and the content.

    The names under which the file was known (`filename`, `previous`) are not read: they may be blocked.
    """
    origins: dict[bytes, Origin] = {}
    found = Blame(total=total)
    origin = Origin("")
    number = 0
    head = True
    for line in io.BytesIO(data):  # one at a time: there may be a million
        line = line.removesuffix(b"\n")
        if line.startswith(b"\t"):
            found.asked += 1
            origin.lines += 1
            if len(found.lines) < MOST_LINES:
                found.lines.append(BlameLine(number, origin, line[1:]))
            head = True
        elif head:
            oid, _, rest = line.partition(b" ")
            number = int(rest.split(b" ")[1])
            known = origins.get(oid)
            origin = known or origins.setdefault(oid, Origin(oid.decode("ascii")))
            head = False
        else:
            _learn(origin, line)
    found.origins = list(origins.values())
    return found


def _learn(origin: Origin, line: bytes) -> None:
    name, _, value = line.partition(b" ")
    text = value[:LONGEST_LINE].decode("utf-8", "replace")
    match name:
        case b"author":
            origin.author = text
        case b"author-mail":
            origin.email = text.strip("<>")
        case b"author-time":
            origin.time = int(value)
        case b"author-tz":
            origin.zone = text
        case b"summary":
            origin.summary = text
        case b"boundary":
            origin.boundary = True
