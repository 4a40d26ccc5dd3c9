"""Plugins: features, or plain functions that take Services and return tools, that a project brings.

A plugin is named in `toolgate.yaml` (`plugins:`), as
`package.module:function` or as `./file.py` inside the project; nothing is loaded unless the project is trusted.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from toolgate.core.errors import SetupError
from toolgate.core.tool import Tool
from toolgate.feature import Feature
from toolgate.gate.flow import Services
from toolgate.project.own_files import exposed, read_once
from toolgate.workspace.placing import Placing

Plugin = Callable[[Services], Iterable[Tool]]
DEFAULT_FUNCTION = "toolset"
MAX_BYTES = 16 << 20


def brought(root: Path) -> tuple[Feature, ...]:
    """The features that a trusted project names in `plugins:`; none of another one."""
    from toolgate.project.opening import prepare
    from toolgate.project.own_files import mount_roots

    setup = prepare(root)
    if not setup.trusted:
        return ()
    placing = Placing(mount_roots(setup.root, setup.config.mounts))
    found = [load(spec, setup.root, placing) for spec in setup.config.plugins]
    return tuple(one for one in found if isinstance(one, Feature))


def load(spec: str, root: Path, placing: Placing) -> Plugin | Feature:
    module_name, _, function = spec.partition(":")
    try:
        module = (
            _from_file(root, module_name, placing)
            if module_name.endswith(".py")
            else importlib.import_module(module_name)
        )
        found: Any = getattr(module, function) if function else _what_it_is(module)
    except SetupError:
        raise
    except Exception as error:
        raise SetupError(
            f"the plugin {spec!r} cannot be loaded: {type(error).__name__}: {error}",
            "name it as package.module:function or ./file.py, and check that it imports",
        ) from error
    if isinstance(found, Feature):
        return found
    if not callable(found):
        raise SetupError(
            f"the plugin {spec!r} is neither a Feature nor a function",
            "a function takes Services and returns tools",
        )
    plugin: Plugin = found
    return plugin


def _what_it_is(module: Any) -> Any:
    return getattr(module, "FEATURE", None) or getattr(module, DEFAULT_FUNCTION)


def _from_file(root: Path, name: str, placing: Placing) -> Any:
    """Compiled from the bytes that were read from the file that was checked: no bytecode of it is looked for."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise SetupError(
            f"the plugin file {name!r} is outside the project",
            "keep plugin files inside, or install a package",
        )
    file = root.resolve() / name
    try:
        source, status = read_once(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise SetupError(f"the plugin file {name!r} cannot be read: {error}", "check the path") from None
    if len(source) > MAX_BYTES:
        raise SetupError(f"the plugin file {name!r} is larger than {MAX_BYTES:,} bytes", "make it smaller")
    message, fix = exposed(file, status, placing)
    if message:
        raise SetupError(f"the plugin file {name!r} is not loaded: {message}", fix)
    spec = importlib.util.spec_from_file_location(f"toolgate_plugin_{path.stem}", path)
    if spec is None:
        raise SetupError(f"the plugin file {name!r} cannot be read", "check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module
