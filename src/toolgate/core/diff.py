"""A Change as a person reads it: a unified diff made from the bytes that will be written."""

from __future__ import annotations

import difflib

from toolgate.core.change import Change, FileChange


def render(change: Change) -> str:
    return "\n".join(_render_file(file) for file in change.files)


def _render_file(file: FileChange) -> str:
    if file.kind == "directory":
        return f"{'remove' if file.after is None else 'create'} directory {file.path.shown}/"
    return _mode(file) + _render_content(file)


def _mode(file: FileChange) -> str:
    """Said where the bits change, or a new file can be run."""
    old, new = file.before_mode, file.after_mode
    if new is None or old == new:
        return ""
    if file.before is None:
        return f"new file mode {new:o}\n" if new & 0o111 else ""
    return f"old mode {old:o}\nnew mode {new:o}\n" if old is not None else f"new mode {new:o}\n"


def _render_content(file: FileChange) -> str:
    old = "/dev/null" if file.before is None else f"a/{file.path.shown}"
    new = "/dev/null" if file.after is None else f"b/{file.path.shown}"
    before, after = _text(file.before), _text(file.after)
    if file.before is not None and file.before == file.after:
        return f"--- {old}\n+++ {new}\n(the content stays as it is)"
    if before is None or after is None:
        return f"--- {old}\n+++ {new}\nbinary: {_size(file.before)} → {_size(file.after)}, {file.after_hash or 'removed'}"
    lines = list(
        difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), old, new)
    )
    return "".join(_with_end(line) for line in lines).rstrip("\n") or f"--- {old}\n+++ {new}\n(empty file)"


def _text(content: bytes | None) -> str | None:
    if content is None:
        return ""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _with_end(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _size(content: bytes | None) -> str:
    return "no file" if content is None else f"{len(content):,} bytes"
