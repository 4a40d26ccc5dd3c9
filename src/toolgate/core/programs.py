"""Programs of the machine that toolgate starts by their names. Places on the PATH that are no absolute paths lead into whatever
directory toolgate is run in, which agents may write: nothing is started from there."""

from __future__ import annotations

import os

NAMES = ("git", "rg", "notify-send")


def find_program(name: str) -> str | None:
    import shutil  # loaded by those who start one

    places = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(place)]
    return shutil.which(name, path=os.pathsep.join(places))
