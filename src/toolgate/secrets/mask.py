"""Masking by name and type: arguments that are called like secrets never reach the journal.

`redactor.VaultRedactor`, which knows the values themselves, adds to this.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolgate.core.canonical import canonical
from toolgate.core.tool import Tool
from toolgate.core.wordlist import is_words

MASK = "[masked]"
LONG_ENOUGH = 4
Hide = Callable[[Any], str]
_DEEP = frozenset({dict, list})
_SECRET_NAME = re.compile(
    r"(^|_)(password|passwd|pwd|passphrase|secret|token|api_?key|access_?key|private_?key|authorization|auth|bearer|cookie|credential)s?$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")))


class NameMask:
    """Masks by argument name, at any depth, and by declared type."""

    @property
    def searches(self) -> bool:
        return False

    @property
    def version(self) -> int:
        return 0

    def __init__(self, key: bytes = b"") -> None:
        self._key = key or os.urandom(32)
        self._secret: dict[str, frozenset[str]] = {}

    def redact(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        return _scrubbed(value, hidden) if hidden else value

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        names = self._secret_names(tool, args)
        return args if names is None else _replaced(args, names, lambda value: MASK, tool.plain)

    def seal(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        names = self._secret_names(tool, args)
        if names is None:
            return args, ()
        hidden: list[str] = []

        def seal(value: Any) -> str:
            hidden.extend(_texts(value))
            return "hmac:" + self._keyed(value)

        return _replaced(args, names, seal, tool.plain), tuple(sorted(set(hidden), key=len, reverse=True))

    def refresh(self) -> None:
        """Names do not change."""

    def _keyed(self, value: Any) -> str:
        return hmac.digest(self._key, canonical(value).encode(), "sha256").hex()

    def _secret_names(self, tool: Tool, args: Mapping[str, Any]) -> frozenset[str] | None:
        """The arguments that are secret as a whole; None if nothing in these can be."""
        secret = self._secret.get(tool.definition)
        if secret is None:
            named = {name for name in tool.arg_names if is_secret_name(name)}
            secret = self._secret[tool.definition] = frozenset(named - {*tool.plain} | tool.secret_args)
        if tool.origin == "imported":  # its arguments have the names that a stranger's schema allows
            secret |= {name for name in args if is_secret_name(name)}
        if not secret.isdisjoint(args):
            return secret
        if _DEEP.isdisjoint(map(type, args.values())):
            return None
        for value in args.values():
            if type(value) in _DEEP and not is_words(value):
                return secret
        return None


def _replaced(
    args: Mapping[str, Any], secret: frozenset[str], hide: Hide, plain: tuple[str, ...]
) -> Mapping[str, Any]:
    made = {
        name: _hidden("" if name in plain else name, value, name in secret, hide)
        for name, value in args.items()
    }
    return made if made != args else args


def _hidden(name: str, value: Any, secret: bool, hide: Hide) -> Any:
    if value is not None and value != "" and (secret or is_secret_name(name)):
        return hide(value)
    if isinstance(value, dict):
        return {key: _hidden(key, item, False, hide) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    return [item if type(item) is str else _hidden("", item, False, hide) for item in value]


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
        return {_scrubbed(key, hidden): _scrubbed(item, hidden) for key, item in value.items()}
    return [_scrubbed(item, hidden) for item in value] if isinstance(value, list | tuple) else value
