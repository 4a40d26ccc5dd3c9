"""toolgate: the gate between an AI agent and everything it can touch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgate.core.collecting import NoCollection
from toolgate.version import VERSION as __version__  # noqa: N811 - Python's own name for it

if TYPE_CHECKING:
    from toolgate.app import open  # noqa: A004 - the public name
    from toolgate.consent.works import Scope
    from toolgate.core.change import Change, FileChange
    from toolgate.core.context import Context
    from toolgate.core.errors import CallError, Code, ConfigError, SetupError, ToolgateError
    from toolgate.core.paths import MountPath
    from toolgate.core.result import Result
    from toolgate.core.tool import Tool, tool
    from toolgate.facade import Gate

_HOMES = {
    "open": "app", "Scope": "consent.works", "Change": "core.change", "FileChange": "core.change",
    "Context": "core.context", "CallError": "core.errors", "Code": "core.errors", "ConfigError": "core.errors",
    "SetupError": "core.errors", "ToolgateError": "core.errors", "MountPath": "core.paths",
    "Result": "core.result", "Tool": "core.tool", "tool": "core.tool", "Gate": "facade",
}  # fmt: skip
"""Where each public name lives. Loaded when first used, so that `toolgate --version` need not load it all."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolgate' has no attribute {name!r}")
    with NoCollection(lasting=True):
        value = getattr(import_module(f"toolgate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "CallError", "Change", "Code", "ConfigError", "Context", "FileChange", "Gate", "MountPath", "Result", "Scope",
    "SetupError", "Tool", "ToolgateError", "__version__", "open", "tool",
]  # fmt: skip
