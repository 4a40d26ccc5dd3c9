"""Diffs and commits as they may be known. A hunk may show half of a secret that goes over several lines, so its lines are
taken from the whole files, in which it can be found. Where the vault is empty, git is asked for nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolgate.core.conceal import Secrets, blank, conceal
from toolgate.workspace.git.commits import Commit, read_commit
from toolgate.workspace.git.patch import Changed, GitFileDiff, GitHunk, GitLine
from toolgate.workspace.git.view import GitView

BLOBS_CAP = 64 << 20
BLOBS_SECONDS = 5.0


def known_commit(oid: str, content: bytes, secrets: Secrets | None) -> Commit:
    """Before its message is cut."""
    return read_commit(oid, conceal(content, secrets).text)


def said_by(commit: bytes, oid: str, author: str, words: str, secrets: Secrets) -> bool:
    """Whether a commit that git found says so beside its secrets, too. Git takes each line for a text to find."""
    if not conceal(commit, secrets).marks:
        return True
    found = read_commit(oid, commit)
    person = f"{found.author.name} <{found.author.email}>"
    return _has(person, author, secrets) and _has(found.message, words, secrets)


def _has(text: str, wanted: str, secrets: Secrets) -> bool:
    known = blank(text, secrets).casefold()
    return not wanted or any(line.casefold() in known for line in wanted.split("\n"))


async def conceal_hunks(
    view: GitView, comparisons: Iterable[Changed], env: Mapping[str, str] | None = None
) -> None:
    secrets = view.secrets()
    files = [file for changed in comparisons for file in changed.files if file.hunks and not file.submodule]
    if secrets is None or not files:
        return
    wanted = dict.fromkeys(oid for file in files for oid in file.ids if oid.strip("0"))
    output = await view.git(
        "cat-file", "--batch", seconds=BLOBS_SECONDS, cap=BLOBS_CAP, env=env,
        stdin="".join(f"{oid}\n" for oid in wanted).encode(),
    )  # fmt: skip
    await asyncio.to_thread(_conceal, files, _blobs(output.data), secrets)


def _blobs(data: bytes) -> dict[str, bytes]:
    """What `cat-file` printed; of one that was cut, nothing."""
    found: dict[str, bytes] = {}
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        words = data[at:end].decode("ascii", "replace").split(" ")
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            if at + size < len(data):
                found[words[0]] = data[at : at + size]
            at += size + 1
    return found


def _conceal(files: list[GitFileDiff], blobs: Mapping[str, bytes], secrets: Secrets) -> None:
    for file in files:
        if not all(oid in blobs or not oid.strip("0") for oid in file.ids):
            file.unread += len(file.hunks)  # too large to be looked at, so not shown
            file.hunks = []
            continue
        old, new = (_marked_lines(blobs.get(oid, b""), file.encoding, secrets) for oid in file.ids)
        if old is not None or new is not None:
            file.hunks = [_known(hunk, old, new) for hunk in file.hunks]


def _marked_lines(blob: bytes, encoding: str, secrets: Secrets) -> list[str] | None:
    known = conceal(blob, secrets)
    return known.text.decode(encoding, "replace").split("\n") if known.marks else None


def _known(hunk: GitHunk, old: list[str] | None, new: list[str] | None) -> GitHunk:
    """Git cuts what it says of the section, so that half a secret may be left there."""

    def known(line: GitLine) -> GitLine:
        lines = old if line.type == "deletion" else new
        there = lines is not None and line.line_number <= len(lines)
        return replace(line, content=lines[line.line_number - 1]) if lines is not None and there else line

    return replace(hunk, section="", lines=[known(line) for line in hunk.lines])
