"""The private GIT_DIR: our config, a snapshot of the refs, links to the checked objects. See the package's docstring."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from toolgate.core.conceal import Secrets
from toolgate.workspace.git import settings
from toolgate.workspace.git.locate import Place
from toolgate.workspace.git.memo import Memo
from toolgate.workspace.git.program import Output, find_git, run
from toolgate.workspace.git.refs import Refs, newest, read_refs, stamp_of
from toolgate.workspace.git.store import SETTLED_NS, Store
from toolgate.workspace.git.tracked import Tracked

_LOCK = "alive"


@dataclass(slots=True)
class View:
    """One per repository and process. `refresh` before use; `close` removes it."""

    place: Place
    directory: Path
    store: Store
    refs: Refs
    lock: int
    """Held as long as anybody needs the directory."""
    program: str = field(default_factory=find_git)
    memo: Memo = field(default_factory=Memo)
    objects: frozenset[tuple[str, tuple[int, int]]] | None = None
    """Differs when an object came or went; None where that cannot be told."""
    turns: int = 0
    """How often the refs were found changed."""
    secrets: Callable[[], Secrets | None] = lambda: None
    """What finds the vault's values; None where it is empty."""
    tracked: Tracked = field(init=False)
    _config: bytes = b""
    _settled: bool = False
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.tracked = Tracked(self.place)

    @classmethod
    def make(cls, place: Place, cache: Path) -> View:
        """`cache` is the repository's own directory in the project's state; it outlives the process."""
        program = find_git()
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(cache)
        store = Store(place, cache / "objects")
        store.lay()
        store.check()
        refs = read_refs(place)
        draft = Path(tempfile.mkdtemp(prefix="new-", dir=cache))
        lock = os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        directory = draft.with_name(draft.name.replace("new-", "view-", 1))
        draft.rename(directory)  # nobody sweeps it before it is locked
        for name in ("empty", "refs", "objects"):
            (directory / name).mkdir()
        view = cls(place, directory, store, refs, lock, program)
        view._write(refs)
        return view

    async def refresh(self) -> None:
        """Bring the snapshot up to date: what anybody committed a moment ago is there."""
        async with self._refreshing:
            await asyncio.to_thread(self._refresh)

    def _refresh(self) -> None:
        self.store.check()
        self.objects = self.store.marks
        if self._settled and stamp_of(self.place) == self.refs.stamp:
            return
        refs = read_refs(self.place)
        self._settled = newest(refs.stamp) < time.time_ns() - SETTLED_NS
        if refs != self.refs:
            self.turns += 1
            self._write(refs)
        elif settings.config(self.place, refs.hash_name) != self._config:
            self._write(refs)
        self.refs = refs

    def env(
        self, *, work_tree: bool = False, index: Path | None = None, fresh: Path | None = None
    ) -> dict[str, str]:
        """`fresh` is where objects of the moment were put, beside those of the repository."""
        env = {
            "GIT_DIR": str(self.directory),
            "GIT_OBJECT_DIRECTORY": str(fresh or self.store.links),
            "GIT_CEILING_DIRECTORIES": str(self.directory.parent),
        }
        if fresh is not None:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(self.store.links)
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        if work_tree:
            env["GIT_WORK_TREE"] = str(self.place.work_tree)
        return env

    @property
    def cwd(self) -> Path:
        """An empty directory: without a work tree named, git takes this for it and finds no attributes."""
        return self.directory / "empty"

    async def git(
        self, *args: str, seconds: float, cap: int, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> Output:  # fmt: skip
        argv = (self.program, "--no-pager", *args)
        cwd = self.place.work_tree if env is not None and "GIT_WORK_TREE" in env else self.cwd
        return await run(argv, env or self.env(), cwd, seconds=seconds, cap=cap, stdin=stdin)

    async def recall(self, *args: str, seconds: float, cap: int, stdin: bytes | None = None) -> Output:
        """The same, kept: for commands that depend on nothing but object ids and where history was cut off."""
        key = (args, stdin, cap, self.refs.shallow)
        kept = self.memo.get(key)
        if kept is None:
            kept = await self.git(*args, seconds=seconds, cap=cap, stdin=stdin)
            self.memo.put(key, kept)
        return kept

    def close(self, *, needed: bool = False) -> None:
        """`needed` by a git that goes on: whoever comes after its end sweeps the directory away."""
        if not needed:
            shutil.rmtree(self.directory, ignore_errors=True)
        os.close(self.lock)

    def _write(self, refs: Refs) -> None:
        self._config = settings.config(self.place, refs.hash_name)
        for name, content in (
            ("config", self._config),
            ("packed-refs", refs.packed()),
            ("HEAD", refs.head_file()),
            ("shallow", refs.shallow),
        ):
            if name == "shallow" and not content:
                (self.directory / name).unlink(missing_ok=True)
            else:
                _replace(self.directory / name, content)


def _replace(file: Path, content: bytes) -> None:
    """A git that is running sees the old or the new one, never half of it."""
    draft = file.with_name(file.name + ".new")
    draft.write_bytes(content)
    draft.replace(file)


def _sweep(cache: Path) -> None:
    """Remove views whose process is gone: nobody holds their lock any more."""
    for directory in cache.glob("view-*"):
        try:
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # being made, or being removed
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)
