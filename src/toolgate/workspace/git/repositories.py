"""Repositories of the mounts, each opened on first need and closed with the gate; a commit-graph for each."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from toolgate.core.errors import BlockedPath, CallError
from toolgate.core.evidence import gathering
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import held
from toolgate.workspace.git.locate import Linked, Links, RepositoryPlace, locate
from toolgate.workspace.git.program import ENVIRONMENT, Batch, limit_memory
from toolgate.workspace.git.store import Refs
from toolgate.workspace.git.view import GitView
from toolgate.workspace.mounts import Mounts

# A commit-graph with changed-path filters, beside the view instead of in the repository. It makes log and
# blame of deep files several times faster. Built in the background on first need; no call waits for it, and
# without it answers are the same. Commits are found by the hash of their content, so a graph can be
# incomplete, never wrong: what was committed since, or put in place of something else, is read from the
# objects. A command lives for a second and a graph of a large repository takes several, so the building git
# outlives whoever started it. Two locks say what it is at, and they are its standard input and output: a
# lock on an open file is given up when the last process that has it open ends. While it holds the one
# nobody else builds; while it holds the other its view is not swept.

LOOK_S = 0.05
FAILED_S = 3600.0
"""What was begun and never finished is begun again, but not more often than this, whatever process asks."""
_STAMP = "tips"
CAN_LEAVE = hasattr(resource, "prlimit")
"""Without its time limit nothing is left running."""


@dataclass(slots=True)
class Building:
    pid: int
    complaint: Path
    code: int | None = None

    async def over(self, seconds: float) -> str:
        """Wait for its end. Empty, or what git said about its failure."""
        until = time.monotonic() + seconds
        while self._runs():
            if time.monotonic() > until:
                self._kill()
            await asyncio.sleep(LOOK_S)
        said = ""
        with suppress(OSError):
            said = self.complaint.read_text("utf-8", "replace")[:300].strip()
        return "" if self.code == 0 else said or f"exit code {self.code}"

    def leave(self) -> bool:
        """Let it go on alone. False if it has ended or had to be."""
        if not self._runs():
            return False
        if not CAN_LEAVE:
            self._kill()
            _collect(self.pid)
            return False
        with suppress(RuntimeError):  # this process is about to end, and need not collect it
            threading.Thread(target=_collect, args=(self.pid,), daemon=True).start()
        return True

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _runs(self) -> bool:
        if self.code is None:
            self.code = _collected(self.pid)
        return self.code is None


def has_graph(info: Path, tips: str) -> bool:
    """Whether these tips have their graph, made by whatever process, or were tried lately."""
    try:
        if (info / _STAMP).read_text() != tips:
            return False
        begun = (info / _STAMP).stat().st_mtime
    except (OSError, ValueError):
        return False
    with suppress(OSError):
        if (info / "commit-graph").stat().st_mtime >= begun:
            return True
    return 0 <= time.time() - begun < FAILED_S


def start_building(view: GitView, info: Path, tips: str, commits: bytes, seconds: float) -> Building | None:
    """None if another process is at it. `tips` is a name for what the graph is of."""
    with held(os.open(info / "building", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as wanted:
        try:
            fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        (info / "commit-graph.lock").unlink(missing_ok=True)  # of a builder that was killed
        os.ftruncate(wanted, 0)
        with os.fdopen(os.dup(wanted), "wb") as file:
            file.write(commits)
        os.lseek(wanted, 0, os.SEEK_SET)
        (info / _STAMP).write_text(tips)
        complaint = info / "complaint"
        pid = _spawn(view, wanted, complaint)
    limit_memory(pid)
    if CAN_LEAVE:
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    return Building(pid, complaint)


def _spawn(view: GitView, stdin: int, complaint: Path) -> int:
    argv = [
        view.program, "-C", str(view.cwd), "--no-pager",
        "commit-graph", "write", "--stdin-commits", "--changed-paths", "--no-progress",
    ]  # fmt: skip
    return os.posix_spawn(
        view.program,
        argv,
        {**ENVIRONMENT, **view.env()},
        file_actions=[
            *((os.POSIX_SPAWN_CLOSE, handle) for handle in _handed_down()),
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, view.lock, 1),  # git prints nothing there
            (os.POSIX_SPAWN_OPEN, 2, str(complaint), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ],
        setpgroup=0,  # a Ctrl-C at the terminal is not for it
    )


def _handed_down() -> Iterator[int]:
    """What we were started with and would pass on: whoever waits for a pipe or a lock of theirs waits for us, not for git."""
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                yield int(name)


def _collect(pid: int) -> None:
    """Wait for its end: whoever lives longer than it would keep a dead process in the list."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _collected(pid: int) -> int | None:
    """Its exit code, or None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0  # somebody else has collected it
    return os.waitstatus_to_exitcode(status) if ended else None


log = logging.getLogger("toolgate.git")
BUILD_SECONDS = 900.0
REBUILD_SECONDS = 60.0
"""Refs that moved bring a new graph, but not more often than this."""


@dataclass(slots=True)
class Graph:
    view: GitView
    _task: asyncio.Task[None] | None = None
    _building: Building | None = None
    _tips: frozenset[bytes] = frozenset()
    _built_at: float = float("-inf")

    def want(self) -> None:
        """Say that it would help. Returns at once."""
        if self._task is not None and not self._task.done():
            return
        tips = frozenset(self.view.refs.ids.values()) | {self.view.refs.head_id or b""}
        if (
            tips == self._tips
            or time.monotonic() < self._built_at + REBUILD_SECONDS
            or self.view.refs.shallow
        ):
            return  # git uses no graph in a shallow repository
        self._tips = tips
        self._task = asyncio.ensure_future(self._build(sorted(tips - {b""})))

    async def ready(self) -> None:
        """Until the graph that was wanted is there; for measurements and tests."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> bool:
        """True if a git goes on building, and with it needs the view."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        return self._building is not None and self._building.leave()

    async def _build(self, tips: list[bytes]) -> None:
        info = self.view.store.links / "info"
        name = hashlib.sha256(b"\n".join(tips)).hexdigest()
        if has_graph(info, name):
            return
        try:
            commits = await self._commits(tips)
            self._building = start_building(self.view, info, name, commits, BUILD_SECONDS)
        except (CallError, OSError) as error:
            log.warning("no commit-graph for %s: %s", self.view.place.git, error)
            return
        if self._building is None:
            return  # another process is at it, and its graph serves us too
        said = await self._building.over(BUILD_SECONDS)
        self._building = None
        if said:
            log.warning("no commit-graph for %s: %s", self.view.place.git, said)
        self._built_at = time.monotonic()

    async def _commits(self, tips: list[bytes]) -> bytes:
        """Refs may name trees or objects that are gone; a graph is made of commits."""
        checked = await self.view.git(
            "cat-file", "--batch-check=%(objecttype) %(objectname)",
            stdin=b"".join(tip + b"^{commit}\n" for tip in tips), seconds=BUILD_SECONDS, cap=64 << 20,
        )  # fmt: skip
        lines = (line.split() for line in checked.data.splitlines())
        return b"".join(words[1] + b"\n" for words in lines if len(words) == 2 and words[0] == b"commit")


MOST_OPEN = 32
"""Each holds a process; a tree full of repositories must not hold as many."""
MOST_KNOWN = 20_000


@dataclass(slots=True)
class Repository:
    view: GitView
    batch: Batch
    graph: Graph
    rules: Callable[[], Mapping[str, MountRules]]
    _judged: tuple[MountRules, dict[str, bool]] | None = None
    """Which directories those rules show; together, because threads ask too."""

    @property
    def place(self) -> RepositoryPlace:
        return self.view.place

    def visible(self, path: str) -> bool:
        """Whether the mount's rules let a path of the repository be shown, at whatever revision."""
        rules = self.rules().get(self.place.mount.name)
        if rules is None:
            return False
        above, _, name = path.rpartition("/")
        if above and path.isascii() and "/." not in f"/{path}" and rules.plain(name):
            # one commit may touch thousands of files in few directories, where only the names differ
            return self._shown(rules, above)
        return rules.refuse(self.place.mount_path(path), False) is None

    def _shown(self, rules: MountRules, directory: str) -> bool:
        judged = self._judged
        if judged is None or judged[0] is not rules or len(judged[1]) >= MOST_KNOWN:
            judged = self._judged = (rules, {})
        shown = judged[1].get(directory)
        if shown is None:
            shown = rules.refuse(self.place.mount_path(directory), False) is None
            judged[1][directory] = shown
        return shown

    async def close(self) -> None:
        needed = await self.graph.close()
        await self.batch.close()
        await asyncio.to_thread(self.view.close, needed=needed)


@dataclass(slots=True)
class Repositories:
    mounts: Mounts
    cache: Path
    rules: Callable[[], Mapping[str, MountRules]]
    _open: dict[tuple[str, str, Linked | None], Repository] = field(default_factory=dict)
    _links: Links = field(default_factory=Links)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def at(self, path: MountPath) -> Repository:
        """The repository that a path belongs to, as it is now. Of a mount that everybody sees another part of, none: a commit
        holds all parts."""
        if self.mounts.kind(path.mount).scope:
            told = f"{path.shown!r} is in the {path.mount}, whose history in git is not shown"
            raise BlockedPath(told, "`toolgate garden history` shows the versions of a file")
        place = await asyncio.to_thread(locate, self.mounts, path, self._links)
        key = (place.mount.name, place.git, place.linked)
        async with self._opening:
            found = self._open.pop(key, None)
            if found is None:
                name = hashlib.sha256(f"{place.mount.directory}\0{place.git_dir}".encode()).hexdigest()[:16]
                view = await asyncio.to_thread(GitView.make, place, self.cache / name)
                view.secrets = self.mounts.secrets
                found = Repository(view, Batch(view), Graph(view), self.rules)
            self._open[key] = found  # last again: the one used longest ago comes first
            if len(self._open) > MOST_OPEN:
                await self._open.pop(next(iter(self._open))).close()
        await found.view.refresh()
        self._note(path, found)
        return found

    def _note(self, path: MountPath, found: Repository) -> None:
        evidence = gathering()
        if evidence is None:
            return
        view = found.view
        evidence.add(HistoryProof(self, path, view, view.refs, view.objects, view.turns))

    async def close(self) -> None:
        for repository in self._open.values():
            await repository.close()
        self._open = {}
        self._links.close()


@dataclass(frozen=True, slots=True)
class HistoryProof:
    """A path belongs to the same repository, whose refs say the same and whose objects are the same ones.

    An object never changes under its name, so what was computed from refs and objects is what it would be again.
    """

    repositories: Repositories
    path: MountPath
    view: GitView
    refs: Refs
    objects: frozenset[tuple[str, tuple[int, int]]] | None
    turns: int

    def stood(self) -> bool:
        """Another call may have brought the view up to date while this one ran."""
        return self.objects is not None and self.view.turns == self.turns

    async def holds(self) -> bool:
        now = (await self.repositories.at(self.path)).view
        return now is self.view and now.refs == self.refs and now.objects == self.objects
