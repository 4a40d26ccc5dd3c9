"""The repositories of the mounts, each opened on first need and closed with the gate."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolgate.core.errors import BlockedPath
from toolgate.core.evidence import gathering
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules
from toolgate.workspace.git.batch import Batch
from toolgate.workspace.git.graph import Graph
from toolgate.workspace.git.locate import Linked, Links, RepositoryPlace, locate
from toolgate.workspace.git.refs import Refs
from toolgate.workspace.git.view import GitView
from toolgate.workspace.mounts import Mounts

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
