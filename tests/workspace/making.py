"""Short ways for tests to say what a change is and what is on disk."""

from __future__ import annotations

from pathlib import Path

from toolgate.core.change import Change, FileChange
from toolgate.core.paths import MountPath

Contents = dict[str, bytes | None]


def at(path: str) -> MountPath:
    return MountPath.parse(path)


def change(**files: tuple[bytes | None, bytes | None]) -> Change:
    """`change(a=(b"old", b"new"))`; two underscores stand for a slash, so names stay keywords."""
    return Change(
        tuple(
            FileChange(at(name.replace("__", "/")), before, after) for name, (before, after) in files.items()
        )
    )


def on_disk(root: Path) -> dict[str, bytes]:
    """Every file below, leftovers included."""
    return {
        str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()
    }


def put(root: Path, contents: Contents) -> None:
    for name, content in contents.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(content)
