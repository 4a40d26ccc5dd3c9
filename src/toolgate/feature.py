"""Feature: everything that one part of toolgate says about itself, in words that load nothing.

`toolgate.features.FEATURES` is the literal list of those that come with toolgate. Others are named in `plugins:` of a
trusted project or installed under the entry point group `toolgate.features`; they use the very same class. A place is
written as `package.module:name` and imported when somebody needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    beside its module, and are called `<feature>/<file>`."""
    icon: str = ""
    """Beside the title: the path of an SVG of 20 by 20, drawn as a line."""


class MountKind(NamedTuple):
    """What a mount of this kind means to policy and to the tools that write."""

    name: str
    write_effect: str = "project"
    deletes: bool = True


class Feature(NamedTuple):
    name: str
    summary: str
    section: str = ""
    """Its key in toolgate.yaml."""
    config: str = ""
    """The pydantic model of that section."""
    families: tuple[Family, ...] = ()
    opens: str = ""
    """A function of the FeatureContext that makes what `gate.feature(name)` returns, when it is first asked for."""
    commands: tuple[Command, ...] = ()
    routes: str = ""
    """A function that returns HTTP routers, each with who may use it: `anyone` or `human`."""
    pages: tuple[Page, ...] = ()
    drawings: str = ""
    """A mapping from a tool's name to the function that draws its result in a terminal."""
    checks: str = ""
    """A tuple of checks for `toolgate doctor`."""
    background: str = ""
    """A coroutine function of the FeatureContext that `toolgate up` runs beside the server."""
    mount_kinds: tuple[MountKind, ...] = ()
    tables: str = ""
    """Migrations of its own tables: see `storage/tables.py`."""
    docs: str = ""


def load(place: str) -> Any:
    """What `package.module:name` means."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
