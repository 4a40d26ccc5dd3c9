"""The project as a program may see it: which names are hidden from it, and what every file was when it started.

Names are judged as they are for every tool: what the mount's rules keep shut is not there. So is what would be a way
around them: files with several names, special files, other file systems.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from toolgate.core.errors import CallError, InvalidArgs, TooLarge
from toolgate.core.paths import MountPath
from toolgate.features.programs.environments import FoundEnvironment, Setting, find
from toolgate.policy.dotfiles import hidden
from toolgate.policy.hard import MountRules
from toolgate.sandbox.job import PROJECT, WORK, Environment, View
from toolgate.sandbox.program import SYSTEM
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import identity, status_of
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
    environment: Environment | None = None
    """Directories of the project that are shown as they are, and cannot be changed."""


def environment_of(mounts: Mounts, python: Setting = None, node: Setting = None) -> FoundEnvironment:
    """Blocking."""
    project, others = mounts.directory("project"), [mount.directory for mount in mounts]
    return find(project, mounts.rules(_ROOT), python, node, others)


def check_path(mounts: Mounts, program: str, view: View | None, *, starts_in_project: bool) -> None:
    """Refuses a program by its path that is plainly not there. What a mount keeps shut is not there for programs."""
    path = os.path.normpath(program)
    base = view.environment.base if view is not None and view.environment is not None else ""
    if not os.path.isabs(path):
        there = view is None or not starts_in_project or _in_project(mounts, path, view)
    elif inside := _below(path, PROJECT, view.known_as if view is not None else ""):
        there = view is not None and _in_project(mounts, inside, view)
    elif _below(path, *SYSTEM, *((f"{base}/bin", f"{base}/lib") if base else ())):
        there = os.path.exists(path)
    else:
        there = bool(_below(path, WORK, "/tmp"))  # noqa: S108 - what the program itself has made
    if not there:
        raise InvalidArgs(
            f"there is no program {program[:200]!r} in the sandbox",
            "programs are in /usr/bin, and with `project: read` in /project",
        )


def _below(path: str, *directories: str) -> str:
    """The path from the first of these that it is in."""
    for directory in filter(None, directories):
        if path.startswith(directory + "/"):
            return path[len(directory) + 1 :]
    return ""


def _in_project(mounts: Mounts, relative: str, view: View | None) -> bool:
    environment = view.environment if view is not None else None
    for directory in environment.directories if environment is not None else ():
        if view is not None and f"{relative}/".startswith(f"{directory}/"):
            return os.path.lexists(view.root / relative)
    try:
        path = MountPath.parse(f"project:{relative}")
        return mounts.rules(path).refuse(path, written=False) is None and status_of(mounts, path) is not None
    except CallError:
        return False


def look_over(mounts: Mounts, environment: Environment | None = None) -> ProjectSeen:
    """Blocking. What comes after this look is seen by the program, if it is there when it looks, but never proposed."""
    seen, rules = ProjectSeen(environment=environment), mounts.rules(_ROOT)
    whole = frozenset(environment.directories if environment is not None else ())
    ways = {way for each in whole for way in _above(each)}
    device = os.fstat(mounts.handle("project")).st_dev
    young = False

    def enter(entry: Entry) -> bool:
        return entry.relative in seen.directories and entry.relative not in whole

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
        if entry.relative in whole or (entry.relative in ways and entry.kind == "directory"):
            seen.directories.add(entry.relative)
        elif status is None or _shut(rules, entry) or status.st_dev != device:
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
    return View(mounts.directory("project"), tuple(seen.hidden), writable, seen.environment)


def _above(path: str) -> list[str]:
    """The directories on the way to one."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _shut(rules: MountRules, entry: Entry) -> bool:
    """Below a hidden name every path is judged; elsewhere most names are plain."""
    way, _, name = entry.relative.rpartition("/")
    if rules.plain(name) and not any(map(hidden, way.split("/"))):
        return False
    return rules.refuse(entry.path, written=False) is not None
