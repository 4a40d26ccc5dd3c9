"""The working directory against a commit, without git ever printing a file of it.

Git says which tracked files differ; their content is read by us through the mount's handle, put as objects into a
directory of the moment, and two small trees of just these files are compared. So a directory swapped for a link
while git looks at it shows nothing from outside.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolgate.core.errors import CallError, TooLarge
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.git.history import DIFF_SECONDS, OUTPUT_CAP, compare
from toolgate.workspace.git.locate import read_beneath
from toolgate.workspace.git.patch import Changed, Visible, unquote
from toolgate.workspace.git.program import Output, maybe_in_thread
from toolgate.workspace.git.view import GitView

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
