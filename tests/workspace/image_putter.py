"""Puts images into a directory until it is killed, as fast as it can. `python image_putter.py DIRECTORY`"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from toolgate.workspace.holdings import PLAIN
from toolgate.workspace.images import Images


def main() -> None:
    images = Images(Path(sys.argv[1]), total=1 << 20)
    for number in itertools.count():
        contents = [os.urandom(100_000), b"shared"]
        if images.keep(f"{os.getpid()}-{number}", "bob", PLAIN, contents):
            handle = images.hold()
            images.drop("bob", frozenset())
            os.close(handle)
        print("put", flush=True)


if __name__ == "__main__":
    main()
