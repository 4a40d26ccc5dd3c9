"""The composition root: wires rooms together. `opening.py` does so for the ledger alone, and nobody else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgate.consent.desk import Desk
from toolgate.consent.notify import notifiers
from toolgate.core.clock import Clock
from toolgate.core.collecting import NoCollection
from toolgate.core.errors import CallError, SetupError
from toolgate.core.names import Registry
from toolgate.core.ports import Channel
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.feature import Feature, FeatureContext, built_in, everything, load
from toolgate.gate.cache import Cache
from toolgate.gate.flow import Budget, Services, Timeouts
from toolgate.gate.gate import Pipeline
from toolgate.gate.reconcile import reconcile_dead
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.owners import FileOwners, Owners, SoleOwner
from toolgate.project import plugins, trust
from toolgate.project import record as records
from toolgate.project.checked import mount_roots
from toolgate.project.live import LivePolicy, allowance_of, consent_settings
from toolgate.project.logs import log_to
from toolgate.project.opening import (
    Setup,
    backend_of,
    key_path,
    keys_again,
    keys_of,
    make_key,
    open_desk,
    open_record,
    prepare,
    prepare_ledger,
    read_again,
)
from toolgate.project.plugins import OwnCode, imported_from, own_code
from toolgate.secrets.redactor import VaultRedactor
from toolgate.secrets.scan import ContentScanner
from toolgate.secrets.vault import Vault
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Backend, Filter
from toolgate.storage.sqlite import SqliteBackend
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from toolgate.project.config import Config
    from toolgate.storage.tables import Tables


@asynccontextmanager
async def open(  # noqa: A001 - `toolgate.open` is the public name
    root: str | Path | Setup = ".",
    config: Config | Mapping[str, Any] | str | Path | None = None,
    database: str | Backend | None = None,
    *,
    tools: Iterable[Tool] = (),
    plugins: Iterable[plugins.Plugin] = (),
    channels: Sequence[Channel] = (),
    clock: Clock | None = None,
    keys: Keys | None = None,
) -> AsyncIterator[Gate]:
    """Open a project's gate. Without `config`, its toolgate.yaml counts, and only if this user trusts it.
    `root` may be what `prepare` made of it."""
    setup = root if isinstance(root, Setup) else prepare(Path(root), config, database)
    async with AsyncExitStack() as stack:
        with NoCollection():
            gate = await _assemble(setup, stack, tuple(tools), tuple(plugins), channels, clock, keys)
        yield gate


async def _assemble(
    setup: Setup, stack: AsyncExitStack, own: Sequence[Tool], more: Sequence[plugins.Plugin],
    channels: Sequence[Channel], clock: Clock | None, keys: Keys | None,
) -> Gate:  # fmt: skip
    known = frozenset(sys.modules)
    brought = _plugins(setup)
    if brought.features or setup.config.unread:
        read_again(setup, brought.features)
    backend = backend_of(setup)
    live = LivePolicy(setup.config, setup.source, setup.trusted, setup.root, _own_code(setup, backend))
    owners = _owners(setup, backend)
    ledger = Ledger(backend, keys or await keys_of(setup, backend), clock, live.windows)
    ledger.limits_effects = live.limits_effects
    if keys is None:  # what a program hands in is not looked for in a file
        ledger.reload_keys = lambda: keys_again(setup, backend)
    ledger.allowance = allowance_of(setup.config)
    vault = _vault(setup, backend)
    redactor = VaultRedactor(ledger.keys.derived("secret arguments"), vault)
    redactor.refresh()
    if setup.trusted and not isinstance(backend, MemoryBackend):
        stack.enter_context(log_to(setup.local / "log" / "toolgate.jsonl", redactor.redact))
    await owners.enter()
    stack.push_async_callback(owners.leave)
    await ledger.open()
    stack.push_async_callback(ledger.close)
    stack.push_async_callback(_see, setup, backend)
    consent = setup.config.consent
    desk = Desk(
        ledger,
        consent_settings(setup.config),
        channels,
        notifiers(consent.notify.webhook, consent.notify.desktop),
    )
    stack.push_async_callback(desk.close)
    services = Services(
        Registry(), live.current, ledger, desk, owners, redactor, _files(setup, stack, live, ledger, vault),
        Budget(setup.config.budget.tokens, setup.config.budget.bytes),
        Timeouts(setup.config.timeouts.default_s, setup.config.timeouts.max_s, setup.config.timeouts.tool),
        Cache(setup.config.cache.bytes),
        ContentScanner(vault),
        _places(setup),
    )  # fmt: skip
    live.ledger, live.services = ledger, services
    gate = Gate(setup.root, live, services, Pipeline(services), vault)
    stack.push_async_callback(services.unrecorded.close)
    stack.push_async_callback(gate.pipeline.refusals.close)
    _add_features(setup, stack, gate, live)
    _add_tools(
        services, [*own, *(tool for plugin in (*more, *brought.functions) for tool in plugin(services))]
    )
    if brought.any:
        live.shut(imported_from(Placing(mount_roots(setup.root, setup.config.mounts)), known))
    await reconcile_dead(services)
    await _remember_policy(services)
    return gate


async def _see(setup: Setup, backend: Backend) -> None:
    """How far this ledger went, for whoever asks later whether another was put in its place."""
    if not setup.trusted or isinstance(backend, MemoryBackend):
        return
    with suppress(CallError, OSError):  # it was taken away, or there is no room: nothing new is known
        head, ident = await backend.head(), trust.project_id(setup.root)
        known = records.seen(setup.root, setup.state_dir)
        if ident and (not known or (known["project"] == ident and known["seq"] < head.seq)):
            records.see(setup.root, setup.state_dir, ident, head)


def _vault(setup: Setup, backend: Backend) -> Vault | None:
    """A project's secrets; one that is recorded in memory only has none unless it had an id before."""
    if not setup.trusted:
        return None
    memory = isinstance(backend, MemoryBackend)
    ident = trust.project_id(setup.root) if memory else trust.make_project_id(setup.root)
    return Vault(setup.state_dir, ident) if ident else None


def _owners(setup: Setup, backend: Backend) -> Owners:
    made = getattr(backend, "owners", None)
    if made is not None:
        owners: Owners = made()
        return owners
    if isinstance(backend, SqliteBackend):
        return FileOwners(backend.path.parent / "owners")
    return SoleOwner()


def _files(
    setup: Setup, stack: AsyncExitStack, live: LivePolicy, ledger: Ledger, vault: Vault | None
) -> WorkspaceFiles | None:
    if not setup.trusted:
        return None
    roots = mount_roots(setup.root, setup.config.mounts)
    _check_roots(setup, roots)
    setup.local.mkdir(mode=0o700, exist_ok=True)
    for name in ("scratch",):
        if name in roots:
            roots[name].mkdir(parents=True, exist_ok=True)
    there = {name: path for name, path in roots.items() if path.is_dir()}
    watch = setup.config.cache.watch
    mounts = stack.enter_context(
        Mounts(
            there,
            rules=lambda: live.current().mounts,
            watch=watch,
            secrets=lambda: vault.finder if vault is not None else None,
            kinds={name: rules.kind for name, rules in live.current().mounts.items()},
        )
    )
    budget = setup.config.images
    images = Images(
        setup.local / "images", budget.total_bytes, budget.change_bytes, days=budget.keep_days,
        persona=budget.persona_bytes or budget.total_bytes // (len(setup.config.personas) + 1),
        refuse=budget.full == "refuse",
    )  # fmt: skip
    stack.callback(images.close)
    files = WorkspaceFiles(mounts, images, setup.local)
    files.needed = ledger.calls_needed
    return files


def _places(setup: Setup) -> dict[str, str]:
    """Where the mounts are, for whoever gives a whole path."""
    if not setup.trusted:
        return {}
    return {str((setup.root / mount.path).resolve()): name for name, mount in setup.config.mounts.items()}


def _check_roots(setup: Setup, roots: Mapping[str, Path]) -> None:
    """Where mounts really lead, links followed: to nothing of toolgate's own, and not to one another."""
    if setup.local.is_symlink():
        raise SetupError(f"{setup.local} is a link", "make it a directory; tools could reach where it leads")
    keys = setup.state_dir.resolve()
    scratch = setup.local / "scratch"
    for name, root in roots.items():
        usual = (
            name == "scratch"
            and Path(os.path.normpath(setup.root / setup.config.mounts[name].path)) == scratch
        )
        if usual and root != scratch:
            raise SetupError(f"{scratch} is a link", "make it a directory")
        if root.is_relative_to(setup.local) and not usual:
            raise SetupError(
                f"the mount {name} leads to toolgate's own files in {root}", "choose another path"
            )
        if root.is_relative_to(keys) or keys.is_relative_to(root):
            raise SetupError(
                f"the mount {name} is {root}, where tools could reach the keys in {keys}",
                "choose another path, or set TOOLGATE_STATE_DIR to a directory outside every mount",
            )
    _check_own(setup, roots)
    for inner, outer in permutations(roots, 2):
        if roots[inner].is_relative_to(roots[outer]):
            _check_nested(setup, roots, inner, outer)


def _check_own(setup: Setup, roots: Mapping[str, Path]) -> None:
    """toolgate's own files are where they seem to be, and a key is where no tool reads it."""
    placing = Placing(roots)
    for directory in (setup.local, setup.state_dir):
        for path in directory.iterdir() if directory.is_dir() else ():
            if path.is_symlink() and (names := placing.names(path.resolve())):
                raise SetupError(
                    f"{path} is a link to what tools can reach as {names[0]}",
                    "make it a file or directory of its own",
                )
    if setup.config.ledger.key_file:
        key = key_path(setup)
        rules = setup.config.policy(True).mounts
        for name in placing.names(key):
            if rules[name.mount].refuse(name, written=False) is None:
                raise SetupError(
                    f"ledger.key_file: {key} is what tools can reach as {name}",
                    "put the key into a place outside every mount",
                )


def _check_nested(setup: Setup, roots: Mapping[str, Path], inner: str, outer: str) -> None:
    """Policy shuts the inner directory to the outer mount by the words of their paths, so those must be true."""
    paths = [setup.config.mounts[name].path for name in (inner, outer)]
    if outer != "project" or roots[inner] == roots[outer]:
        raise SetupError(
            f"the mount {inner} is {roots[inner]}, which the mount {outer} has too",
            "choose directories apart from each other; only `project` may have other mounts in it",
        )
    plain = [Path(os.path.normpath(setup.root / path)) for path in paths]
    if plain != [roots[inner], roots[outer]] or len({Path(path).is_absolute() for path in paths}) > 1:
        raise SetupError(
            f"the mount {inner} leads into the project, to {roots[inner]}",
            f"write it as it is, without links: `path: {os.path.relpath(roots[inner], setup.root)}`",
        )


def _add_features(setup: Setup, stack: AsyncExitStack, gate: Gate, live: LivePolicy) -> None:
    """Names are known from now on; what they stand for is loaded when somebody needs it."""
    services = gate.services
    for feature in everything(setup.config.brought):
        context = FeatureContext(
            feature, gate, setup.local, stack, _tables(setup, feature, stack, services.ledger.backend),
            live.opened_with.kept.get(feature.name),
        )  # fmt: skip
        gate.features[feature.name] = context
        for family in feature.families:
            if services.files is not None or not family.needs_files:
                make = load(family.tools) if feature not in built_in() else None
                services.registry.declare(
                    family.names, family.aliases, partial(_tools_of, family.tools, context, make)
                )
        if feature.opens_early and setup.trusted and setup.config.says(feature):
            gate.feature(feature.name)


def _tools_of(
    place: str, context: FeatureContext, make: Callable[[FeatureContext], Iterable[Tool]] | None
) -> Iterable[Tool]:
    """A stranger's function is found before any tool runs: afterwards its file may be another."""
    return (make or load(place))(context)


def _tables(
    setup: Setup, feature: Feature, stack: AsyncExitStack, backend: Backend
) -> Callable[[], Awaitable[Tables]]:
    made: list[Tables] = []
    turn = asyncio.Lock()

    async def tables() -> Tables:
        async with turn:  # nobody gets them before they are up to date
            if not made:
                from toolgate.storage.tables import PostgresTables, SqliteTables

                dsn, memory = getattr(backend, "dsn", ""), isinstance(backend, MemoryBackend)
                file = None if memory else setup.local / "features.db"
                opened: Tables = PostgresTables(dsn) if dsn else SqliteTables(file)
                stack.push_async_callback(opened.close)
                await opened.migrate(feature.name, load(feature.tables) if feature.tables else ())
                made.append(opened)
            return made[0]

    return tables


def _add_tools(services: Services, tools: Iterable[Tool]) -> None:
    for tool in tools:
        services.registry.add(tool)
        tool.definition  # noqa: B018 - schemas are worked out late; what is wrong with a stranger's is said now


class Brought(NamedTuple):
    """What `plugins:` names."""

    features: tuple[Feature, ...] = ()
    functions: tuple[plugins.Plugin, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.features or self.functions)


def _plugins(setup: Setup) -> Brought:
    if not setup.trusted or not setup.config.plugins:
        return Brought()
    placing = Placing(mount_roots(setup.root, setup.config.mounts))
    found = [plugins.load(spec, setup.root, placing) for spec in setup.config.plugins]
    return Brought(
        tuple(one for one in found if isinstance(one, Feature)),
        tuple(one for one in found if not isinstance(one, Feature)),
    )


def _own_code(setup: Setup, backend: Backend) -> Callable[[Config], OwnCode] | None:
    if not setup.trusted:
        return None  # nothing of it is loaded or run
    database = backend.path if isinstance(backend, SqliteBackend) else None
    return lambda config: own_code(config, setup.root, setup.source, database, trust.environment())


async def _remember_policy(services: Services) -> None:
    """Which policy the journal saw last, so that only a change of it is recorded."""
    rows = await services.ledger.backend.rows(Filter(kinds=("configured",), newest_first=True, limit=1))
    if rows:
        await services.ledger.look(lambda state, now: state.apply_policy(rows[0]))


__all__ = [
    "Gate",
    "Setup",
    "key_path",
    "make_key",
    "open",
    "open_desk",
    "open_record",
    "prepare",
    "prepare_ledger",
]
