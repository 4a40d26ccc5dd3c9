from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import toolgate
from toolgate.core.errors import CallError
from toolgate.ledger.checkpoint import read
from toolgate.ledger.verify import verify_export

from .running import EXAMPLES, run

CONFIG = {"version": 1, "default_persona": "reader", "personas": {"reader": {"phase": "observe"}}}
STRANGE = ["plain", "two\nlines", "Grüße \u2028 next", '{"kind":"approved"}', "\\n", "🚪"]
WITHOUT_PACKAGES = ("-I", "-S")


@dataclass
class Export:
    """Files as an outsider gets them."""

    directory: Path
    lines: list[str]
    public_key: str

    def write(self, lines: list[str]) -> str:
        file = self.directory / "events.jsonl"
        file.write_text("".join(line + "\n" for line in lines), "utf-8")
        return str(file)

    @property
    def checkpoint(self) -> str:
        return str(self.directory / "checkpoint.json")


@pytest.fixture
async def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Export:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    async with toolgate.open(tmp_path / "project", CONFIG) as gate:
        for message in STRANGE:
            assert (await gate.call("system.ping", {"message": message}, reason=message)).ok
        await gate.call("nothing.here")
        checkpoint = await gate.checkpoint("Grüße")
        assert (await gate.call("system.ping")).ok
        lines = [line async for line in gate.export()]
    found = Export(tmp_path, lines, checkpoint.public_key)
    Path(found.checkpoint).write_text(checkpoint.as_json(), "utf-8")
    return found


def test_an_export_is_verified_with_the_standard_library_alone(export: Export) -> None:
    done = run("verify_by_hand.py", export.write(export.lines), cwd=export.directory, python=WITHOUT_PACKAGES)
    assert done.returncode == 0, done.stderr
    head = json.loads(export.lines[-1])["hash"]
    assert done.stdout == f"{len(export.lines)} events form one chain, which ends in {head}\n"


def test_a_checkpoint_of_the_right_signer_is_found_in_the_export(export: Export) -> None:
    events = export.write(export.lines)
    done = run("verify_by_hand.py", events, export.checkpoint, export.public_key, cwd=export.directory)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"event {len(export.lines) - 2} is the one that was signed\n")


def _changed(lines: list[str]) -> list[str]:
    return [*lines[:4], lines[4].replace("system.ping", "system.pong", 1), *lines[5:]]


def _removed(lines: list[str]) -> list[str]:
    return [*lines[:4], *lines[5:]]


def _swapped(lines: list[str]) -> list[str]:
    return [*lines[:4], lines[5], lines[4], *lines[6:]]


@pytest.mark.parametrize("tamper", [_changed, _removed, _swapped])
def test_the_first_bad_event_of_a_tampered_export_is_named(
    export: Export, tamper: Callable[[list[str]], list[str]]
) -> None:
    events = export.write(tamper(export.lines))
    done = run("verify_by_hand.py", events, cwd=export.directory, python=WITHOUT_PACKAGES)
    assert (done.returncode, done.stderr) == (1, "event 5 is bad\n")


def test_an_export_cut_before_its_checkpoint_is_caught(export: Export) -> None:
    events = export.write(export.lines[:-3])
    done = run("verify_by_hand.py", events, export.checkpoint, export.public_key, cwd=export.directory)
    assert done.returncode == 1
    assert "is not the one that was signed" in done.stderr


def test_a_checkpoint_of_another_signer_is_refused(export: Export) -> None:
    events = export.write(export.lines)
    stranger = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    done = run("verify_by_hand.py", events, export.checkpoint, stranger, cwd=export.directory)
    assert done.returncode == 1
    assert "InvalidSignature" in done.stderr


def test_the_script_stays_as_short_as_the_documentation_says() -> None:
    text = (EXAMPLES / "verify_by_hand.py").read_text()
    assert (
        len([line for line in text.splitlines() if line.strip()]) <= 85
    )  # strict reading takes most of them


def _twice(line: str) -> str:
    return line.replace('"kind":', '"kind":"approved","kind":', 1)


SLOPPY: dict[str, Callable[[str], str]] = {
    "a key twice": _twice,
    "a key twice at the end": lambda line: line[:-1] + ',"seq":2}',
    "an unknown field": lambda line: line[:-1] + ',"zzz":1}',
    "an unknown field first": lambda line: '{"aaa":1,' + line[1:],
    "a field missing": lambda line: line.replace(',"ref":""', "", 1),
    "a number as a text": lambda line: line.replace('"seq":2', '"seq":"2"', 1),
    "a number with a fraction": lambda line: line.replace('"seq":2', '"seq":2.0', 1),
    "a number with an exponent": lambda line: line.replace('"seq":2', '"seq":2e0', 1),
    "true for one": lambda line: line.replace('"key":1', '"key":true', 1),
    "NaN": lambda line: line.replace('"key":1', '"key":NaN', 1),
    "null": lambda line: line.replace('"ref":""', '"ref":null', 1),
    "a space": lambda line: line.replace(":", ": ", 1),
    "a space in front": lambda line: " " + line,
    "a space behind": lambda line: line + " ",
    "a carriage return": lambda line: line + "\r",
    "another order": lambda line: json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":")),
    "an escape that need not be": lambda line: line.replace('"kind"', '"\\u006bind"', 1),
    "an escaped slash": lambda line: line.replace("system.ping", "system\\u002eping", 1),
    "two objects": lambda line: line + line,
    "text behind": lambda line: line + "x",
    "a list": lambda line: f"[{line}]",
    "nothing": lambda line: "",
    "a blank line before": lambda line: "\n" + line,
    "half of it": lambda line: line[: len(line) // 2],
}


@pytest.mark.parametrize("name", SLOPPY)
def test_what_two_programs_could_read_in_two_ways_is_refused(export: Export, name: str) -> None:
    lines = [export.lines[0], SLOPPY[name](export.lines[1]), *export.lines[2:]]
    assert lines != export.lines
    done = run("verify_by_hand.py", export.write(lines), cwd=export.directory, python=WITHOUT_PACKAGES)
    assert done.returncode != 0
    assert "event 2 is bad" in done.stderr
    report = verify_export(io.StringIO("\n".join(lines) + "\n", newline="\n"), [])
    assert report.bad_event == 2
    assert "line 2" in report.fault


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"seq":', '"seq":1,"seq":', 1),
        lambda text: text[:-1] + ',"more":1}',
        lambda text: text.replace("toolgate-checkpoint-1", "toolgate-checkpoint-2"),
        lambda text: text.replace('"project":"Grüße",', ""),
        lambda text: text + "x",
    ],
)
def test_a_checkpoint_is_read_as_strictly(export: Export, change: Callable[[str], str]) -> None:
    text = change(Path(export.checkpoint).read_text("utf-8"))
    Path(export.checkpoint).write_text(text, "utf-8")
    events = export.write(export.lines)
    done = run("verify_by_hand.py", events, export.checkpoint, export.public_key, cwd=export.directory)
    assert done.returncode != 0
    with pytest.raises(CallError):
        read(text)


def test_it_says_which_events_the_checkpoint_covers_and_which_it_does_not(export: Export) -> None:
    signed = read(Path(export.checkpoint).read_text("utf-8"))
    report = verify_export(export.lines, [signed])
    assert (report.ok, report.signed_to, report.last) == (True, len(export.lines) - 2, len(export.lines))
    assert report.as_dict()["unsigned"] == 2
    assert verify_export(export.lines, []).as_dict()["unsigned"] == len(export.lines)
    events = export.write(export.lines)
    done = run("verify_by_hand.py", events, export.checkpoint, export.public_key, cwd=export.directory)
    assert f"events {signed.seq + 1} to {len(export.lines)} came after it and are not signed" in done.stdout
