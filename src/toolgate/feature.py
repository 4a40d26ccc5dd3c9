"""Feature: everything that one part of toolgate says about itself, in words that load nothing.

`FEATURES` is the literal list of those that come with toolgate; each says `FEATURE = Feature(...)` in its package's
`__init__`. Others are named in `plugins:` of a trusted project or installed under the entry point group
`toolgate.features`; they use the very same class. A place is written as `package.module:name` and imported when
somebody needs it.
"""

from __future__ import annotations

import os
import site
import sys
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgate.core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
    from contextlib import AsyncExitStack
    from pathlib import Path

    from toolgate.core.result import Result
    from toolgate.facade import Gate
    from toolgate.gate.flow import Services
    from toolgate.secrets.vault import Vault
    from toolgate.storage.tables import Tables
    from toolgate.workspace.files import WorkspaceFiles

FEATURES = (
    "toolgate.features.files",
    "toolgate.features.code",
    "toolgate.features.programs",
    "toolgate.features.servers",
    "toolgate.features.jobs",
    "toolgate.features.garden",
    "toolgate.features.memory",
    "toolgate.features.agents",
    "toolgate.features.system",
)
GROUP = "toolgate.features"
"""The entry points of installed features."""


class Family(NamedTuple):
    """Tools that are loaded together, when one of them is called or described."""

    tools: str
    """A function of the FeatureContext that returns the tools."""
    names: tuple[str, ...]
    aliases: Mapping[str, str] = {}
    """Other names, and the tool that each one leads to."""
    needs_files: bool = False
    """Absent in a project that is not trusted, of which nothing is opened."""


class Command(NamedTuple):
    """A command of the command line; one with a space in its name belongs to a group: `jobs list`."""

    name: str
    runs: str
    help: str
    panel: str = "The project"


class Page(NamedTuple):
    """Pages of the console below one path."""

    path: str
    title: str
    """In the navigation; empty for a page that others link to."""
    adds: str
    """A function of the console's router and the Console that adds the routes. Its templates are in `templates/`
    of its package, or in `TEMPLATES` of its module by name, and are called `<feature>/<file>`."""
    icon: str = ""
    """Beside the title: the path of an SVG of 20 by 20, drawn as a line."""


class MountKind(NamedTuple):
    """What a mount is for, as properties. A mount says `kind: garden`; one that is called like a kind has it."""

    name: str
    effect: str = ""
    """The effect word of reading and writing it; without one it counts as the project."""
    whole: bool = False
    """Writable as a whole, and open to every persona, where nothing else is said."""
    deletes: bool = True
    """Whether things in it may be deleted or moved away."""
    links: bool = True
    """Whether links inside it are followed."""
    scope: str = ""
    """The directory that is all a persona sees of it, such as `users/{user}`."""
    section: str = ""
    """A function of a file's bytes and the name of a section of it: its first line and its text. Absent: there are none."""
    completes: str = ""
    """A coroutine function of the workspace's files, a Change and the name of the tool that planned it: the Change with what
    belongs to it besides, such as a copy of what it replaces."""
    remarks: str = ""
    """A coroutine function of the FeatureContext, a path and a persona: what whoever reads the file should know of its lines,
    each as `{line, problem}`."""
    camel_case: bool = False
    """Whether what `fs.*` gives of its files also has the spellings of the garden's document, such as `newHash`."""
    guard: str = ""
    """A function of the mount's name, a Change and the Holder: raises where the mount refuses the Change. Whoever plans
    or applies a Change that touches the mount comes past it."""


KINDS = {
    kind.name: kind
    for kind in (
        MountKind("files"),
        MountKind("project", "project", whole=True),
        MountKind("scratch", "scratch", whole=True),
    )
}
"""Those that need no feature; `files` is what a mount is that says nothing."""


class Feature(NamedTuple):
    name: str
    summary: str
    sections: Mapping[str, str] = {}
    """Its keys in toolgate.yaml, each with the place of its pydantic model or type."""
    families: tuple[Family, ...] = ()
    opens: str = ""
    """A function of the FeatureContext that makes what `gate.feature(name)` returns, when it is first asked for."""
    opens_early: bool = False
    """Whether it is made with the gate, where its section of toolgate.yaml says anything: its tools come from there."""
    holds: str = ""
    """A function of its section, the project's root, the environment and the placing of mounts: the files that it
    starts or loads, which no tool writes without a human."""
    human_tools: tuple[str, ...] = ()
    """Tools that the human may call, whatever the phases say."""
    commands: tuple[Command, ...] = ()
    routes: str = ""
    """A function that returns HTTP routers, each with who may use it: `anyone` or `human`."""
    pages: tuple[Page, ...] = ()
    renderings: str = ""
    """A mapping from a tool's name to the text that models read of its result: see `core/rendering.py`."""
    drawings: str = ""
    """A mapping from a tool's name to the function that draws its result in a terminal."""
    checks: str = ""
    """A tuple of checks for `toolgate doctor`."""
    background: str = ""
    """A function of the FeatureContext: a coroutine that `toolgate up` runs beside the server, or None."""
    watch: str = ""
    """The same, for what every process does that stays: `toolgate up` and each `toolgate mcp`."""
    mount_kinds: tuple[MountKind, ...] = ()
    tables: str = ""
    """Migrations of its own tables: see `storage/tables.py`."""
    docs: str = ""


class FeatureContext:
    """All that a feature is handed: its own live configuration, files, the record, calls, the vault, its own tables,
    a directory, and a stack for what must be closed again."""

    def __init__(
        self, feature: Feature, gate: Gate, directory: Path, stack: AsyncExitStack, tables: Callable[[], Awaitable[Tables]],
        held: Any = None,
    ) -> None:  # fmt: skip
        self.feature = feature
        self.gate = gate
        self.directory = directory
        """`.toolgate` of the project: where a feature keeps files of its own, under a name of its own."""
        self.stack = stack
        self.tables = tables
        """Its own tables, brought up to date when they are first asked for."""
        self.held = held
        """What its `holds` gave when the gate was opened."""

    @property
    def config(self) -> Any:
        """Its section of toolgate.yaml, as the file says now; the first one, if it has several."""
        return self.section(next(iter(self.feature.sections)))

    def section(self, key: str) -> Any:
        return self.gate.config.section(key)

    @property
    def root(self) -> Path:
        return self.gate.root

    @property
    def services(self) -> Services:
        """The kernel's own; features from elsewhere need none of them."""
        return self.gate.services

    @property
    def files(self) -> WorkspaceFiles | None:
        """None in a project that is not trusted."""
        return self.gate.files

    @property
    def vault(self) -> Vault | None:
        return self.gate.vault

    def call(self, tool: str, args: Mapping[str, Any], **more: Any) -> Coroutine[Any, Any, Result]:
        """A call through the gate, with every stage, as anybody else's."""
        return self.gate.call(tool, args, **more)

    async def tell(self, text: str, data: Mapping[str, Any] | None = None) -> int:
        """Record a note under the feature's name; the event's number."""
        return await self.gate.note(self.feature.name, text, data or {})


def places_of(feature: Feature) -> list[str]:
    """Every place that it names."""
    named = [
        *feature.sections.values(), feature.opens, feature.holds, feature.routes, feature.renderings, feature.drawings,
        feature.checks, feature.background, feature.watch, feature.tables, *(each.tools for each in feature.families),
        *(each.runs for each in feature.commands), *(each.adds for each in feature.pages),
        *(place for each in feature.mount_kinds for place in (each.guard, each.section)),
    ]  # fmt: skip
    return [place for place in named if place]


def load(place: str) -> Any:
    """What `package.module:name` means."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def beside(contexts: Iterable[FeatureContext], *places: str) -> list[Coroutine[Any, Any, None]]:
    """What features do beside a server: `background`, `watch` or both."""
    named = [(context, getattr(context.feature, place)) for context in contexts for place in places]
    work = [load(place)(context) for context, place in named if place]
    return [each for each in work if each is not None]


def kind_of(name: str, said: str | None, kinds: Mapping[str, MountKind] = KINDS) -> MountKind | None:
    """The kind of a mount of this name; None where it says one that nobody brings."""
    return kinds.get(said) if said is not None else kinds.get(name, KINDS["files"])


@lru_cache(maxsize=1)
def built_in() -> tuple[Feature, ...]:
    """The features that come with toolgate."""
    return tuple(import_module(package).FEATURE for package in FEATURES)


@lru_cache(maxsize=1)
def installed() -> tuple[Feature, ...]:
    """Features of other packages in this environment. Only where packages are installed, not on all of Python's path: a
    program's own directory is there too, and a tool may be allowed to write into it. The files are read directly:
    Python's own reader of entry points takes longer than all the rest of a short command."""
    there = [path for path in (*site.getsitepackages(), site.getusersitepackages()) if path in sys.path]
    return tuple(load(place) for path in there for place in _entry_points(path))


def everything(more: Iterable[Feature] = ()) -> tuple[Feature, ...]:
    """toolgate's own, the installed ones, and those that a project brings. A name belongs to the first who has it."""
    found: dict[str, Feature] = {}
    for feature in (*built_in(), *installed(), *more):
        found.setdefault(feature.name, feature)
    return tuple(found.values())


def mount_kinds(more: Iterable[Feature] = ()) -> dict[str, MountKind]:
    """Every kind that a mount may have. A name belongs to the first who has it."""
    brought = {kind.name: kind for each in reversed(everything(more)) for kind in each.mount_kinds}
    return brought | KINDS


def _entry_points(directory: str) -> Iterable[str]:
    try:
        names = [name for name in os.listdir(directory) if name.endswith(".dist-info")]
    except OSError:
        return
    for name in sorted(names):
        try:
            with open(os.path.join(directory, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        _, found, rest = f"\n{text}".partition(f"\n[{GROUP}]\n")
        for line in rest.splitlines() if found else ():
            if line.startswith("["):
                break
            _, equals, place = line.partition("=")
            if equals:
                yield place.strip()
