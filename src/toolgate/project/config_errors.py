"""What is wrong with a configuration, in words: where, what, and how to set it right.

Whoever loads it needs the first flaw only. `every` goes on behind each one, with something harmless in the place of what
could not be read, as long as what is found then is not merely a consequence. `rescued` reads from a broken file which ledger it means:
enough to stop and to look, not to call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from toolgate.core.display import key_shown
from toolgate.core.errors import ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.policy.model import UNKNOWN_KEYS, WHOLE, Flaw
from toolgate.project import yamlfile
from toolgate.project.sections import LedgerSpec

MAX_FLAWS = 50
"""Nobody corrects more before looking again."""
Place = tuple[int | str, ...]


def flaws_of(error: ValidationError, data: Any) -> list[Flaw]:
    """In the order in which pydantic found them; of the members of a union only the first complains."""
    found: dict[object, Flaw] = {}
    for one in error.errors(include_url=False, include_input=False):
        base = _keys(one["loc"], data, one["type"] == "missing")
        for flaw in _flaws(one):
            at = (*base, *flaw.at)
            where = ".".join(key_shown(str(part)) for part in at)
            said = flaw.message if not where or flaw.message.startswith(where) else f"{where}: {flaw.message}"
            found.setdefault((at, said) if "ctx" in one else at, Flaw(at, said, flaw.fix))
    return list(found.values())


def _flaws(one: Any) -> list[Flaw]:
    context = one.get("ctx", {})
    if "flaws" in context:
        return list(context["flaws"])
    usual = _FIXES.get(one["type"], "correct the value; `docs/policy.md` lists what is possible")
    return [Flaw(context.get("at", ()), one["msg"], context.get("fix") or usual)]


def every(validate: Callable[[Any], object], data: Any) -> list[Flaw]:
    """All that can be found in one go. What only follows from another flaw is left out, as far as that can be told."""
    data, found, sure = deepcopy(data), list[Flaw](), True
    while len(found) < MAX_FLAWS:
        try:
            validate(data)
            break
        except ValidationError as error:
            new, kinds = flaws_of(error, data), set(_kinds(error))
        if WHOLE in kinds:
            found += new if sure else []
            break
        found += new
        sure = sure and UNKNOWN_KEYS not in kinds  # it may be the misspelt name of what everything refers to
        mended = [_mend(data, flaw.at) for flaw in new]
        if not all(mended):
            break
    return found[:MAX_FLAWS]


def _kinds(error: ValidationError) -> Iterator[str]:
    """What kinds of flaws the configuration has as a whole, not in one of its parts."""
    return (one["type"] for one in error.errors(include_url=False) if not one["loc"])


def _mend(data: Any, at: Place) -> bool:
    """Put something harmless there, so that what refers to it still finds it; False where that cannot be done."""
    match at:
        case ("personas", name, *_):
            data["personas"][name] = {}
        case ("mounts", name, *_):
            data["mounts"][name] = {"path": "."}
        case ("policy", "rules", int(number), *_):
            data["policy"]["rules"][number] = {"decision": "deny"}
        case ("servers", name, *_):
            data["servers"].pop(name, None)
        case (str(section), *_) if section not in ("version", "personas", "mounts"):
            data.pop(section, None)
        case _:
            return False
    return True


def _keys(loc: tuple[int | str, ...], data: Any, missing: bool) -> Place:
    """The keys that lead to an error, without what pydantic adds for the members of a union."""
    found: list[int | str] = []
    for part in loc:
        inside = (
            part in data
            if isinstance(data, dict)
            else isinstance(data, list | tuple) and part in range(len(data))
        )
        if inside:
            data = data[part]
        if inside or (missing and isinstance(data, dict) and part == loc[-1]):
            found.append(part)
    return tuple(found)


_FIXES = {
    "missing": "add it",
    "string_type": "write a text; quote it if it looks like a number or like yes and no",
    "dict_type": "write a mapping: `key: value`",
    "model_type": "write a mapping: `key: value`",
    "tuple_type": "write a list: `[a, b]`",
    "int_type": "write a whole number",
    "literal_error": "use one of the words listed",
}

_SECTION = late_pattern(r"""^(?:ledger|"ledger"|'ledger')\s*:(?:\s|$)""")
_DATABASE = late_pattern(r"""^[^#\n]*\bdatabase['"]?\s*:\s*(?:[>|][-+]?\s*)?['"]?postgres""", re.MULTILINE)
_KEY_FILE = late_pattern(r"^[^#\n]*\bkey_file\b", re.MULTILINE)
"""Name another ledger than the project's own, wherever they stand: in a misspelt section, or slipped out of theirs."""


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
