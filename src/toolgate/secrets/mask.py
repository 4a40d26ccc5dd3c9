"""Masking of arguments by what a tool's schema says of them. Nothing that a caller names is masked for its name.

An argument is *declared* secret where its schema says so (`SecretStr`, `writeOnly`, `format: password`): nobody is shown its
value, a question names it with its length and a fingerprint. One is *named* like a secret where the schema itself calls a
property `password` or `token`: the journal does not keep it, and a question shows it, because it may be anything.

A caller who may choose between a secret and something else must not hide the one as the other: which alternatives of a
schema a value can be one of is looked at here, as far as that is necessary and not all that the schema demands.

`redactor.VaultRedactor`, which knows the values of the vault, adds to this.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolgate.core.canonical import canonical
from toolgate.core.errors import ConfigError, TooLarge
from toolgate.core.late_pattern import late_pattern
from toolgate.core.tool import Tool
from toolgate.policy.linear import Linear

MASK = "[masked]"
LONG_ENOUGH = 4
FINGERPRINT = 12
"""Hexadecimal digits: enough to tell two values distinct, too few to be of use to whoever guesses."""
Hide = Callable[[str, Any], str]
"""From the name that a secret stands under and its value to what stands for it."""
Schema = Mapping[str, Any]
_SECRET_NAME = late_pattern(
    r"(^|_)(password|passwd|pwd|passphrase|secret|token|api_?key|access_?key|private_?key|authorization|auth|bearer|cookie|credential)s?$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")))


class SchemaMask:
    """Masks what a tool's schema declares secret, where it stands and nowhere else."""

    @property
    def searches(self) -> bool:
        return False

    @property
    def version(self) -> int:
        return 0

    def __init__(self, key: bytes = b"") -> None:
        self._key = key or os.urandom(32)
        self._walkers: dict[str, _Walker | None] = {}

    def redact(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        return _scrubbed(value, hidden) if hidden else value

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        walker = self._walker(tool)
        masked = args if walker is None else walker.replaced(args, lambda name, value: MASK, named=True)
        return self._unrecorded(tool, masked) if tool.unrecorded else masked

    def shown(self, value: Any) -> Any:
        return value

    def show(
        self, tool: Tool, args: Mapping[str, Any], paths: frozenset[str] = frozenset()
    ) -> Mapping[str, Any]:
        """The arguments for a human who decides: all of them, and of a declared secret its name and fingerprint."""
        walker = self._walker(tool)
        return args if walker is None else walker.replaced(args, self._told, named=False)

    def seal(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        walker = self._walker(tool)
        if tool.unrecorded:
            args = self._unrecorded(tool, args)
        if walker is None:
            return args, ()
        hidden: list[str] = []

        def seal(name: str, value: Any) -> str:
            hidden.extend(_texts(value))
            return "hmac:" + self._keyed(value)

        sealed = walker.replaced(args, seal, named=True)
        return sealed, tuple(sorted(set(hidden), key=len, reverse=True))

    def refresh(self) -> None:
        """Schemas do not change."""

    def fingerprint(self, value: Any) -> str:
        return self._keyed(value)[:FINGERPRINT]

    def _unrecorded(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """With a hash in the place of each text that the journal is not to hold."""
        found = {name: args[name] for name in tool.unrecorded if args.get(name) not in (None, "")}
        return (
            {**args, **{name: "hmac:" + self._keyed(value) for name, value in found.items()}}
            if found
            else args
        )

    def _told(self, name: str, value: Any) -> str:
        size = f"{len(value):,} characters" if isinstance(value, str) else "a value"
        return f"[secret argument {name}: {size}, fingerprint {self.fingerprint(value)}]"

    def _keyed(self, value: Any) -> str:
        return hmac.digest(self._key, canonical(value).encode(), "sha256").hex()

    def _walker(self, tool: Tool) -> _Walker | None:
        """None if nothing in the arguments of this tool can be secret."""
        try:
            return self._walkers[tool.definition]
        except KeyError:
            schema = tool.argument_schema
            foreign = tool.origin == "imported"
            walker = (
                _Walker(schema, frozenset(tool.plain), foreign)
                if foreign or _may_hold_secrets(schema)
                else None
            )
            return self._walkers.setdefault(tool.definition, walker)


class _Walker:
    """Goes through a value along its schema, and replaces what stands where the schema says that a secret stands."""

    def __init__(self, schema: Schema, plain: frozenset[str], foreign: bool) -> None:
        self._root = schema
        self._plain = plain
        self._foreign = foreign
        """A stranger's schema may leave out what the server takes: its arguments count as named, declared or not."""

    def replaced(self, args: Mapping[str, Any], hide: Hide, *, named: bool) -> Mapping[str, Any]:
        made = self._value("", args, self._expanded([self._root], args), hide, named)
        if named and self._foreign and isinstance(made, dict):
            made = {key: self._argument(key, value, args, hide) for key, value in made.items()}
        return made if isinstance(made, dict) and made != args else args

    def _argument(self, key: str, value: Any, args: Mapping[str, Any], hide: Hide) -> Any:
        untouched = value == args[key] and value is not None and value != ""
        return hide(key, value) if untouched and is_secret_name(key) else value

    def _value(self, name: str, value: Any, parts: list[Schema], hide: Hide, named: bool) -> Any:
        if not parts or value is None or value == "":
            return value
        if any(part.get("writeOnly") is True or part.get("format") == "password" for part in parts):
            return hide(name, value)
        if isinstance(value, dict):
            return {key: self._member(key, item, parts, hide, named) for key, item in value.items()}
        if isinstance(value, list):
            return [
                self._value(name, item, self._expanded(_items(parts, at), item), hide, named)
                for at, item in enumerate(value)
            ]
        return value

    def _member(self, key: str, value: Any, parts: list[Schema], hide: Hide, named: bool) -> Any:
        declared = [part["properties"][key] for part in parts if key in part.get("properties", ())]
        if declared and named and key not in self._plain and is_secret_name(key):
            return value if value is None or value == "" else hide(key, value)
        # a key that the schema does not know is the caller's choice: it says nothing about what stands there
        leads_to = [each for part in parts for each in members(part, key)]
        return self._value(key, value, self._expanded(leads_to, value), hide, named)

    def _expanded(self, parts: Sequence[Any], value: Any) -> list[Schema]:
        """With what references lead to, and those alternatives that this value can be one of: what another one
        declares secret is none here."""
        found: list[Schema] = []
        seen: set[int] = set()
        waiting = list(parts)
        while waiting:
            part = waiting.pop()
            if not isinstance(part, Mapping) or id(part) in seen:
                continue
            seen.add(id(part))
            found.append(part)
            waiting.extend(part.get("allOf", ()))
            for word in ("anyOf", "oneOf"):
                branches = part.get(word, ())
                fitting = [each for each in branches if may_be(value, each, self._root)]
                waiting.extend(fitting or branches)
            if "if" in part:
                holds = may_be(value, part["if"], self._root)
                waiting.extend((part["if"], part.get("then")) if holds else (part.get("else"),))
            if isinstance(ref := part.get("$ref"), str):
                waiting.append(target(self._root, ref))
        return found


def _items(parts: list[Schema], at: int) -> list[Any]:
    found = []
    for part in parts:
        listed = part.get("prefixItems", ())
        found.append(listed[at] if at < len(listed) else part.get("items"))
    return found


def _may_hold_secrets(part: Any) -> bool:
    if isinstance(part, list):
        return any(map(_may_hold_secrets, part))
    if not isinstance(part, Mapping):
        return False
    named = part.get("properties")
    return (
        part.get("writeOnly") is True
        or part.get("format") == "password"
        or (isinstance(named, Mapping) and any(is_secret_name(str(name)) for name in named))
        or any(map(_may_hold_secrets, part.values()))
    )


def _texts(value: Any) -> Iterator[str]:
    """The texts in a secret that are long enough to be told from ordinary words."""
    if isinstance(value, str):
        if len(value) >= LONG_ENOUGH:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _scrubbed(value: Any, hidden: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in hidden:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return distinct((_scrubbed(key, hidden), _scrubbed(item, hidden)) for key, item in value.items())
    return [_scrubbed(item, hidden) for item in value] if isinstance(value, list | tuple) else value


def distinct(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    """A mapping of all of them: two keys that read the same once masked do not hide one another."""
    made: dict[Any, Any] = {}
    for key, item in pairs:
        number, free = 1, key
        while free in made:
            number += 1
            free = f"{key}#{number}"
        made[free] = item
    return made


def too_deep() -> TooLarge:
    return TooLarge(
        "the arguments are nested too deeply to be shown to a human, so nobody can approve them",
        "flatten them",
    )


_DEEPEST = 16
_LONGEST = 1000
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "object": (dict,),
    "array": (list, tuple),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}


def target(root: Mapping[str, Any], ref: str) -> Any:
    found: Any = root
    for name in ref.removeprefix("#").strip("/").split("/"):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def members(part: Mapping[str, Any], key: str) -> Iterator[Any]:
    """What holds for a key: its own schema, those of the patterns that it fits, else that of all others."""
    known = part.get("properties", {})
    fitting = [each for text, each in part.get("patternProperties", {}).items() if _named_so(text, key)]
    if key in known:
        yield known[key]
    yield from fitting
    if key not in known and not fitting:
        yield part.get("additionalProperties")


def may_be(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether nothing that is looked at speaks against it: kind, constants, keys, and the same of what stands in it."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return True
    if isinstance(ref := schema.get("$ref"), str) and not may_be(value, target(root, ref), root, depth + 1):
        return False
    if not _is_kind(value, schema.get("type")) or not _is_constant(value, schema):
        return False
    if not all(may_be(value, each, root, depth + 1) for each in schema.get("allOf", ())):
        return False
    for word in ("anyOf", "oneOf"):
        if schema.get(word) and not any(may_be(value, each, root, depth + 1) for each in schema[word]):
            return False
    return not isinstance(value, dict) or _has_keys(value, schema, root, depth)


def _has_keys(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> bool:
    if not all(key in value for key in schema.get("required", ())):
        return False
    return all(
        may_be(item, each, root, depth + 1) for key, item in value.items() for each in members(schema, key)
    )


def _is_kind(value: Any, wanted: Any) -> bool:
    kinds = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if not kinds:
        return True
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _KINDS.get(kind, (object,))) for kind in kinds)


def _is_constant(value: Any, schema: Mapping[str, Any]) -> bool:
    if "const" in schema and schema["const"] != value:
        return False
    return not isinstance(schema.get("enum"), list) or value in schema["enum"]


def _named_so(pattern: str, key: str) -> bool:
    """A pattern that cannot be judged fits nothing: what might be hidden by it is shown."""
    compiled = _compiled(pattern)
    return compiled is not None and len(key) <= _LONGEST and compiled.search(key)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Linear | None:
    try:
        return Linear(pattern)
    except ConfigError:
        return None
