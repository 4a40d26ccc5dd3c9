"""Verifying the ledger, and the checkpoints that show when an older copy was put in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from toolgate.core.errors import InvalidArgs, LedgerBroken
from toolgate.kits.terminal import project, speech
from toolgate.kits.terminal.progress import bar
from toolgate.ledger import checkpoint as checkpoints
from toolgate.ledger.archive import sha256_of
from toolgate.ledger.checkpoint import Checkpoint
from toolgate.ledger.state import parsed
from toolgate.ledger.verify import Report, rows_in, verify_export
from toolgate.project import config
from toolgate.project import record as records
from toolgate.project.record import Record
from toolgate.storage.port import Filter, Row


async def verify(files: list[Path], public_key: str, archives: list[Path], root: Path | None) -> int:
    async with project.record(root) as record:
        signer = public_key or (record.keys.public if record.keys else "")
        known = [*_remembered(record, signer), *_read_all(files, signer)]
        for item in known:
            if item.project and item.project != record.project:
                raise InvalidArgs(
                    f"the checkpoint of event {item.seq} belongs to another project ({item.project[:8]}…)",
                    "give a checkpoint of this project",
                )
        with bar("verifying") as told, ExitStack() as stack:
            report = await record.verify(known, told, [_lines(file, stack) for file in archives])
        if report.ok and archives:
            _check_files(report, archives, await record.events(Filter(kinds=("archived",), limit=100_000)))
        if report.ok:
            found = await records.compare(record)
            if found:
                report.fault, report.fix = found, records.FIX
            else:
                await records.remember(record)
        if report.ok and record.key_problem is not None:
            report.fault = (
                f"the chain is whole, but its seals cannot be checked: {record.key_problem.message}"
            )
            report.fix = record.key_problem.fix
    return _tell(report)


def _lines(file: Path, stack: ExitStack) -> Iterator[Row]:
    try:
        lines = stack.enter_context(file.open(encoding="utf-8", errors="surrogateescape", newline="\n"))
    except OSError as error:
        raise InvalidArgs(f"{str(file)!r} cannot be read: {error.strerror}", "give an archive") from None
    return rows_in(lines, str(file))


def _check_files(report: Report, archives: list[Path], rows: list[Row]) -> None:
    """Each is the very file that a row of the ledger names by its hash."""
    with ExitStack() as stack:  # the row that names an archive may be in a later one
        older = [row for file in archives for row in _lines(file, stack) if row.kind == "archived"]
    named = {parsed(row)["sha256"] for row in (*rows, *older)}
    for file in archives:
        if f"sha256:{sha256_of(file)}" not in named:
            report.fault = f"no event of the ledger names {file} by its hash"
            report.fix = "get the archive again from where it is kept"


async def verify_file(export: Path, files: list[Path], public_key: str, archives: list[Path]) -> int:
    """Without project, key or trust: the plain chain, against what the checkpoints signed."""
    known = _read_all(files, public_key)
    with ExitStack() as stack:
        opened = [
            stack.enter_context(file.open(encoding="utf-8", errors="surrogateescape", newline="\n"))
            for file in (*archives, export)
        ]
        report = verify_export(chain.from_iterable(opened), known)
    if not known and report.ok:
        speech.note(
            "no checkpoint given: the chain is whole in itself, but nobody vouches for where it ends",
            "yellow",
        )
    elif known and not public_key:
        signers = {item.public_key for item in known}
        speech.note(f"signed by {', '.join(sorted(signers))}; --public-key compares it", "yellow")
    return _tell(report)


async def checkpoint(out: Path | None, root: Path | None) -> None:
    async with project.record(root) as record:
        signed = await record.checkpoint()
        await records.remember(record)
    text = signed.as_json() + "\n"
    _remember(record.project, text)
    if out is not None:
        _write(out, text)
    if speech.finish({"seq": signed.seq, "hash": signed.hash, "at": signed.when, "project": signed.project,
                      "public_key": signed.public_key, "signature": signed.signature, "format": signed.format}):  # fmt: skip
        return
    if out is None:
        speech.put(text, end="", whole=True)
    speech.note(
        f"event {signed.seq} is signed by {signed.public_key}; later `ledger verify` runs check it", "dim"
    )


def _path(project_id: str) -> Path:
    return config.state_dir() / "checkpoints" / f"{project_id}.json"


def _remember(project_id: str, text: str) -> None:
    path = _path(project_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def _write(out: Path, text: str) -> None:
    out.write_text(text)


def _remembered(record: Record, signer: str) -> list[Checkpoint]:
    path = _path(record.project)
    return _read_all([path], signer) if path.exists() else []


def _read_all(files: list[Path], signer: str) -> list[Checkpoint]:
    return [_read(file, signer) for file in files]


def _read(file: Path, signer: str) -> Checkpoint:
    try:
        return checkpoints.read(file.read_text(), signer)
    except OSError as error:
        raise InvalidArgs(
            f"{str(file)!r} cannot be read: {error.strerror}", "give a checkpoint file"
        ) from None
    except LedgerBroken as error:
        raise LedgerBroken(f"{file}: {error.message}", error.fix) from None


def _coverage(report: Report) -> Iterator[str]:
    """Which events somebody vouches for, and which only follow them."""
    last, signed = report.last, report.signed_to
    if report.archived_to:
        yield f"  events 1 to {report.archived_to} are in an archive: `--archive FILE` checks them too"
    if report.in_archive:
        yield f"  {report.in_archive} checkpoint(s) signed events in there, and were not checked"
    if signed:
        yield f"  events {report.first} to {signed} are covered by a checkpoint"
    if last > signed and (signed or not report.keyed):
        after = f"events {max(signed + 1, report.first)} to {last}"
        yield f"  {after} are not signed: they follow {'the checkpoint' if signed else 'nothing that is signed'}"


def _tell(report: Report) -> int:
    if not speech.finish(report.as_dict(), ok=report.ok):
        if report.ok:
            seals = "links, hashes, seals and tables" if report.keyed else "links and hashes"
            also = f"; {report.checkpoints} checkpoint(s) found in it" if report.checkpoints else ""
            speech.say(
                speech.safe("✓ ", "green") + speech.safe(f"{report.events} events: {seals} are right{also}")
            )
            for line in _coverage(report):
                speech.say(line)
        else:
            where = f"event {report.bad_event} is bad: " if report.bad_event is not None else ""
            speech.put_err(speech.safe("✗ ", "bold red") + speech.safe(where + report.fault))
            speech.put_err(speech.safe("fix: ", "bold") + speech.safe(report.fix))
    return 0 if report.ok else 1
