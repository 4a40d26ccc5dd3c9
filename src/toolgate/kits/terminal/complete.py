"""Candidates for completion, without opening a gate: nothing is run, nothing is written, little is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE, STATE = "toolgate.yaml", ".toolgate"


def find_root(start: Path) -> Path:
    """The nearest directory upwards that has a toolgate.yaml, else where we are."""
    here = start.resolve()
    return next((place for place in (here, *here.parents) if (place / FILE).exists()), here)


def tools(incomplete: str, words: Sequence[str] = ()) -> list[str]:
    return _starting(_lines(_root(words) / STATE / "cache" / "tools"), incomplete)


def personas(incomplete: str, words: Sequence[str] = ()) -> list[str]:
    try:
        import yaml

        file = _root(words) / FILE
        data = yaml.safe_load(file.read_text() if file.is_file() else "")
        return _starting(list(data["personas"]), incomplete)
    except Exception:  # a broken file completes to nothing; `policy check` says what is wrong with it
        return []


def questions(incomplete: str, words: Sequence[str] = ()) -> list[str]:
    import sqlite3

    database = _root(words) / STATE / "ledger.db"
    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=0.2)
        try:
            found = connection.execute(
                "SELECT id FROM questions WHERE state = 'open' ORDER BY seq"
            ).fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return []
    return _starting([row[0] for row in found], incomplete)


def secrets(incomplete: str, words: Sequence[str] = ()) -> list[str]:
    """Names only; the values are in a keyring or encrypted."""
    try:
        import json

        from toolgate.project import trust

        file = trust.state_dir() / "vault" / f"{trust.project_id(_root(words))}.json"
        data = json.loads(file.read_text())
        return _starting(sorted(data.get("names") or data.get("secrets") or ()), incomplete)
    except Exception:  # no vault, or one that cannot be read, completes to nothing
        return []


def remember_tools(local: Path, names: list[str]) -> None:
    """Kept for the next TAB whenever a gate was open anyway."""
    cache = local / "cache" / "tools"
    if names != _lines(cache):
        cache.parent.mkdir(exist_ok=True)
        cache.write_text("\n".join(names) + "\n")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


def _starting(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if str(name).startswith(incomplete)]


def _root(words: Sequence[str]) -> Path:
    """Of the project that the words before name."""
    given = words[list(words).index("--root") + 1] if "--root" in words[:-1] else "."
    return find_root(Path(given))
