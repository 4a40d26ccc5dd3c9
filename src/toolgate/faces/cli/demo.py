"""`toolgate demo`: the tour. It runs the real thing in a temporary directory and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from rich.console import Console

from toolgate.faces.cli.tour import tour
from toolgate.kits.terminal import project
from toolgate.kits.terminal.command import Option, command

PAUSE = 1.0


@command(epilog="Example: toolgate demo --fast")
def demo(
    fast: Annotated[bool, Option("--fast", help="Do not pause between the steps.")] = False,
    no_color: Annotated[bool, Option("--no-color", help="Plain text.")] = False,
) -> None:
    """A tour: calls allowed, denied and asked about, a proven ledger, a scripted agent, an undo, a forgery."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, no_color=no_color or None)
    pause = 0.0 if fast or not console.is_terminal else PAUSE
    with playground() as root:
        project.run(tour(console, root, pause))


@contextmanager
def playground() -> Iterator[Path]:
    """A project and a state directory of its own; the user's are not touched."""
    before = os.environ.get("TOOLGATE_STATE_DIR")
    with tempfile.TemporaryDirectory(prefix="toolgate-demo-") as place:
        root = Path(place) / "shop"
        root.mkdir()
        os.environ["TOOLGATE_STATE_DIR"] = str(Path(place) / "state")
        try:
            yield root
        finally:
            if before is None:
                del os.environ["TOOLGATE_STATE_DIR"]
            else:
                os.environ["TOOLGATE_STATE_DIR"] = before
