"""The name that was probably meant, where there is no such file: models misspell, and try again as they are told."""

from __future__ import annotations

import difflib
import os
from itertools import islice

from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.look import status_of
from toolgate.workspace.mounts import Mounts

MOST_NAMES = 2_000
"""Of a directory so many are compared; it is a help, not a search."""
LIKE = 0.66
ADVICE = "check the path; `fs.find` finds files by name"


def advice(mounts: Mounts, path: MountPath) -> str:
    """What to do about a path that is not there. Names only what the mount's rules show."""
    try:
        found = _near(mounts, path)
    except (CallError, OSError):
        found = None
    return f"did you mean {found.shown!r}? Else {ADVICE}" if found else ADVICE


def _near(mounts: Mounts, path: MountPath) -> MountPath | None:
    """The same path with the first name that is missing put right, if all of it is there then."""
    names = path.relative.split("/")
    for index, name in enumerate(names):
        above = "/".join(names[:index]) or "."
        if status_of(mounts, MountPath(f"{path.mount}:{'/'.join(names[: index + 1])}")) is not None:
            continue
        for meant in difflib.get_close_matches(name, _names(mounts, path, above), n=3, cutoff=LIKE):
            found = MountPath.parse(f"{path.mount}:{'/'.join([*names[:index], meant, *names[index + 1 :]])}")
            if mounts.rules(found).refuse(found, written=False) is None and status_of(mounts, found):
                return found
        return None
    return None


def _names(mounts: Mounts, path: MountPath, directory: str) -> list[str]:
    mount, _ = mounts.resolve(path)
    with (
        held(open_directory(mount.root, directory, directory, follow=False)) as handle,
        os.scandir(handle) as items,
    ):
        names = [item.name for item in islice(items, MOST_NAMES)]
    secrets = mounts.secrets()  # how near a guess is to a name would tell of a secret in it
    return [name for name in names if secrets is None or not secrets.spans(os.fsencode(name))]
