"""Who wrote which line. Lines that are not committed yet belong to nobody, as in `git blame`."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field, replace

from toolgate.core.conceal import Secrets, conceal
from toolgate.core.errors import NotFound, NotText, TooLarge
from toolgate.core.evidence import spoil
from toolgate.workspace.confine import held, open_file
from toolgate.workspace.git.commits import COMMIT_KEPT, LONGEST_LINE, known_commit, moment
from toolgate.workspace.git.history import LOG_SECONDS
from toolgate.workspace.git.locate import RepositoryPlace
from toolgate.workspace.git.program import OBJECT_CAP, Batch, maybe_in_thread
from toolgate.workspace.git.view import GitView
from toolgate.workspace.look import read_steady
from toolgate.workspace.reading import note

OUTPUT_CAP = 64 << 20
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
    """The lines from `first` to `last`. Numbers are those of the file as it is now."""
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
        output = await view.recall(*args, head.decode(), "--", path, seconds=LOG_SECONDS, cap=OUTPUT_CAP)
    else:
        spoil()  # git looks at attributes in the working directory for this
        output = await view.git(
            *args, "--contents", "-", "--", path, stdin=now, seconds=LOG_SECONDS, cap=OUTPUT_CAP,
            env=view.env(work_tree=True),
        )  # fmt: skip
    if not output.whole:
        raise TooLarge(
            f"the blame of {path!r} is larger than {OUTPUT_CAP:,} bytes", "ask for a range of lines"
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
        case _:
            pass
