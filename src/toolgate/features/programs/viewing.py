"""The project as a program may see it: which names are hidden from it, and what every file was when it started.

Names are judged as they are for every tool: what the mount's rules keep shut is not there. So is what would be a way
around them: files with several names, special files, other file systems.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from toolgate.core.errors import TooLarge, Unavailable
from toolgate.core.paths import MountPath
from toolgate.policy.dotfiles import hidden
from toolgate.policy.hard import MountRules
from toolgate.sandbox.job import View
from toolgate.workspace.look import identity
from toolgate.workspace.mounts import Mount, Mounts
from toolgate.workspace.tree import MAX_DEPTH, Entry, walk_tree

MAX_ENTRIES = 500_000
MAX_HIDDEN = 20_000
YOUNG_NS = 20_000_000
"""More than a tick of any kernel's clock."""
_ROOT = MountPath("project:.")


@dataclass(slots=True)
class ProjectSeen:
    """What was there when the program started: the status of each file it could see, and the directories."""

    files: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    hidden: list[str] = field(default_factory=list)


def look_over(mounts: Mounts) -> ProjectSeen:
    """Blocking. What comes after this look is seen by the program, if it is there when it looks, but never proposed."""
    seen, rules = ProjectSeen(), mounts.rules(_ROOT)
    device = os.fstat(_mount(mounts).root.handle).st_dev
    young = False

    def enter(entry: Entry) -> bool:
        return entry.relative in seen.directories

    def unread(entry: Entry) -> None:
        """Its names could not be judged, so none of them is shown."""
        if entry.relative in seen.directories:
            seen.directories.remove(entry.relative)
            seen.hidden.append(entry.relative)

    started = time.time_ns()
    for count, entry in enumerate(walk_tree(mounts, _ROOT, enter=enter, everything=True, unread=unread), 1):
        if count > MAX_ENTRIES or len(seen.hidden) > MAX_HIDDEN:
            raise TooLarge(
                f"the project has more than {MAX_ENTRIES:,} names or {MAX_HIDDEN:,} hidden ones",
                "run the program without a view of it, or give it what it needs in `files`",
            )
        status = entry.status()
        if status is None or _shut(rules, entry) or status.st_dev != device:
            seen.hidden.append(entry.relative)
        elif entry.kind == "directory" and entry.depth < MAX_DEPTH:
            seen.directories.add(entry.relative)
        elif entry.kind == "link":
            seen.links.add(entry.relative)
        elif entry.kind == "file" and (status.st_nlink == 1 or rules.hard_links):
            seen.files[entry.relative] = identity(status)
            young |= max(status.st_mtime_ns, status.st_ctime_ns) > started - YOUNG_NS
        else:
            seen.hidden.append(entry.relative)
    if young:  # until the clock of the file system has moved on, a write would leave no trace in a status
        time.sleep(YOUNG_NS / 1e9)
    return seen


def view_of(mounts: Mounts, seen: ProjectSeen, *, writable: bool) -> View:
    return View(_mount(mounts).directory, tuple(seen.hidden), writable)


def _mount(mounts: Mounts) -> Mount:
    for mount in mounts:
        if mount.name == "project":
            return mount
    raise Unavailable("there is no mount `project`", "run the program without a view of it")


def _shut(rules: MountRules, entry: Entry) -> bool:
    """Below a hidden name every path is judged; elsewhere most names are plain."""
    way, _, name = entry.relative.rpartition("/")
    if rules.plain(name) and not any(map(hidden, way.split("/"))):
        return False
    return rules.refuse(entry.path, written=False) is not None
