from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import toolgate

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
    assert len([line for line in text.splitlines() if line.strip()]) <= 28
