"""toolgate: the gate between an AI agent and everything it can touch."""

from __future__ import annotations

from toolgate.app import open  # noqa: A004 - the public name
from toolgate.consent.works import Scope
from toolgate.core.change import Change, FileChange
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Code, ConfigError, SetupError, ToolgateError
from toolgate.core.paths import MountPath
from toolgate.core.result import Result
from toolgate.core.tool import Tool, tool
from toolgate.facade import Gate
from toolgate.version import VERSION as __version__  # noqa: N811 - Python's own name for it

__all__ = [
    "CallError", "Change", "Code", "ConfigError", "Context", "FileChange", "Gate", "MountPath", "Result", "Scope",
    "SetupError", "Tool", "ToolgateError", "__version__", "open", "tool",
]  # fmt: skip
