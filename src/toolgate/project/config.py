"""Configuration: the reader of toolgate.yaml. What was checked before is in `checked.py`; `trust.py` reads the environment.

`load` gives a Config or a ConfigError with file, line and fix. Everything below this module is handed values.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, TypeAdapter, ValidationError, create_model, model_validator

from toolgate import feature
from toolgate.core.errors import ConfigError
from toolgate.core.names import HUMAN, PERSONA
from toolgate.core.paths import MOUNT, MountPath, folded
from toolgate.feature import Feature, everything, kind_of, mount_kinds
from toolgate.policy.checks import Parts, flaws
from toolgate.policy.held import HeldPlace
from toolgate.policy.model import (
    WHOLE,
    Flaw,
    LimitsSpec,
    MountSpec,
    PersonaSpec,
    PolicySpec,
    ScanSpec,
    Strict,
    all_flawed,
    flawed,
)
from toolgate.policy.policy import Policy
from toolgate.project import checked, known_config, yamlfile
from toolgate.project.checked import check_config, check_persona, read_once
from toolgate.project.config_errors import MAX_FLAWS, every, flaws_of, rescued
from toolgate.project.known_config import sections
from toolgate.project.sections import (
    DEFAULT_YAML,
    BudgetSpec,
    CacheSpec,
    ConsentSpec,
    HttpSpec,
    ImagesSpec,
    LedgerSpec,
    McpSpec,
    TimeoutsSpec,
)
from toolgate.project.trust import FILE, STATE, environment, state_dir

VERSION = 1


class Config(Strict):
    """All of toolgate.yaml. Absent sections have the values of their defaults, which are the strict ones. Sections of
    features are added by `_model`, those that a file has: what is not used is not loaded."""

    version: int
    default_persona: str = ""
    """Absent: a call must name its persona."""
    mounts: dict[str, MountSpec] = Field(default_factory=dict)
    personas: dict[str, PersonaSpec] = Field(default_factory=dict)
    limits: LimitsSpec = LimitsSpec.model_construct()
    consent: ConsentSpec = ConsentSpec.model_construct()
    policy_spec: PolicySpec = Field(default=PolicySpec.model_construct(), alias="policy")
    scan: ScanSpec = ScanSpec.model_construct()
    ledger: LedgerSpec = LedgerSpec.model_construct()
    budget: BudgetSpec = BudgetSpec.model_construct()
    plugins: tuple[Annotated[str, Field(pattern=r"^(\./[^\s:]+\.py(:\w+)?|[\w.]+:\w+)$")], ...] = ()
    """`package.module:factory` or `./file.py`; started only in a trusted project."""
    mcp: McpSpec = McpSpec.model_construct()
    http: HttpSpec = HttpSpec.model_construct()
    timeouts: TimeoutsSpec = TimeoutsSpec.model_construct()
    cache: CacheSpec = CacheSpec.model_construct()
    images: ImagesSpec = ImagesSpec.model_construct()

    _defaults: dict[str, Any] = PrivateAttr(default_factory=dict)
    _unread: dict[str, Any] = PrivateAttr(default_factory=dict)
    _more: tuple[Feature, ...] = PrivateAttr(default=())

    @property
    def unread(self) -> Mapping[str, Any]:
        """Sections that nobody known has asked for; a feature that `plugins` names may."""
        return self._unread

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise flawed("the configuration is not a mapping", f"begin with `version: {VERSION}`")
        version = data.get("version")
        if version is None:
            raise flawed("`version` is missing", f"add `version: {VERSION}` as the first line")
        if type(version) is int and version > VERSION:
            fix = "upgrade toolgate: pip install -U toolgate"
            raise flawed(
                f"version {version} is newer than this toolgate, which reads {VERSION}", fix, "version"
            )
        if type(version) is not int or version != VERSION:
            raise flawed(
                f"there is no version {str(version)[:40]!r}", f"write `version: {VERSION}`", "version"
            )
        return data | {"mounts": _mounts(data.get("mounts"))}

    @model_validator(mode="after")
    def _whole(self) -> Config:
        found = list(islice(self._flaws(), MAX_FLAWS))
        if found:
            raise all_flawed(WHOLE, found)
        return self

    def _flaws(self) -> Iterator[Flaw]:
        """What does not fit between the parts, or in their names."""
        for what, names, pattern in (("persona", self.personas, PERSONA), ("mount", self.mounts, MOUNT)):
            for name in names:
                if not pattern.fullmatch(name):
                    told = f"{name[:80]!r} is not a {what}'s name"
                    yield Flaw((f"{what}s", name), told, "use letters, digits, - and _")
        if HUMAN in self.personas:
            told = f"`{HUMAN}` is the person who runs the gate"
            yield Flaw(("personas", HUMAN), told, "give the persona another name")
        for name, mount in self.mounts.items():
            yield from _mount_flaws(name, mount)
            if not self.plugins and kind_of(name, mount.kind, mount_kinds()) is None:
                told = f"there is no kind of mount `{mount.kind}`"
                yield Flaw(("mounts", name, "kind"), told, f"use one of: {', '.join(mount_kinds())}")
        fix = f"the personas are: {', '.join(self.personas) or 'none'}"
        named = {("default_persona",): self.default_persona} if self.default_persona else {}
        for place, name in (named | {("mcp", "personas", one): one for one in self.mcp.personas}).items():
            if name not in self.personas:
                yield Flaw(place, f"there is no persona `{name[:80]}`", fix)
        yield from flaws(Parts(self.personas, self.mounts, self.policy_spec, self.limits))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], more: tuple[Feature, ...] | None = None) -> Config:
        """For library users: the same checks, without a file to point at."""
        return _validated(
            dict(data) if isinstance(data, Mapping) else data, yamlfile.Document(data), "", more
        )

    @property
    def brought(self) -> tuple[Feature, ...]:
        """Features that the project itself brings."""
        return self._more

    def says(self, one: Feature) -> bool:
        """Whether a section of this feature is there and says anything. Of one that is not, nothing is loaded."""
        return any(key in type(self).model_fields and self.__dict__[key] for key in one.sections)

    def section(self, key: str) -> Any:
        """A feature's section, or its default."""
        if key in type(self).model_fields:
            return self.__dict__[key]
        if key not in self._defaults:
            self._defaults[key] = known_config.section(sections(self._more)[key], {})
        return self._defaults[key]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in sections(self._more):
            return self.section(name)
        return super().__getattr__(name)  # type: ignore[misc]

    def policy(
        self, trusted: bool, loaded: Iterable[MountPath] = (), held: Iterable[HeldPlace] = ()
    ) -> Policy:
        return known_config.policy_of(self, trusted, loaded, held)

    @property
    def human(self) -> PersonaSpec:
        """The person who runs the gate, as a persona."""
        own = tuple(
            tool
            for each in everything(self._more)
            if not each.opens_early or self.says(each)
            for tool in each.human_tools
        )
        return PersonaSpec(phase="collaborate", allow=own, mounts=tuple(self.mounts))


def load(root: Path) -> Config:
    """Read `toolgate.yaml` of a project."""
    root = root.resolve()
    return load_from(root / FILE, root)


def load_from(
    file: Path,
    root: Path,
    mounts: Mapping[str, MountSpec] | None = None,
    more: tuple[Feature, ...] | None = None,
) -> Config:
    """Read a configuration that will be in force: from a place that no mount can write, neither one of its own nor
    one of those that are open."""
    raw, status = _bytes(file)
    if mounts is not None:
        check_config(file, status, root, mounts)
    return _loaded(file, raw, status, root, more)[0]


def load_and_keep(root: Path, state_dir: Path) -> Config:
    """As `load`, for a trusted project: what the file says is kept for whoever opens the project next."""
    raw, status = _bytes(root / FILE)
    loaded, data = _loaded(root / FILE, raw, status, root, None)
    digest = hashlib.sha256(raw).hexdigest()
    checked.remember(root, state_dir, loaded, digest, known_config.told(loaded, data))
    return loaded


def _loaded(
    file: Path, raw: bytes, status: os.stat_result, root: Path, more: tuple[Feature, ...] | None
) -> tuple[Config, Any]:
    """The configuration, and the data that it was made of."""
    try:
        document = yamlfile.read(_decoded(raw, file), str(file))
        loaded = _validated(document.data, document, str(file), more)
    except ConfigError:
        # it may have been broken on purpose: not even its mistake is believed then
        check_config(file, status, root, Config.from_dict({"version": VERSION}).mounts)
        raise
    check_config(file, status, root, loaded.mounts)
    return loaded, document.data


def read(file: Path, more: tuple[Feature, ...] | None = None) -> Config:
    """Read a configuration wherever it is, such as a policy to be tried."""
    return loads(_text(file), str(file), more)


def problems(root: Path) -> list[ConfigError]:
    """Everything that is wrong with `toolgate.yaml` of a project, as far as it can be told in one go, by its lines."""
    file = root / FILE
    try:
        document = yamlfile.read(_text(file), str(file))
        found = every(validate, document.data)
        if not found:
            load(root)
    except ConfigError as error:
        return [error]
    except RecursionError:
        return [ConfigError("nested too deeply", "flatten it", str(file))]
    return sorted((_error(flaw, document, str(file)) for flaw in found), key=lambda error: error.line)


def loads(text: str, file: str = FILE, more: tuple[Feature, ...] | None = None) -> Config:
    """`more` are features that the project itself brings."""
    return _validated((document := yamlfile.read(text, file)).data, document, file, more)


def ledger_of(file: Path, problem: ConfigError) -> Config:
    """All that may still be believed of a file with this problem: which ledger it means. One who wants to stop
    everything must not stop another ledger than the one that is in use, so what cannot be known is refused."""
    try:
        spec = rescued(_bytes(file)[0].decode("utf-8-sig", "replace"))
    except ConfigError:
        spec = None
    if spec is None:
        raise ConfigError(
            f"{problem.message}; and which ledger it means cannot be told from it",
            f"{problem.fix}; until then every call is refused",
        )
    return Config.from_dict({"version": VERSION, "ledger": spec.model_dump()})


def schema() -> dict[str, Any]:
    """JSON Schema of toolgate.yaml, for editors."""
    found = _model(frozenset(sections().items())).model_json_schema(by_alias=True)
    found.update({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FILE})
    return found


def _text(file: Path) -> str:
    return _decoded(_bytes(file)[0], file)


def _decoded(raw: bytes, file: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("it is not UTF-8 text", "save it as UTF-8", str(file), line) from None


def _bytes(file: Path) -> tuple[bytes, os.stat_result]:
    try:
        raw, status = read_once(file, yamlfile.MAX_BYTES)
    except ValueError as error:
        raise ConfigError(str(error), "put a file in its place", str(file)) from None
    except FileNotFoundError:
        raise ConfigError("there is no such file", "run `toolgate init`", str(file)) from None
    except OSError as error:
        raise ConfigError(
            f"it cannot be read: {error.strerror}", "check its permissions", str(file)
        ) from None
    if len(raw) > yamlfile.MAX_BYTES:
        raise ConfigError(f"it is larger than {yamlfile.MAX_BYTES:,} bytes", "shorten it", str(file))
    return raw, status


def _mounts(given: Any) -> Any:
    """The project and its scratch are always there."""
    implied = {"project": {"path": "."}, "scratch": {"path": f"{STATE}/scratch"}}
    if given is None:
        return implied
    return implied | given if isinstance(given, dict) else given


def _mount_flaws(name: str, mount: MountSpec) -> Iterator[Flaw]:
    parts = [folded(part) for part in mount.path.split("/")]
    if STATE in parts and not (name == "scratch" and parts == [STATE, "scratch"]):
        told = f"the mount {name} would open toolgate's own files"
        yield Flaw(("mounts", name, "path"), told, "choose another path")


@lru_cache(maxsize=16)
def _model(sections: frozenset[tuple[str, str]]) -> type[Config]:
    """Config with these sections of features, each with the place of its model."""
    fields: dict[str, Any] = {}
    for key, place in sorted(sections):
        hint = feature.load(place)
        fields[key] = (hint, Field(default_factory=partial(TypeAdapter(hint).validate_python, {})))
    return create_model("Config", __base__=Config, **fields) if fields else Config


def validate(data: Any, more: tuple[Feature, ...] | None = None) -> Config:
    """Raises pydantic's ValidationError. `more` are the features that the project brings; until they are loaded, a key
    that nobody else knows is set aside where `plugins` name any (`package:FEATURE`, in capitals)."""
    if not isinstance(data, dict):
        return Config.model_validate(data)
    known = sections(more or ())
    unread: dict[str, Any] = {}
    named = data.get("plugins")
    if (
        more is None
        and isinstance(named, list)
        and any(str(one).rpartition(":")[2].isupper() for one in named)
    ):
        words = {info.alias or name for name, info in Config.model_fields.items()}
        unread = {key: value for key, value in data.items() if key not in words and key not in known}
    kept = {key: value for key, value in data.items() if key not in unread}
    made = _model(frozenset(one for one in known.items() if one[0] in kept)).model_validate(kept)
    made._unread, made._more = unread, more or ()
    return made


def _validated(
    data: Any, document: yamlfile.Document, file: str, more: tuple[Feature, ...] | None = None
) -> Config:
    try:
        return validate(data, more)
    except ValidationError as error:
        first = flaws_of(error, data)[0]
    except RecursionError:
        raise ConfigError("nested too deeply", "flatten it", file) from None
    raise _error(first, document, file)


def _error(flaw: Flaw, document: yamlfile.Document, file: str) -> ConfigError:
    return ConfigError(flaw.message, flaw.fix, file, document.line(flaw.at) if file else 0)


__all__ = [
    "DEFAULT_YAML", "FILE", "STATE", "Config", "check_persona", "environment", "load", "loads", "problems", "read", "schema", "state_dir",
]  # fmt: skip
