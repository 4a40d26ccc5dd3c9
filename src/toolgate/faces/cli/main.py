"""The entry point, and how every error ends. What it does not need at once it imports late."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from toolgate.version import VERSION


def main(args: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if args is None else args)
    if given == ["--version"]:
        sys.stdout.write(f"toolgate {VERSION}\n")
        return 0
    # what is installed beside toolgate under pydantic's entry point would be loaded into the gate and see every argument
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has gone; Python must not complain about it again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _run(given: list[str]) -> int:
    if given[:1] == ["mcp"]:
        from toolgate.faces.mcp import command

        asked = command.parse(given[1:])
        if (
            asked is not None
        ):  # a client waits for the first answer: without the help, colours and checks of others
            return command.run(asked)
    if asked_for := os.environ.get("_TOOLGATE_COMPLETE"):
        from toolgate.faces.cli import completion

        return completion.answer(asked_for)
    from toolgate.faces.cli import root

    try:
        root.run(given)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:
        raise
    except Exception as error:
        from toolgate.kits.terminal import failures

        return failures.report(error)
    return 0
