"""Known configurations: a Config as it was checked before, without the models that checked it.

Besides what `checked.py` wants, it must have been checked by the very same code, with the same features. Sections of features
are kept as they are written, and checked when the feature asks for them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolgate.core.names import HUMAN
from toolgate.feature import Feature, everything, load, mount_kinds
from toolgate.policy.hard import Named
from toolgate.policy.held import Held, HeldPlace
from toolgate.policy.policy import Policy
from toolgate.policy.values import packed, unpacked
from toolgate.project import checked
from toolgate.project.checked import check_config, read_once
from toolgate.project.trust import FILE

if TYPE_CHECKING:
    from toolgate.core.paths import MountPath
    from toolgate.policy.model import PersonaSpec
    from toolgate.project.config import Config


def read(root: Path, state_dir: Path) -> Config | None:
    """All that the file at this place says, where this very code checked these very bytes before. Raises WritableConfig."""
    file = root / FILE
    try:
        raw, status = read_once(file, checked.MAX_BYTES)
        kept = checked.kept(root, state_dir)
        if (kept["file"], kept["whole"]["code"]) != (hashlib.sha256(raw).hexdigest(), _code()):
            return None
        found = cast("Config", KnownConfig(kept["whole"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    check_config(file, status, root, found.mounts)
    return found


class KnownConfig:
    """A Config that needs no models: the same attributes and methods, with what was checked before."""

    brought: tuple[Feature, ...] = ()

    def __init__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(unpacked(kept["fields"]))
        self.human: PersonaSpec = unpacked(kept["human"])
        self.unread: Mapping[str, Any] = kept["unread"]
        self._sections: Mapping[str, Any] = kept["sections"]
        self._says: list[str] = kept["says"]
        self._made: dict[str, Any] = {}

    def says(self, one: Feature) -> bool:
        return any(key in self._says for key in one.sections)

    def section(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = section(sections()[key], self._sections.get(key, {}))
        return self._made[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in sections():
            raise AttributeError(name)
        return self.section(name)

    def policy(
        self, trusted: bool, loaded: Iterable[MountPath] = (), held: Iterable[HeldPlace] = ()
    ) -> Policy:
        return policy_of(cast("Config", self), trusted, loaded, held)


def told(config: Config, written: Mapping[str, Any]) -> dict[str, Any]:
    """What `checked.remember` keeps of it; `written` is the data of the file."""
    brought = sections()
    fields = {name: value for name, value in vars(config).items() if name not in brought}
    return {
        "code": _code(),
        "fields": packed(fields),
        "human": packed(config.human),
        "unread": dict(config.unread),
        "sections": {key: value for key, value in written.items() if key in brought},
        "says": [key for key in brought if key in written and vars(config)[key]],
    }


def policy_of(
    config: Config, trusted: bool, loaded: Iterable[MountPath], held: Iterable[HeldPlace]
) -> Policy:
    """`loaded` and `held` are what toolgate loads and runs of the files in mounts; see `plugins.own_code`."""
    files = [plugin.partition(":")[0] for plugin in config.plugins if plugin.startswith("./")]
    keys = [config.ledger.key_file] if config.ledger.key_file else []
    return Policy(
        {HUMAN: config.human, **config.personas},
        config.mounts,
        config.policy_spec,
        config.limits,
        trusted=trusted,
        named=Named.of(files, keys).also(loaded),
        held=Held.of(held),
        scan=config.scan,
        kinds=mount_kinds(config.brought),
    )


def sections(more: Iterable[Feature] = ()) -> dict[str, str]:
    """Keys of features and the places of their models. A key belongs to the first who has it, as a feature's name does:
    toolgate's own come first."""
    found: dict[str, str] = {}
    for each in everything(more):
        for key, place in each.sections.items():
            found.setdefault(key, place)
    return found


def section(place: str, written: Any) -> Any:
    """A feature's section, checked."""
    from pydantic import TypeAdapter

    return TypeAdapter(load(place)).validate_python(written)


def _code() -> str:
    """What checks a file: these modules as they are installed, and the features with their sections and kinds of mounts."""
    here = os.path.dirname(os.path.abspath(__file__))
    modules: list[tuple[str, int, int]] = []
    for folder in (here, os.path.join(os.path.dirname(here), "policy")):
        for entry in os.scandir(folder):
            if entry.name.endswith(".py"):
                status = entry.stat()
                modules.append((entry.path, status.st_mtime_ns, status.st_size))
    return hashlib.sha256(repr((sorted(modules), everything())).encode()).hexdigest()
