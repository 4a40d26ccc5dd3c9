"""`toolgate scan`: secrets, payloads and hidden characters in files as they are, confined to the mounts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from toolgate.core.errors import CallError, NotFound
from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, command
from toolgate.kits.terminal.progress import Ticker
from toolgate.secrets.scan import ContentScanner
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.tree import walk_tree


@command(epilog="Example: toolgate scan src docs/setup.md")
def scan(
    paths: Annotated[
        list[str],
        Argument(metavar="PATH", help="Files and directories, from here; in another mount: mount:path."),
    ],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Look for secrets, malicious payloads and hidden characters; exit 1 if there are any.

    Blocked and hidden names are left out, as for every tool. Nothing is changed or recorded.
    """
    project.run(_scan(paths, root))


@dataclass
class Look:
    """What was looked at, and what was there."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0


async def _scan(paths: list[str], root: Path | None) -> int:
    look = Look()
    async with project.gate(root) as gate:
        scanner = ContentScanner(gate.vault)
        files = gate.files
        assert files is not None
        with Ticker() as ticker:
            for given in paths:
                path = MountPath.parse(given if root else _from_here(given, gate.root))
                for each in await files.run(lambda path=path: list(_below(files, path))):  # type: ignore[misc]
                    await _look_at(files, scanner, each, look)
                    ticker(0.0, f"{look.count:,} files, {len(look.findings):,} findings")
    look.findings.sort(key=lambda one: (one.path.shown, one.line, one.column, one.rule))
    look.skipped.sort()
    _tell(look)
    return 1 if look.findings else 0


async def _look_at(
    files: WorkspaceFiles, scanner: ContentScanner, chosen: tuple[MountPath, bool], look: Look
) -> None:
    path, asked = chosen
    try:
        content = await files.read(path)
    except CallError as error:
        if asked:
            raise
        look.skipped.append((path.shown, error.message))
        return
    if content is None:
        raise NotFound(f"there is no {path.shown!r}", "check the path")
    look.count += 1
    look.findings += scanner.read(path, content)


def _from_here(given: str, root: Path) -> str:
    """As a shell and its completion mean it: a path from this directory, or an absolute one, by its words."""
    place = os.path.normpath(Path.cwd() / given)
    if ":" in given or not Path(place).is_relative_to(root):
        return given  # what is outside is refused as it was written
    return Path(place).relative_to(root).as_posix()


def _below(files: WorkspaceFiles, path: MountPath) -> Iterator[tuple[MountPath, bool]]:
    """The files at a path, and whether they were asked for by name."""
    try:
        entries = list(walk_tree(files.mounts, path))
    except CallError:
        yield path, True  # no directory: reading says what it is
        return
    yield from ((entry.path, False) for entry in entries if entry.kind == "file")


def _tell(look: Look) -> None:
    data = {"files": look.count, "findings": [finding.described() for finding in look.findings],
            "skipped": [{"path": path, "why": why} for path, why in look.skipped]}  # fmt: skip
    if speech.finish(data, ok=not look.findings):
        return
    for path, why in look.skipped:
        speech.note(f"not scanned: {path}: {why}", "yellow")
    where = f"in {look.count:,} file{'s' * (look.count != 1)}"
    if not look.findings:
        speech.say(f"nothing found {where}")
        return
    rows = [[one.kind, one.rule, one.where, one.excerpt] for one in look.findings]
    speech.put(speech.table(["kind", "rule", "where", "excerpt"], rows))
    speech.say(f"{len(rows):,} finding{'s' * (len(rows) != 1)} {where}")
