"""What a file-writing tool is about to do, worked out before anything is touched.

Preview, consent, execution, reconciliation and undo all use this one value, so the diff a human saw is computed
from the very bytes that are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolgate.core.paths import MountPath


def content_hash(content: bytes | None) -> str | None:
    """`sha256:<hex>` of a file's bytes; None where there is no file."""
    return None if content is None else "sha256:" + hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class FileChange:
    """One file: the content it starts from and the content it ends with; None means there is no file."""

    path: MountPath
    before: bytes | None
    after: bytes | None

    @cached_property
    def before_hash(self) -> str | None:
        return content_hash(self.before)

    @cached_property
    def after_hash(self) -> str | None:
        return content_hash(self.after)

    @property
    def op(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "modify"


@dataclass(frozen=True)
class Change:
    files: tuple[FileChange, ...]
    summary: str = ""
    undoes: int = 0
    """The event that this change takes back, if it does."""

    @cached_property
    def manifest(self) -> list[Mapping[str, Any]]:
        """What the digest and the ledger hold of it: paths, hashes and sizes, never content."""
        return [
            {
                "path": str(file.path),
                "op": file.op,
                "before": file.before_hash,
                "after": file.after_hash,
                "size": len(file.after) if file.after is not None else None,
            }
            for file in self.files
        ]

    def inverse(self) -> Change:
        files = tuple(FileChange(file.path, file.after, file.before) for file in reversed(self.files))
        return Change(files, f"undo: {self.summary}" if self.summary else "undo")
