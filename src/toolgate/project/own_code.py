"""What toolgate loads and runs of the files in mounts: found out when a gate opens, and again when its policy changes.

`own` is written by no tool: the policy itself, plugins, the database. `held` asks a human: what servers are started from, and
toolgate's own installation. Programs of the catalog belong here too, once there are any.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import SetupError
from toolgate.core.paths import MountPath
from toolgate.core.programs import NAMES
from toolgate.core.records import dataclass, field
from toolgate.feature import everything, load, places_of
from toolgate.policy.held import HeldPlace
from toolgate.project.own_files import mount_roots
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from toolgate.project.config import Config

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
            kept[each.name], more = load(each.holds)(
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
    places = [(os.path.dirname(os.path.abspath(__file__)), "toolgate itself")]
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
