"""Plugins that a project brings, and all else that toolgate loads and runs of the files in mounts.

A plugin is a feature, or a plain function that takes Services and returns tools. It is named in `toolgate.yaml`
(`plugins:`), as `package.module:function` or as `./file.py` inside the project; nothing is loaded unless the project is
trusted.

What is loaded and run (`own_code`) is found out when a gate opens, and again when its policy changes. `own` is written by
no tool: the policy itself, plugins, the database. `held` asks a human: what servers are started from, and toolgate's own
installation. Programs of the catalog belong here too, once there are any.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import toolgate
from toolgate.core.errors import SetupError
from toolgate.core.paths import MountPath
from toolgate.core.programs import NAMES
from toolgate.core.records import dataclass, field
from toolgate.core.tool import Tool
from toolgate.feature import Feature, everything, places_of
from toolgate.feature import load as load_feature
from toolgate.gate.flow import Services
from toolgate.policy.held import HeldPlace
from toolgate.project.checked import exposed, mount_roots, read_once
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from toolgate.project.config import Config

Plugin = Callable[[Services], Iterable[Tool]]
DEFAULT_FUNCTION = "toolset"
MAX_BYTES = 16 << 20


def brought(root: Path) -> tuple[Feature, ...]:
    """The features that a trusted project names in `plugins:`; none of another one."""
    from toolgate.project.opening import prepare

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


_IMPORTED = """
annotated_types anthropic anyio asyncpg certifi chardet click cryptography dbos deno distro dotenv fastapi genai_prices h11
httptools httpx httpx_sse idna jinja2 jiter jsonschema keyring markdown_it markupsafe mcp mdurl numpy onnxruntime openai orjson
prompt_toolkit psutil pydantic pydantic_core pydantic_settings pygments re2 rich secretstorage sniffio sqlalchemy sse_starlette
starlette tokenizers tqdm tree_sitter typing_extensions typing_inspection usearch uvicorn uvloop watchfiles websockets wsproto
yaml
"""
"""Of other packages, by toolgate and by those that it imports, installed or not."""
_BESIDE = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class OwnCode:
    own: tuple[MountPath, ...] = ()
    held: tuple[HeldPlace, ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)
    """For each feature, what it remembers of its held files."""

    def also(self, other: OwnCode) -> OwnCode:
        """What a gate was opened with goes on being run, whatever the file says by now."""
        return OwnCode(self.own + other.own, self.held + other.held, self.kept)


def own_code(
    config: Config, root: Path, source: Path | None, database: Path | None, environ: Mapping[str, str]
) -> OwnCode:
    placing = Placing(mount_roots(root, config.mounts))
    files: list[Path] = [] if source is None else [source.absolute()]
    files += [root / spec.partition(":")[0] for spec in config.plugins if spec.startswith("./")]
    if database is not None:
        files += [Path(f"{database}{more}") for more in _BESIDE] + [database.parent / "owners"]
    own = [name for file in files for name in placing.names(file)]
    for spec in config.plugins:
        if not spec.startswith("./"):
            own += _package(spec, placing)
    for each in config.brought:  # what they name is loaded later, by whoever needs it
        for place in places_of(each):
            own += _package(place, placing)
    kept: dict[str, Any] = {}
    held: list[HeldPlace] = []
    for each in everything(config.brought):
        if each.holds and config.says(each):
            kept[each.name], more = load_feature(each.holds)(
                *map(config.section, each.sections), root, environ, placing
            )
            held += more
    return OwnCode(tuple(own), (*held, *_installed(placing, environ)), kept)


def imported_from(placing: Placing, before: Iterable[str]) -> Iterator[MountPath]:
    """What loading plugins has imported out of mounts, beside them or from elsewhere on Python's path."""
    known = set(before)
    for name, module in list(sys.modules.items()):
        if name not in known and name.partition(".")[0] != "toolgate" and isinstance(module, ModuleType):
            for file in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
                if file:
                    yield from placing.names(file)


def _package(spec: str, placing: Placing) -> Iterator[MountPath]:
    """All of an installed package, where that lies in a mount. Nothing of it is imported to find out."""
    top = spec.partition(":")[0].partition(".")[0]
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        found = None
    if found is None:
        return  # loading it says what is wrong
    places = list(found.submodule_search_locations or ())
    if not places and found.origin:
        places = [found.origin, os.path.join(os.path.dirname(found.origin), "__pycache__")]
    for place in places:
        for name in placing.names(place):
            if name.relative == ".":
                raise SetupError(
                    f"the plugin {spec!r} is loaded from {place}, which is all of the mount {name.mount}",
                    "install it as a package outside every mount, or name it as ./file.py",
                )
            yield name


def _installed(placing: Placing, environ: Mapping[str, str]) -> Iterator[HeldPlace]:
    """toolgate itself and its interpreter, where they are installed inside a mount, and where it looks for programs."""
    places = [(os.path.dirname(os.path.abspath(toolgate.__file__)), "toolgate itself")]
    if sys.prefix != sys.base_prefix:
        places.append((sys.prefix, "toolgate's own interpreter"))
    places += [
        (place, "a program that it finds on its PATH")
        for entry in environ.get("PATH", "").split(os.pathsep)
        if os.path.isabs(entry)
        for place in (entry, *(os.path.join(entry, name) for name in NAMES))
    ]
    for place, who in places:
        yield from (HeldPlace(name, who) for name in placing.names(place) if name.relative != ".")
    for entry in dict.fromkeys(sys.path):
        if os.path.isabs(entry) and not entry.startswith(sys.prefix + os.sep):
            yield from (place for name in placing.names(entry) for place in _modules(name))


def _modules(where: MountPath) -> Iterator[HeldPlace]:
    """What toolgate would import from a directory on Python's path, also where it is not there yet: a module that stands
    before another of its name, or in the place of one that is not installed."""
    base = "" if where.relative == "." else f"{where.relative}/"
    for module in (*sys.stdlib_module_names, *_IMPORTED.split()):
        for end in all_suffixes():
            for name in (f"{module}{end}", f"{module}/__init__{end}"):
                yield HeldPlace(MountPath(f"{where.mount}:{base}{name}"), "a module that toolgate imports")
