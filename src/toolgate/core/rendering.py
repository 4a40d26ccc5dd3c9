"""Text for models: what a tool's result looks like to whoever pays for each character, and what a schema does.

A rendering is a function of a result's data and of the arguments that were given. It says what the plain program would
print, under one header line, and never leaves out what the next call needs: paths, line numbers, hashes, cursors, ids.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from toolgate.core.display import encodable, harmless
from toolgate.core.late_pattern import late_pattern

Rendering = Callable[[Any, Mapping[str, Any]], str]
HASH_CHARACTERS = 16
"""Of a hash, as it is shown: enough to be told from any other, and `if_match` takes as many."""

MANY = 100
"""Characters that saying a directory once must save."""
_BREAKS = late_pattern("\r(?!\n|\\Z)|[\f\u2028\u2029]")


class Reading(NamedTuple):
    """What a caller is handed of a result, and how many characters are sent for it in all."""

    text: str
    size: int


Reader = Callable[[str, Any, Mapping[str, Any], int], Reading]
"""Of a tool's name, its data, the arguments that were given, and the size of the data as JSON."""


def name(path: str) -> str:
    """A path that can be copied into the next call, and cannot pose as another line. One that holds what a line cannot is
    written as a JSON text, which is how a call writes it too."""
    bare = path.removeprefix("project:")
    shown = bare if ":" not in bare else path
    if (
        shown == harmless(shown)
        and shown == shown.strip()
        and not shown.startswith('"')
        and "\t" not in shown
    ):
        return shown
    return json.dumps(encodable(shown))


def listed(paths: Sequence[str], tails: Sequence[str] = ()) -> list[str]:
    """Paths, one a line, each followed by its tail. A directory that they all lie in, and that would make up most of the
    text, is said once before them, as `ls` does: `src/deep/below/:`."""
    above = os.path.commonprefix([one.rstrip("/") for one in paths])  # noqa: RUF071 - cut at its last slash below
    above = above.rpartition("/")[0] + "/"
    said, whole = len(above) * len(paths), sum(map(len, paths))
    if (
        said > whole - said + len(paths)
        and said - len(above) > MANY
        and not any(one.startswith('"') for one in paths)
    ):
        return [
            f"{above}:",
            *(one[len(above) :] + tail for one, tail in zip_longest(paths, tails, fillvalue="")),
        ]
    return [one + tail for one, tail in zip_longest(paths, tails, fillvalue="")]


def word(path: str) -> str:
    """A path among others in one line."""
    shown = name(path)
    return json.dumps(path, ensure_ascii=False) if " " in shown and not shown.startswith('"') else shown


def short(digest: str | None) -> str:
    """A hash, as long as it takes to be told from others; `if_match` takes it like this."""
    kind, _, digits = (digest or "").partition(":")
    return f"{kind}:{digits[:HASH_CHARACTERS]}"


def text(content: str) -> str:
    """What a file or program says, as it is, but for what could show as another line or speak to a terminal. A carriage
    return before the end of a line is part of that end."""
    return _BREAKS.sub(lambda found: harmless(found[0]), harmless(encodable(content), keep_lines=True))


def lines_of(content: str) -> list[str]:
    lines = content.split("\n")
    return lines if lines[-1] else lines[:-1]


def numbered(lines: Iterable[str], first: int) -> str:
    """As `cat -n` does, without its wide margin."""
    return "".join(f"{number}\t{text(line)}\n" for number, line in enumerate(lines, first))


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def more(data: Mapping[str, Any]) -> list[str]:
    """How to get what is not here, as the tool says it."""
    told = [data[word] for word in ("next", "left_out", "note", "warning") if data.get(word)]
    return [f"… {harmless(', '.join(one) if isinstance(one, list) else str(one))}" for one in told]


def findings(data: Mapping[str, Any]) -> str:
    """What the scan found in a change, and that it cannot be undone, one a line."""
    found = [str(one.get("message") or one.get("rule") or one) for one in data.get("findings") or ()]
    return "".join(f"\nfound: {harmless(one)}" for one in found) + "".join(f"\n{one}" for one in more(data))


_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Below these stand names that somebody chose, not words of JSON schema."""
_VALUES = frozenset({"default", "const", "enum", "examples", "example", "required"})
"""What stands below these is no schema."""
_NOISE = frozenset(
    {
        "$schema", "$id", "maxLength", "minLength", "minimum", "exclusiveMinimum", "pattern", "format", "maxProperties",
        "propertyNames",
    }
)  # fmt: skip
_MUCH = 10_000
"""A largest number from which on it is no advice."""
_NULL = {"type": "null"}


def lean(
    schema: Mapping[str, Any], *, ours: bool = True, said: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """A JSON schema with what is needed to write the arguments, and nothing that only repeats it. A model pays for every word
    of a tool list, in every conversation. Bounds, titles and defaults that say nothing are left out; the gate checks them
    all the same, and its refusal says what is wrong.

    `ours`: the gate says what does not fit, so bounds need not be told; of another's schema only titles go. `said`:
    descriptions that are told elsewhere.
    """
    return {
        name: _below(name, value, ours, said)
        for name, value in (_plain(schema) if ours else schema).items()
        if not _is_noise(name, value, ours, said)
    }


def _below(name: str, value: Any, ours: bool, said: frozenset[str]) -> Any:
    if name in _NAMED and isinstance(value, Mapping):
        return {key: _part(part, ours, said) for key, part in value.items()}
    return value if name in _VALUES else _part(value, ours, said)


def _part(value: Any, ours: bool, said: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return lean(value, ours=ours, said=said)
    if isinstance(value, list):
        return [_part(item, ours, said) for item in value]
    return value


def _is_noise(name: str, value: Any, ours: bool, said: frozenset[str]) -> bool:
    if name == "title":
        return isinstance(value, str)
    if name == "description":
        return value in said
    if not ours:
        return False
    if name == "additionalProperties":
        return isinstance(value, bool)
    if name == "default":
        return not value or isinstance(value, list)
    if name in ("minItems", "maxItems"):
        return bool(value != 2)  # a pair is one by its length
    return name in _NOISE or (name == "maximum" and value >= _MUCH)


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`anyOf: [X, null]` as X: what may be left out need not be said to be absent. A pair of alike as a list of them."""
    pair = schema.get("prefixItems")
    if isinstance(pair, list) and pair and all(item == pair[0] for item in pair) and "items" not in schema:
        rest = {name: value for name, value in schema.items() if name != "prefixItems"}
        return {"items": pair[0], **rest}
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or _NULL not in choices:
        return schema
    some = [choice for choice in choices if choice != _NULL]
    if len(some) != 1 or not isinstance(some[0], Mapping):
        return schema
    return {**some[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
