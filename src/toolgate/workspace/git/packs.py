"""The repository's packs, linked one by one.

A link to the whole directory would bring its `multi-pack-index` too: that names packs by any path, and git opens them
wherever they are. Bitmaps and marks of other programs are not needed to read an object, so they are left out as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from toolgate.core.errors import Unavailable

_PACK = re.compile(r"pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|rev|idx)")


def is_pack(name: str) -> bool:
    return _PACK.fullmatch(name) is not None


def lay_packs(links: Path) -> None:
    """Make the directory, and refuse one that holds anything but links to packs."""
    if links.is_symlink():
        links.unlink()  # an earlier version linked the whole directory
    links.mkdir(exist_ok=True)
    for name in os.listdir(links):
        if not is_pack(name) or not (links / name).is_symlink():
            raise _strange(links / name)


def link_packs(links: Path, packs: Path, names: Iterable[str]) -> None:
    """Bring the links up to date with these names in `packs`. Other processes may do so at the same moment."""
    wanted = set(names)
    # an index that git finds has its pack already, when it comes and when it goes
    for name in sorted(wanted, key=_index_last):
        target, link = str(packs / name), links / name
        try:
            os.symlink(target, link)
        except FileExistsError:
            if not link.is_symlink() or os.readlink(link) != target:
                raise _strange(link) from None
    for name in sorted(os.listdir(links), key=_index_last, reverse=True):
        if not os.path.lexists(packs / name):  # one that came since we looked was linked by another process
            (links / name).unlink(missing_ok=True)


def _index_last(name: str) -> tuple[bool, str]:
    return name.endswith(".idx"), name


def _strange(link: Path) -> Unavailable:
    return Unavailable(f"{link} is not the link it should be", "delete the cache: `.toolgate/cache/git`")
