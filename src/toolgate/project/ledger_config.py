"""`ledger:` in toolgate.yaml, and what a broken file still says of it: enough to stop and to look, not to call."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, ValidationError

from toolgate.core.errors import ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.policy.model import Strict
from toolgate.project import yamlfile

_SECTION = late_pattern(r"""^(?:ledger|"ledger"|'ledger')\s*:(?:\s|$)""")
_DATABASE = late_pattern(r"""^[^#\n]*\bdatabase['"]?\s*:\s*(?:[>|][-+]?\s*)?['"]?postgres""", re.MULTILINE)
_KEY_FILE = late_pattern(r"^[^#\n]*\bkey_file\b", re.MULTILINE)
"""Name another ledger than the project's own, wherever they stand: in a misspelt section, or slipped out of theirs."""


class LedgerSpec(Strict):
    database: Annotated[str, Field(pattern=r"^postgres(ql)?://")] | None = None
    """Absent: SQLite in `.toolgate/`."""
    key_file: str | None = None
    """Absent: in the user's state directory."""


def rescued(text: str) -> LedgerSpec | None:
    """The ledger that a broken file means; None where that cannot be known."""
    if "\0" in text:
        return None  # UTF-16, in which no word is found
    section = _section(text)
    try:
        spec = LedgerSpec() if section is None else LedgerSpec.model_validate(section)
    except ValidationError:
        return None
    elsewhere = (spec.database is None and _DATABASE.search(text)) or (
        spec.key_file is None and _KEY_FILE.search(text)
    )
    return None if elsewhere else spec


def _section(text: str) -> Any:
    """What stands under `ledger`, also where the rest is no YAML; None where nothing does."""
    try:
        data = yamlfile.read(text, "").data
    except ConfigError:
        data = None
    if not isinstance(data, dict):
        return _cut_out(text)
    return data.get("ledger")


def _cut_out(text: str) -> Any:
    """From the one line that begins with `ledger:` to the next that is not indented, read by itself."""
    lines = text.splitlines()
    begins = [number for number, line in enumerate(lines) if _SECTION.match(line)]
    if len(begins) != 1:
        return "there twice" if begins else None
    first = begins[0]
    rest = (n for n in range(first + 1, len(lines)) if lines[n].strip() and lines[n][0] not in " \t#")
    try:
        return yamlfile.read("\n".join(lines[first : next(rest, len(lines))]), "").data["ledger"]
    except ConfigError:
        return "not YAML"
