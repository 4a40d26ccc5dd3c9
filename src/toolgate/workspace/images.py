"""Contents of files before and after each change, kept by their hash, up to a budget for each persona.

`ab/cdef…` below the given directory, named by SHA-256. An image is whole or absent, private to the user, and
verified whenever it is read: what undo and recovery write back is what was there, or nothing.

Several processes share the directory. Putting takes a shared lock, dropping an exclusive one: whatever is there while
that is held belongs to calls that the journal knows, or was left half written by a killed process.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from toolgate.core.change import Change, content_hash
from toolgate.core.clock import SECOND
from toolgate.core.errors import Failed, NotFound, TooLarge
from toolgate.core.late_pattern import late_pattern
from toolgate.core.names import HUMAN
from toolgate.core.ports import Holder
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held
from toolgate.workspace.holdings import ASKED, ENTRY, PLAIN, SCRATCH, UNKEPT, Accounts, Holdings, Place, Sizes
from toolgate.workspace.staged import acquire

_HASH = late_pattern(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")
_TEMPORARY = ".toolgate-tmp-"
_PARTS = 16
DAY = 24 * 3600 * SECOND
NOBODY = ""
TOTAL = 1 << 30
CHANGE = 256 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    count: int
    bytes: int
    budget: int


class Images:
    def __init__(
        self, directory: Path, total: int = TOTAL, change: int = CHANGE, *, persona: int | None = None,
        days: int = 30, refuse: bool = False, now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:  # fmt: skip
        """At most `total` bytes are kept in all, `persona` bytes for each, and `change` bytes for one change."""
        self._directory = directory
        self._lock = directory.with_name(directory.name + ".lock")
        self._now, self._days, self._refuse = now, days, refuse
        self.total, self.change = total, min(change, total)
        self.persona = total if persona is None else min(persona, total)
        self.holdings = Holdings(directory.with_name(directory.name + ".db"))
        self._adopted: Place | None = None
        self._lasting: set[Path] = set()
        """Folders whose names are on disk: seen there before the directory was synced."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self) -> None:
        self.holdings.close()

    def check(self, change: Change, holder: Holder) -> str:
        """Why it could not be undone, said before anybody is asked about it; empty where it could."""
        sizes = sizes_of(change)
        if sum(sizes.values()) > self.change:
            raise TooLarge(
                f"this change has {sum(sizes.values()):,} bytes to keep for undo, and the limit is {self.change:,}",
                "make it in parts, or raise `images` in toolgate.yaml",
                data={"bytes": sum(sizes.values()), "limit": self.change},
            )
        self._adopt()
        with self.holdings.reading() as accounts:
            if self._fits(accounts, holder.persona, rank_of(change, holder), sizes):
                return ""
        why = f"cannot be undone: the image budget of {holder.persona or 'nobody'} is full"
        if self._refuse and holder.persona != HUMAN:
            raise self._no_room(why, holder.persona)
        return why

    def keep(self, ident: str, persona: str, rank: int, contents: Sequence[bytes], until: int = 0) -> bool:
        """Keep these for a holder, durably. Whether it is time to make room. Raises, keeping nothing, where its persona has
        none: others have taken it since it was checked."""
        sizes = {digest_of(content): len(content) for content in contents}
        now = self._now()
        self._adopt()
        with held(acquire(self._lock, shared=True)):
            with self.holdings.writing() as accounts:
                accounts.expire(now)
                if rank != UNKEPT and not self._fits(accounts, persona, rank, sizes):
                    raise self._no_room(f"cannot be undone: the image budget of {persona} is full", persona)
                accounts.add(ident, persona, rank, now, until or now + self._days * DAY, sizes)
                over = self._over(accounts, persona) or bool(accounts.unkept())
            # Counted before they are there: whoever is killed in between has counted too much, never too little.
            self._put_all(contents)
        return over

    def release(self, ident: str) -> None:
        with held(acquire(self._lock)), self.holdings.writing() as accounts:
            self._remove(accounts, ident)

    def drop(self, persona: str, needed: frozenset[str]) -> None:
        """Bring a persona back into its budget, by what it holds itself and what nobody does. `needed` are the calls that
        run or are in doubt; what others hold is not looked at, whatever the budget says."""
        with self.holdings.writing() as accounts:
            for ident in accounts.unkept():
                if ident not in needed:
                    self._remove(accounts, ident)
            goal = self.persona - self.persona // _PARTS if self._over(accounts, persona) else self.persona
            while accounts.spent(persona) > goal or accounts.spent() > self.total:
                first = accounts.oldest((NOBODY, persona), (SCRATCH, PLAIN), needed)
                if first is None:
                    break
                self._remove(accounts, first)
        self._sweep()

    def _remove(self, accounts: Accounts, ident: str) -> None:
        """Files go before the accounts forget them: whoever is killed in between leaves nothing that counts for nobody."""
        for digest in accounts.remove(ident):
            self._file(digest).unlink(missing_ok=True)

    def _fits(self, accounts: Accounts, persona: str, rank: int, sizes: Sizes) -> bool:
        """Whether there is room, if what may go for it goes: scratch gives way to all, and never the other way."""
        least = ASKED if rank != SCRATCH else PLAIN
        stays = range(least, ASKED + 1)
        need = accounts.new_to(persona, sizes, least) + ENTRY
        if accounts.spent(persona, stays) + need > self.persona:
            return False
        goes = accounts.spent(persona, range(SCRATCH, least)) + accounts.spent(NOBODY)
        return accounts.spent() - goes + need <= self.total

    def _over(self, accounts: Accounts, persona: str) -> bool:
        return accounts.spent(persona) > self.persona or accounts.spent() > self.total

    def _no_room(self, why: str, persona: str) -> TooLarge:
        return TooLarge(
            why,
            f"wait until changes of {persona} are {self._days} days old, or raise `images.persona_bytes` in toolgate.yaml",
            data={"limit": "images.persona_bytes", "budget": self.persona},
        )

    def _adopt(self) -> None:
        """Images that were kept before there were accounts are nobody's: they go when the whole is full, the oldest first."""
        if self._adopted is not None and self._adopted == self.holdings.place():
            return
        with held(acquire(self._lock)), self.holdings.writing() as accounts:
            if not accounts.complete:
                for file, status in list(self._all()):
                    digest = f"sha256:{file.parent.name}{file.name}"
                    sizes = {digest: status.st_size}
                    accounts.add(f"old:{digest}", NOBODY, SCRATCH, status.st_mtime_ns // 1000, 0, sizes)
                accounts.completed()
        self._adopted = self.holdings.place()

    def put(self, contents: Iterable[bytes]) -> None:
        """Durably: on return they survive a power cut."""
        with held(acquire(self._lock, shared=True)):
            self._put_all(contents)

    def _put_all(self, contents: Iterable[bytes]) -> None:
        made: set[Path] = set()
        folders = {self._put(content, made) for content in contents}
        for folder in folders:
            _sync(folder)
        if made or not folders <= self._lasting:
            _sync(self._directory)
            self._lasting |= folders

    def get(self, digest: str) -> bytes:
        try:
            content = _read(self._file(digest), self.change)
        except FileNotFoundError:
            raise NotFound(
                f"the image {digest[:19]}… is not kept any more",
                "restore the file from git or a backup; `images` in toolgate.yaml says how much is kept",
            ) from None
        if content is None or content_hash(content) != digest:
            raise Failed(f"the kept image {digest[:19]}… is damaged", "restore it from a backup of .toolgate")
        return content

    def has(self, digest: str) -> bool:
        """Whether it is there and sound."""
        try:
            self.get(digest)
        except (NotFound, Failed):
            return False
        return True

    def usage(self) -> Usage:
        self._adopt()
        with self.holdings.reading() as accounts:
            return Usage(*accounts.usage(), self.total)

    def hold(self) -> int:
        """A lock under which nobody puts anything; closing the handle lets it go.

        Only while it is held does the journal know every call whose images are here.
        """
        return acquire(self._lock)

    def _put(self, content: bytes, made: set[Path]) -> Path:
        digest = digest_of(content)
        file = self._file(digest)
        with suppress(FileExistsError):
            file.parent.mkdir(mode=0o700)
            made.add(file.parent)
        if not self.has(digest):  # a damaged one is replaced
            _write(file, content)
        # Synced even if it was there: another process may have put it there a moment ago.
        return file.parent

    def _all(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder in self._directory.glob("[0-9a-f][0-9a-f]"):
            for file in folder.iterdir():
                with suppress(FileNotFoundError):
                    if not file.name.startswith(_TEMPORARY):
                        yield file, file.stat()

    def _sweep(self) -> None:
        """What killed processes left half written; nobody alive is writing now."""
        for file in self._directory.glob(f"[0-9a-f][0-9a-f]/{_TEMPORARY}*"):
            file.unlink(missing_ok=True)

    def _file(self, digest: str) -> Path:
        match = _HASH.fullmatch(digest)
        if match is None:
            raise Failed(f"{digest!r} does not name an image", "the record it came from is damaged")
        return self._directory / match[1] / match[2]


def contents_of(change: Change) -> list[bytes]:
    """What must be kept of a change, each content once."""
    sides = (side for file in change.files if file.kind == "file" for side in (file.before, file.after))
    return list(dict.fromkeys(side for side in sides if side is not None))


def sizes_of(change: Change) -> dict[str, int]:
    """The same by their hashes, which the change knows already."""
    found: dict[str, int] = {}
    for file in change.files:
        for content, digest in ((file.before, file.before_hash), (file.after, file.after_hash)):
            if file.kind == "file" and content is not None and digest is not None:
                found[digest] = len(content)
    return found


def rank_of(change: Change, holder: Holder) -> int:
    if change.unkept:
        return UNKEPT
    if holder.asked or holder.persona == HUMAN:
        return ASKED
    return SCRATCH if all(file.path.mount == "scratch" for file in change.files) else PLAIN


def digest_of(content: bytes) -> str:
    found = content_hash(content)
    assert found is not None
    return found


def _read(file: Path, limit: int) -> bytes | None:
    """None for what cannot be an image, because we never make such: a link, a pipe, a device, more than a change has."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    with held(handle):
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max(limit, CHANGE):
            return None
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read()


def _write(file: Path, content: bytes) -> None:
    temporary = file.with_name(_TEMPORARY + os.urandom(8).hex())
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    with held(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as handle:
        os.fsync(handle)
