"""The private GIT_DIR: our config, a snapshot of the refs, links to the checked objects. See the package's docstring.

Of the repository's own config, only the settings of form are kept that say how its files are stored. They are looked for
with a line parser, not with git: no include is followed, no value is more than a word of a list.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path

from toolgate.core.conceal import Secrets
from toolgate.core.records import dataclass, field
from toolgate.workspace.git.index import Tracked
from toolgate.workspace.git.locate import RepositoryPlace
from toolgate.workspace.git.program import Output, find_git, run
from toolgate.workspace.git.store import SETTLED_NS, ObjectStore, Refs, newest, read_refs, stamp_of

MOST_BYTES = 32 << 20
MOST_OF_ONE = 2 << 20


@dataclass(slots=True)
class Memo:
    """The ones used longest ago are forgotten first."""

    _kept: OrderedDict[Hashable, Output] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, key: Hashable) -> Output | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, output: Output) -> None:
        if len(output.data) > MOST_OF_ONE or key in self._kept:
            return
        self._kept[key] = output
        self._bytes += len(output.data)
        while self._bytes > MOST_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.data)


_FORM = {
    "autocrlf": ("true", "false", "input"),
    "eol": ("lf", "crlf", "native"),
    "filemode": ("true", "false"),
    "symlinks": ("true", "false"),
    "ignorecase": ("true", "false"),
    "precomposeunicode": ("true", "false"),
}
_SPELLED = {
    "yes": "true",
    "on": "true",
    "1": "true",
    "no": "false",
    "off": "false",
    "0": "false",
    "": "false",
}
"""As git takes them, too; a name alone is true."""
_MOST_CONFIG = 1 << 20
_LONGEST_LINE = 1024
"""What of a line is looked at: one with a word of form is short."""
_OWN_CONFIG = """\
[core]
	repositoryformatversion = %d
	bare = false
	quotePath = true
	commitGraph = true
	multiPackIndex = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	fsmonitor = false
	pager = cat
[commitGraph]
	readChangedPaths = true
[protocol]
	allow = never
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[log]
	showSignature = false
[i18n]
	logOutputEncoding = UTF-8
[diff]
	renameLimit = 1000
"""


def config_of(place: RepositoryPlace, hash_name: str) -> bytes:
    text = _OWN_CONFIG % (1 if hash_name == "sha256" else 0)
    if hash_name == "sha256":
        text += "[extensions]\n\tobjectFormat = sha256\n"
    form = form_of((place.read("config", _MOST_CONFIG) or b"").decode("utf-8", "replace"))
    if form:
        text += "[core]\n" + "".join(f"\t{name} = {value}\n" for name, value in form.items())
    return text.encode()


def form_of(text: str) -> dict[str, str]:
    """The known words of `[core]`; anything else is as if it were not written."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        line = line.strip()[:_LONGEST_LINE]
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            section = head.strip().lower()
        name, equals, value = _before_comment(line).replace('"', "").partition("=")
        alone = "true" if len(line) < _LONGEST_LINE else "cut"
        name, value = name.strip().lower(), value.strip().lower() if equals else alone
        value = _SPELLED.get(value, value)
        if section == "core" and value in _FORM.get(name, ()):
            found[name] = value
    return found


def _before_comment(value: str) -> str:
    return value.partition("#")[0].partition(";")[0]


_LOCK = "alive"


@dataclass(slots=True)
class GitView:
    """One per repository and process. `refresh` before use; `close` removes it."""

    place: RepositoryPlace
    directory: Path
    store: ObjectStore
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
    def make(cls, place: RepositoryPlace, cache: Path) -> GitView:
        """`cache` is the repository's own directory in the project's state; it outlives the process."""
        program = find_git()
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(cache)
        store = ObjectStore(place, cache / "objects")
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
        elif config_of(self.place, refs.hash_name) != self._config:
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
        self._config = config_of(self.place, refs.hash_name)
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
