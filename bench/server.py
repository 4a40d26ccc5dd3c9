"""The PostgreSQL that the tests start from a wheel, for the benchmarks that need one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"


class Postgres:
    """Started when the first benchmark asks for it, stopped at the end."""

    def __init__(self, stack: ExitStack, tell: Callable[[str], None]) -> None:
        self._stack, self._tell = stack, tell
        self._server: Any = None
        self.missing = ""

    def database(self) -> AbstractContextManager[str] | None:
        if self._server is None and not self.missing:
            self._start()
        return None if self.missing else self._fresh()

    @property
    def version(self) -> str:
        if self._server is None:
            return self.missing or "not asked for"
        return str(self._server.sql("SHOW server_version"))

    @contextmanager
    def _fresh(self) -> Iterator[str]:
        yield self._server.fresh_dsn()

    def _start(self) -> None:
        self._tell("starting PostgreSQL")
        try:
            importlib.import_module("toolgate.storage.postgres")
            sys.path.append(str(TESTS))
            helper = importlib.import_module("servers.postgres")
            self._server = self._stack.enter_context(helper.running_postgres())
        except (ImportError, RuntimeError, OSError) as error:
            self.missing = f"not measured: {error}"
