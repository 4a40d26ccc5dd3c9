"""What a project is opened with, decided before anything of it is opened; and its ledger alone, without a gate.

Whoever wants to look, or to stop everything, needs the database and the key. That must not depend on the policy, on
plugins or on mounts: a mistake in one of them would take the brakes away. Nor does it wait for them: what reads the
configuration in full is imported where that is needed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

from toolgate.core.errors import ConfigError, LedgerBroken, SetupError
from toolgate.core.loops import has_loop, need_loop
from toolgate.core.records import dataclass
from toolgate.ledger import keys as keyfile
from toolgate.ledger.keys import Keys
from toolgate.project import checked, trust
from toolgate.project.checked import Checked, WritableConfig
from toolgate.project.trust import FILE, STATE
from toolgate.storage.sqlite import SqliteBackend

if TYPE_CHECKING:
    from toolgate.consent.desk import Desk
    from toolgate.feature import Feature
    from toolgate.project.config import Config
    from toolgate.project.record import Record
    from toolgate.storage.memory import MemoryBackend
    from toolgate.storage.port import Backend, Head, Submission, Transaction

LEDGER = "ledger.db"
T = TypeVar("T")


@dataclass
class Setup:
    """What has been decided about a project before anything of it is opened."""

    root: Path
    source: Path | None
    """The file the policy is read from, and read again when it changes."""
    says: Checked
    """What the configuration says about the ledger."""
    trusted: bool
    database: str | Backend | None
    state_dir: Path
    given: Mapping[str, Any] | None = None
    """The configuration, where a program handed it in."""
    problem: ConfigError | None = None
    """Why only the ledger can be opened: of a broken file nothing else is believed."""
    read: Config | None = None
    """The whole configuration, where it was needed."""

    @property
    def config(self) -> Config:
        """All of the configuration, read when it is first asked for."""
        if self.read is None:
            from toolgate.project import config as configuration

            self.read = configuration.load(self.root)
        return self.read

    @property
    def written(self) -> bool:
        """Whether there is a file, or a program, that says what the project is like."""
        return self.source is None or self.source.exists()

    @property
    def local(self) -> Path:
        return self.root / STATE

    @property
    def place(self) -> str:
        """Where the ledger is, as a message may say it: never with a password."""
        if not isinstance(self.database, str):
            return str(self.local / LEDGER)
        from toolgate.storage.postgres_connect import place_of

        return f"the {place_of(self.database)}"


def prepare(
    root: Path,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    database: str | Backend | None = None,
) -> Setup:
    from toolgate.project import known_config

    root = root.resolve()
    state_dir = trust.state_dir()
    source: Path | None = None
    if config is None:
        source = root / FILE
        trusted = trust.is_trusted(root, state_dir)
        loaded = (known_config.read(root, state_dir) if trusted else None) or _read(source, trusted)
    else:
        from toolgate.project import config as configuration

        trusted = True  # the program that opens the gate vouches for what it hands in
        if isinstance(config, str | Path):
            source = Path(config)
            if not source.exists():
                raise SetupError(f"there is no configuration file {source}", "check the path")
            loaded = configuration.load_from(source.absolute(), root)
        else:
            made = isinstance(config, configuration.Config | known_config.KnownConfig)
            loaded = cast("Config", config) if made else configuration.Config.from_dict(cast(Any, config))
    given = config if isinstance(config, Mapping) else None
    says = checked.of(loaded)
    return Setup(root, source, says, trusted, database or says.database, state_dir, given, read=loaded)


def _read(source: Path, trusted: bool) -> Config:
    """What the project's file says, in full."""
    from toolgate.project import config as configuration

    if not source.exists():
        return configuration.Config.from_dict({"version": 1})
    if trusted:
        return configuration.load_and_keep(source.parent, trust.state_dir())
    return configuration.load(source.parent)


def read_again(setup: Setup, features: tuple[Feature, ...]) -> None:
    """With the features that the project brings, which know sections that nobody else does."""
    from toolgate.project import config as configuration

    if setup.source is not None and setup.source.exists():
        setup.read = configuration.load_from(setup.source.absolute(), setup.root, None, features)
    elif setup.given is not None:
        setup.read = configuration.Config.from_dict(setup.given, features)


def prepare_ledger(root: Path) -> Setup:
    """As `prepare`, for whoever needs the ledger and not the policy: a broken toolgate.yaml is a `problem` then.

    Where nothing says which ledger is meant, only one that is there already can be: a new one is nobody's.
    """
    found = _prepared_before(root.resolve())
    if found is not None:
        return found
    try:
        setup = prepare(root)
        if setup.trusted and not setup.written and not (setup.local / LEDGER).exists():
            raise SetupError(
                f"there is no {FILE} in {setup.root}; and there is no ledger in {setup.local} that it could mean",
                "restore the file, or run `toolgate init`",
            )
        return setup
    except WritableConfig:
        raise  # a tool may have written which ledger it means
    except ConfigError as problem:
        from toolgate.project import config as configuration

        root, state_dir = root.resolve(), trust.state_dir()
        if not trust.is_trusted(root, state_dir):
            raise
        source = root / FILE
        config = configuration.ledger_of(source, problem)
        says = checked.of(config)
        setup = Setup(root, source, says, True, says.database, state_dir, None, problem, config)
        if setup.database is None and not (setup.local / LEDGER).exists():
            raise ConfigError(
                f"{problem.message}; and there is no ledger in {setup.local} that it could mean", problem.fix
            ) from None
        return setup


def _prepared_before(root: Path) -> Setup | None:
    """Without reading the file in full, where that was done with these very bytes."""
    state_dir = trust.state_dir()
    if not trust.is_trusted(root, state_dir):
        return None
    says = checked.known(root, state_dir)
    return Setup(root, root / FILE, says, True, says.database, state_dir) if says is not None else None


@asynccontextmanager
async def open_desk(setup: Setup) -> AsyncIterator[Desk]:
    """Open a trusted project's ledger to answer, revoke, pause and resume. Nothing is called, settled or loaded."""
    from toolgate.consent.desk import Desk, Settings
    from toolgate.ledger.ledger import Ledger

    backend = await _ledger_backend(setup)
    ledger = Ledger(backend, await keys_of(setup, backend))
    ledger.reload_keys = lambda: keys_again(setup, backend)
    await ledger.open()
    try:
        yield Desk(ledger, Settings(setup.says.expires_s, setup.says.max_open, setup.says.unattended))
    finally:
        await ledger.close()


@asynccontextmanager
async def open_record(setup: Setup) -> AsyncIterator[Record]:
    """Open a trusted project's ledger for reading and checking only, even where no gate would open on it."""
    from toolgate.project.record import Record

    backend = await _ledger_backend(setup)
    if isinstance(backend, SqliteBackend) and not backend.path.exists():
        backend = _memory()  # nothing has been recorded yet; looking must not create it
    keys, problem = _keys_if_any(setup, backend)
    await backend.open(_refuse_to_write)
    try:
        yield Record(backend, keys, problem, trust.project_id(setup.root), root=setup.root)
    finally:
        await backend.close()


def _refuse_to_write(jobs: Sequence[Submission], head: Head) -> Transaction:
    raise LedgerBroken("the record was opened for reading only", "open a gate to write")


def _keys_if_any(setup: Setup, backend: Backend) -> tuple[Keys | None, LedgerBroken | None]:
    try:
        return (Keys.new() if _in_memory(backend) else keyfile.load(key_path(setup))), None
    except LedgerBroken as error:
        return None, error


async def _ledger_backend(setup: Setup) -> Backend:
    if setup.database is not None:
        await need_loop()  # a server or a program's own; a file is read and written at once
    return backend_of(setup)


def backend_of(setup: Setup) -> Backend:
    database = setup.database
    if not setup.trusted or database == "memory":
        return _memory()  # nothing in an untrusted project is opened, not even its database
    if database is None:
        if has_loop():
            return SqliteBackend(setup.local / LEDGER)
        from toolgate.storage.sqlite_direct import SqliteDirect

        return SqliteDirect(setup.local / LEDGER)
    if not isinstance(database, str):
        return database
    if database.startswith(("postgres://", "postgresql://")):
        from toolgate.storage.postgres import PostgresBackend

        return PostgresBackend(database)
    if "://" in database:
        raise SetupError(
            f"{database.partition('://')[0]!r} is not a database that toolgate speaks",
            "give postgresql://…, the path of a SQLite file, or nothing for the project's own",
        )
    return SqliteBackend(setup.root / Path(database).expanduser())


def _memory() -> Backend:
    from toolgate.storage.memory import MemoryBackend

    return MemoryBackend()


def _in_memory(backend: Backend) -> TypeGuard[MemoryBackend]:
    return backend.name == "memory"


def key_path(setup: Setup) -> Path:
    if setup.says.key_file:
        return _key_file(setup.root, setup.says.key_file)
    ident = trust.make_project_id(setup.root)
    return setup.state_dir / "keys" / f"{ident}.json"


def _key_file(root: Path, written: str) -> Path:
    try:
        path = root / Path(written).expanduser()
    except RuntimeError:  # `~somebody` who does not exist
        raise SetupError(f"ledger.key_file: {written!r} has no home", "write an absolute path") from None
    real = path.resolve()
    plain = Path(os.path.normpath(root / written))
    if real.is_relative_to(root) and (real != plain or Path(written).is_absolute()):
        # policy shuts the file by the words of the configuration, so they must be where it is
        raise SetupError(
            f"ledger.key_file: {written!r} leads into the project",
            f"write `key_file: {real.relative_to(root)}`, or better a place outside the project",
        )
    return path


async def keys_of(setup: Setup, backend: Backend) -> Keys:
    """Made where nothing is recorded yet. Elsewhere a new key would fit no row, and only hide that the right one is
    missing."""
    if _in_memory(backend):
        backend.keys = backend.keys or Keys.new()
        kept: Keys = backend.keys
        return kept
    path = key_path(setup)
    new = not path.exists() and not setup.problem and not await backend.begun()
    return keyfile.load_or_create(path) if new else keyfile.load(path)


async def make_key(setup: Setup) -> None:
    """With a new project, before it is opened for the first time."""
    await keys_of(setup, await _ledger_backend(setup))


def keys_again(setup: Setup, backend: Backend) -> Keys:
    """Of a ledger that is open, where another process has rotated the key."""
    return backend.keys if _in_memory(backend) else keyfile.load(key_path(setup))
