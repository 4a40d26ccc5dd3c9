"""Masking by name and type: arguments that are called like secrets never reach the journal.

The vault's redactor, which knows the values themselves, will stand behind the same port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from toolgate.core.tool import Tool

MASK = "[masked]"
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

    def __init__(self) -> None:
        self._secret: dict[str, frozenset[str]] = {}

    def redact(self, value: Any) -> Any:
        return value

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The very same mapping where nothing is masked."""
        secret = self._secret.get(tool.definition)
        if secret is None:
            named = {name for name in tool.arg_names if is_secret_name(name)}
            secret = self._secret[tool.definition] = frozenset(named | tool.secret_args)
        if tool.origin == "imported":  # its arguments have the names that a stranger's schema allows
            secret |= {name for name in args if is_secret_name(name)}
        if secret.isdisjoint(args) and not any(type(value) in _DEEP for value in args.values()):
            return args
        return {name: _mask(name, value, name in secret) for name, value in args.items()}


def _mask(name: str, value: Any, secret: bool) -> Any:
    if value is not None and value != "" and (secret or is_secret_name(name)):
        return MASK
    if isinstance(value, dict):
        return {key: _mask(key, item, False) for key, item in value.items()}
    return [_mask("", item, False) for item in value] if isinstance(value, list) else value
