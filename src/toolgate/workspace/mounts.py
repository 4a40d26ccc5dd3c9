"""Mounts: names for confined directories. Each root is opened once and used by its handle from then on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self

from toolgate.core.conceal import Secrets
from toolgate.core.errors import BlockedPath, OutsideMount, SetupError, Unavailable
from toolgate.core.paths import MOUNT, MountPath
from toolgate.core.records import dataclass
from toolgate.feature import KINDS, MountKind
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import Opener, Root, best_opener, held, open_parent
from toolgate.workspace.watch import MAX_TREES, Watches


@dataclass(frozen=True, slots=True)
class Mount:
    name: str
    directory: Path
    """Where it was when it was opened: for messages only, never to open anything."""
    root: Root


class Mounts:
    """Opens every root at once; `close` or leaving the `with` block lets them go."""

    def __init__(
        self,
        directories: Mapping[str, Path],
        opener: Opener | None = None,
        rules: Callable[[], Mapping[str, MountRules]] | None = None,
        *,
        watch: bool = True,
        secrets: Callable[[], Secrets | None] = lambda: None,
        kinds: Mapping[str, MountKind] | None = None,
    ) -> None:
        """`rules` are asked at every use, because they change with the configuration; absent: the strict ones.
        `secrets` likewise: what finds the vault's values, None where it is empty."""
        self.secrets = secrets
        self._kinds = kinds or {}
        """What each mount was when it was opened."""
        self.watches = Watches(MAX_TREES if watch else 0)
        self._mounts: dict[str, Mount] = {}
        self._rules = rules or cache(lambda: {name: _strict(name) for name in directories})
        try:
            for name, directory in directories.items():
                self._mounts[name] = _open_mount(name, directory, opener or best_opener())
        except SetupError:
            self.close()
            raise

    def resolve(self, path: MountPath) -> tuple[Mount, str]:
        """The mount and the path in it. Parsed again: a MountPath can be made without its checks."""
        path = MountPath.parse(path)
        mount = self._mounts.get(path.mount)
        if mount is None and path.mount in self._kinds:
            raise OutsideMount(
                f"the directory of the mount {path.mount!r} is not there",
                "make it (for a garden `toolgate garden init` does), then open the project again",
            )
        if mount is None:
            raise OutsideMount(
                f"there is no mount {path.mount!r}", f"mounts are: {', '.join(self._mounts) or 'none'}"
            )
        return mount, path.relative

    def rules(self, path: MountPath) -> MountRules:
        found = self._rules().get(path.mount)
        if found is None:
            raise OutsideMount(f"there is no mount {path.mount!r} any more", "check the configuration")
        return found

    def directory(self, name: str) -> Path:
        """Where a mount is, for the sandbox, which opens it anew."""
        return self._named(name).directory

    def handle(self, name: str) -> int:
        return self._named(name).root.handle

    def _named(self, name: str) -> Mount:
        found = self._mounts.get(name)
        if found is None:
            raise Unavailable(
                f"there is no mount `{name}`", f"mounts are: {', '.join(self._mounts) or 'none'}"
            )
        return found

    def kind(self, mount: str) -> MountKind:
        """What a mount is for; one that is not there is plain files."""
        return self._kinds.get(mount) or KINDS.get(mount, KINDS["files"])

    def check_deletes(self, path: MountPath, where: str = "") -> None:
        if not self.kind(path.mount).deletes:
            told = f"{where}nothing in the {path.mount} is deleted or moved: {path.shown} (rule hard:deletes)"
            raise BlockedPath(told, "edit it instead", data={"rule": "hard:deletes", "path": path.shown})

    @contextmanager
    def parent(self, path: MountPath, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The directory that holds a file, as a handle, and the file's name in it. Follows no links."""
        mount, relative = self.resolve(path)
        handle, name = open_parent(mount.root, relative, path.shown, create=create)
        with held(handle):
            yield handle, name

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts.values())

    def close(self) -> None:
        self.watches.close()
        for mount in self._mounts.values():
            os.close(mount.root.handle)
        self._mounts = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _strict(name: str) -> MountRules:
    from toolgate.policy.model import MountSpec

    return MountRules.of(name, MountSpec(path="."))


def _open_mount(name: str, directory: Path, opener: Opener) -> Mount:
    if not MOUNT.fullmatch(name):
        raise SetupError(f"{name!r} cannot name a mount", "use lower-case letters, digits, `-` and `_`")
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SetupError(
            f"the mount {name!r} cannot be opened at {directory}: {error.strerror}", "create the directory"
        ) from None
    return Mount(name, directory, Root(handle, opener))
