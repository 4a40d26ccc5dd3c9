"""Masking by name and type: arguments that are called like secrets never reach the journal.

The vault's redactor, which knows the values themselves, will stand behind the same port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolgate.core.tool import Tool

MASK = "[masked]"
_SECRET_NAME = re.compile(
    r"(^|_|-)(password|passwd|passphrase|secret|token|api_?key|apikey|access_?key|private_?key|authorization|auth|cookie|credentials?)s?$",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)))


class NameMask:
    """Masks by argument name, at any depth, and by declared type."""

    def __init__(self) -> None:
        self._plain: dict[str, bool] = {}

    def redact(self, value: Any) -> Any:
        return value

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        secret = {name for name in args if name in tool.secret_args or self._named(name)}
        if not secret and not any(isinstance(value, dict | list) for value in args.values()):
            return args
        return {
            name: MASK if name in secret and args[name] is not None else self._deep(args[name])
            for name in args
        }

    def _deep(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: MASK if self._named(k) and isinstance(v, str | int) else self._deep(v)
                for k, v in value.items()
            }
        return [self._deep(item) for item in value] if isinstance(value, list) else value

    def _named(self, name: str) -> bool:
        known = self._plain.get(name)
        if known is None:
            known = is_secret_name(name)
            if len(self._plain) < 10_000:
                self._plain[name] = known
        return known
