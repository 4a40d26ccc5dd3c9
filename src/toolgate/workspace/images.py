"""Contents of files before and after each change, kept by their hash.

`ab/cdef…` below the given directory, named by SHA-256. An image is whole or absent, private to the user, and
verified whenever it is read: what undo and recovery write back is what was there, or nothing.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from toolgate.core.change import content_hash
from toolgate.core.errors import Failed, NotFound

_HASH = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")
_TEMPORARY = ".toolgate-tmp-"


class Images:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, contents: Iterable[bytes]) -> None:
        """Keep these, durably: on return they survive a power cut."""
        folders = {self._put(content) for content in contents}
        for folder in folders:
            _sync(folder)
        if folders:
            _sync(self._directory)

    def get(self, digest: str) -> bytes:
        try:
            content = self._file(digest).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"the image {digest[:19]}… is not kept", "restore the file another way") from None
        if content_hash(content) != digest:
            raise Failed(f"the kept image {digest[:19]}… is damaged", "restore it from a backup of .toolgate")
        return content

    def has(self, digest: str) -> bool:
        """Whether it is there and sound."""
        try:
            self.get(digest)
        except (NotFound, Failed):
            return False
        return True

    def _put(self, content: bytes) -> Path:
        digest = content_hash(content)
        assert digest is not None
        file = self._file(digest)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if not self.has(digest):  # a damaged one is replaced
            _write(file, content)
        # Synced even if it was there: another process may have put it there a moment ago.
        return file.parent

    def _file(self, digest: str) -> Path:
        match = _HASH.fullmatch(digest)
        if match is None:
            raise Failed(f"{digest!r} does not name an image", "the record it came from is damaged")
        return self._directory / match[1] / match[2]


def _write(file: Path, content: bytes) -> None:
    temporary = file.with_name(_TEMPORARY + secrets.token_hex(8))
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
