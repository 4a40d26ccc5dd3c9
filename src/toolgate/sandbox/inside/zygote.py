"""The program that the host starts: `python -I -S zygote.py FD MODE [ablation]`, or `… probe MODE UID` to try a mode."""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import sys
from typing import Any


def _room() -> Any:
    """This directory as a package, without putting any directory where a program's imports would look."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "inside", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["inside"] = package
    return importlib.import_module("inside.fork_server")


def main(handle: str, mode: Any, *more: str) -> None:
    server = _room()
    server.settle(mode)
    if handle == "probe":
        server.try_mode(mode, int(more[0]))
    else:
        server.serve(socket.socket(fileno=int(handle)), mode, more == ("ablation",))


if __name__ == "__main__":
    main(*sys.argv[1:])
