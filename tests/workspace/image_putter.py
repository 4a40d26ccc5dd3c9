"""Puts images into a directory until it is killed, as fast as it can. `python image_putter.py DIRECTORY`"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolgate.workspace.images import Images


def main() -> None:
    images = Images(Path(sys.argv[1]), total=1 << 20)
    while True:
        content = os.urandom(100_000)
        if images.put([content, b"shared"]):
            handle = images.hold()
            images.drop(frozenset())
            os.close(handle)
        print("put", flush=True)


if __name__ == "__main__":
    main()
