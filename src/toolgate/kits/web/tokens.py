"""Tokens: one for the human, one for each persona, kept where the ledger's key is kept.

The human's token may approve; a persona's token only calls. They are 256 random bits, in a file of the user's state
directory that nobody else can read. A replaced token stops working in every process at once: the file is looked
at again whenever it has changed.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgate.core.errors import SetupError
from toolgate.core.names import HUMAN, PERSONA
from toolgate.core.status import FileLook, FileStatus
from toolgate.storage import durable

BYTES = 32
LONGEST_TOKEN = 200
"""No token is longer; what is longer is not compared."""


def path_for(state_dir: Path, project: str) -> Path:
    return state_dir / "tokens" / f"{project}.json"


@dataclass
class Tokens:
    """The tokens of one project. `human` is a name like any other here; what it may do is not decided here."""

    path: Path

    def __post_init__(self) -> None:
        self._stamp: FileStatus | None = None
        self._known: dict[str, str] = {}
        self._status = FileLook(self.path)

    def of(self, name: str) -> str:
        """The token of this name, made at the first asking."""
        found = self._current().get(name)
        return found if found is not None else self._make(name, replace=False)

    def renew(self, name: str) -> str:
        """Another token; the old one is worth nothing from now on."""
        return self._make(name, replace=True)

    def owner(self, token: str) -> str:
        """Whose token this is; empty for a stranger's."""
        return _owner(token, self._current())

    def last_owner(self, token: str) -> str:
        """The same by what was last read, where that knows it. For what may be wrong for a moment: it saves a look."""
        return _owner(token, self._known) or self.owner(token)

    def _make(self, name: str, *, replace: bool) -> str:
        if not PERSONA.fullmatch(name):
            raise SetupError(f"{name[:80]!r} is not a persona's name", "use letters, digits, `_`, `-`, `.`")
        with self._alone():
            known = self._read()
            if replace or name not in known:
                known[name] = f"tg{'h' if name == HUMAN else 'p'}_{secrets.token_urlsafe(BYTES)}"
                self._write(known)
        return known[name]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes that make tokens at once must not lose one another's."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _current(self) -> dict[str, str]:
        try:
            stamp = self._status()  # at every request
        except FileNotFoundError:
            return {}
        if stamp != self._stamp:
            self._known, self._stamp = self._read(), stamp
        return self._known

    def _read(self) -> dict[str, str]:
        try:
            with open(self.path, opener=_no_link) as file:
                _check_private(file.fileno(), self.path)
                data: Any = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SetupError(f"{self.path} cannot be read: {error}", "repair or remove it") from None
        if not isinstance(data, dict) or not all(isinstance(each, str) and each for each in data.values()):
            raise SetupError(f"{self.path} does not hold tokens", "remove it; new ones are made")
        return {str(name): token for name, token in data.items()}

    def _write(self, known: dict[str, str]) -> None:
        durable.replace(self.path, json.dumps(known, indent=1, sort_keys=True).encode())


def _owner(token: str, tokens: Mapping[str, str]) -> str:
    """Every token is compared, so time tells nothing."""
    if len(token) > LONGEST_TOKEN or not token.isascii():
        return ""
    given, owner = token.encode(), ""
    for name, known in tokens.items():
        if hmac.compare_digest(given, known.encode()):
            owner = name
    return owner


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _check_private(handle: int, path: Path) -> None:
    if os.fstat(handle).st_mode & 0o077:
        raise SetupError(
            f"{path} can be read by others",
            f"`chmod 600 {path}`, then make new tokens: `toolgate token --new`",
        )
