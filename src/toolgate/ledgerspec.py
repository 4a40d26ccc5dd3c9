"""`ledger:` in toolgate.yaml, and what a broken file still says of it: enough to stop and to look, not to call."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, ValidationError

from toolgate import yamlfile
from toolgate.core.errors import ConfigError
from toolgate.policy.model import Strict

_SECTION = re.compile(r"""^(?:ledger|"ledger"|'ledger')\s*:(?:\s|$)""")
_ELSEWHERE = re.compile(r"""^[^#\n]*(?:\bdatabase['"]?\s*:\s*['"]?postgres|\bkey_file\b)""", re.MULTILINE)
"""Names another ledger than the project's own, wherever it stands: a misspelt section, one that slipped into another."""


class LedgerSpec(Strict):
    database: Annotated[str, Field(pattern=r"^postgres(ql)?://")] | None = None
    """Absent: SQLite in `.toolgate/`."""
    key_file: str | None = None
    """Absent: in the user's state directory."""


def rescued(text: str) -> LedgerSpec | None:
    """The ledger that a broken file means; None where that cannot be known."""
    section = _section(text)
    if section is None:
        return None if _ELSEWHERE.search(text) else LedgerSpec()
    try:
        return LedgerSpec.model_validate(section)
    except ValidationError:
        return None


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
