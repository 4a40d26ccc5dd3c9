"""`toolgate scan`: secrets, payloads and hidden characters in files as they are, confined to the mounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from toolgate.core.errors import CallError, NotFound
from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.faces.cli import options, project, speech
from toolgate.secrets.scan import ContentScanner
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.tree import walk_tree

app = options.family()


@app.command(epilog="Example: toolgate scan src docs/setup.md")
def scan(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and directories of the mounts.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Look for secrets, malicious payloads and hidden characters; exit 1 if there are any.

    Blocked and hidden names are left out, as for every tool. Nothing is changed or recorded.
    """
    project.run(_scan(paths, root))


async def _scan(paths: list[str], root: Path | None) -> int:
    findings: list[Finding] = []
    skipped: list[tuple[str, str]] = []
    count = 0
    async with project.gate(root) as gate:
        scanner = ContentScanner(gate.vault)
        files = gate.services.files
        assert isinstance(files, WorkspaceFiles)
        for given in paths:
            path = MountPath.parse(given)
            chosen = await files.run(lambda path=path: list(_below(files, path)))  # type: ignore[misc]
            for each, asked in chosen:
                try:
                    content = await files.read(each)
                except CallError as error:
                    if asked:
                        raise
                    skipped.append((each.shown, error.message))
                    continue
                if content is None:
                    raise NotFound(f"there is no {each.shown!r}", "check the path")
                count += 1
                findings += scanner.read(each, content)
    findings.sort(key=lambda one: (one.path.shown, one.line, one.column, one.rule))
    skipped.sort()
    _tell(findings, skipped, count)
    return 1 if findings else 0


def _below(files: WorkspaceFiles, path: MountPath) -> Iterator[tuple[MountPath, bool]]:
    """The files at a path, and whether they were asked for by name."""
    try:
        entries = list(walk_tree(files.mounts, path))
    except CallError:
        yield path, True  # no directory: reading says what it is
        return
    yield from ((entry.path, False) for entry in entries if entry.kind == "file")


def _tell(findings: list[Finding], skipped: list[tuple[str, str]], count: int) -> None:
    data = {"files": count, "findings": [finding.described() for finding in findings],
            "skipped": [{"path": path, "why": why} for path, why in skipped]}  # fmt: skip
    if speech.finish(data, ok=not findings):
        return
    for path, why in skipped:
        speech.note(f"not scanned: {path}: {why}", "yellow")
    if not findings:
        speech.say(f"nothing found in {count} files")
        return
    rows = [[one.kind, one.rule, one.where, one.excerpt] for one in findings]
    speech.out().print(speech.table(["kind", "rule", "where", "excerpt"], rows))
    speech.say(f"{len(findings)} findings in {count} files")
