"""What a project is opened with, decided before anything of it is opened; and its ledger alone, without a gate.

Whoever wants to look, or to stop everything, needs the database and the key. That must not depend on the policy, on
plugins or on mounts: a mistake in one of them would take the brakes away.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgate.consent.desk import Desk
from toolgate.core.errors import ConfigError, LedgerBroken, SetupError
from toolgate.feature import Feature
from toolgate.ledger import keys as keyfile
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger
from toolgate.project import config as configuration
from toolgate.project import trust
from toolgate.project.config import Config
from toolgate.project.live import consent_settings
from toolgate.project.own_files import WritableConfig
from toolgate.project.record import Record
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Backend, Head, Job, Transaction
from toolgate.storage.sqlite import SqliteBackend

STATE, LEDGER = ".toolgate", "ledger.db"


@dataclass
class Setup:
    """What has been decided about a project before anything of it is opened."""

    root: Path
    source: Path | None
    """The file the policy is read from, and read again when it changes."""
    config: Config
    trusted: bool
    database: str | Backend | None
    state_dir: Path
    given: Mapping[str, Any] | None = None
    """The configuration, where a program handed it in."""
    problem: ConfigError | None = None
    """Why only the ledger can be opened: of a broken file nothing else is believed."""

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
    root = root.resolve()
    state_dir = configuration.state_dir()
    source: Path | None = None
    if config is None:
        source = root / configuration.FILE
        trusted = trust.is_trusted(root, state_dir)
        loaded = configuration.load(root) if source.exists() else Config.from_dict({"version": 1})
    else:
        trusted = True  # the program that opens the gate vouches for what it hands in
        if isinstance(config, str | Path):
            source = Path(config)
            if not source.exists():
                raise SetupError(f"there is no configuration file {source}", "check the path")
            loaded = configuration.load_from(source.absolute(), root)
        else:
            loaded = config if isinstance(config, Config) else Config.from_dict(config)
    given = config if isinstance(config, Mapping) else None
    return Setup(root, source, loaded, trusted, database or loaded.ledger.database, state_dir, given)


def read_again(setup: Setup, features: tuple[Feature, ...]) -> None:
    """With the features that the project brings, which know sections that nobody else does."""
    if setup.source is not None and setup.source.exists():
        setup.config = configuration.load_from(setup.source.absolute(), setup.root, None, features)
    elif setup.given is not None:
        setup.config = Config.from_dict(setup.given, features)


def prepare_ledger(root: Path) -> Setup:
    """As `prepare`, for whoever needs the ledger and not the policy: a broken toolgate.yaml is a `problem` then.

    Where nothing says which ledger is meant, only one that is there already can be: a new one is nobody's.
    """
    try:
        setup = prepare(root)
        if setup.trusted and not setup.written and not (setup.local / LEDGER).exists():
            raise SetupError(
                f"there is no {configuration.FILE} in {setup.root}; and there is no ledger in {setup.local} that it could mean",
                "restore the file, or run `toolgate init`",
            )
        return setup
    except WritableConfig:
        raise  # a tool may have written which ledger it means
    except ConfigError as problem:
        root, state_dir = root.resolve(), configuration.state_dir()
        if not trust.is_trusted(root, state_dir):
            raise
        source = root / configuration.FILE
        config = configuration.ledger_of(source, problem)
        setup = Setup(root, source, config, True, config.ledger.database, state_dir, None, problem)
        if setup.database is None and not (setup.local / LEDGER).exists():
            raise ConfigError(
                f"{problem.message}; and there is no ledger in {setup.local} that it could mean", problem.fix
            ) from None
        return setup


@asynccontextmanager
async def open_desk(setup: Setup) -> AsyncIterator[Desk]:
    """Open a trusted project's ledger to answer, revoke, pause and resume. Nothing is called, settled or loaded."""
    backend = backend_of(setup)
    ledger = Ledger(backend, await keys_of(setup, backend))
    ledger.reload_keys = lambda: keys_again(setup, backend)
    await ledger.open()
    try:
        yield Desk(ledger, consent_settings(setup.config))
    finally:
        await ledger.close()


@asynccontextmanager
async def open_record(setup: Setup) -> AsyncIterator[Record]:
    """Open a trusted project's ledger for reading and checking only, even where no gate would open on it."""
    backend = backend_of(setup)
    if isinstance(backend, SqliteBackend) and not backend.path.exists():
        backend = MemoryBackend()  # nothing has been recorded yet; looking must not create it
    keys, problem = _keys_if_any(setup, backend)
    await backend.open(_refuse_to_write)
    try:
        yield Record(backend, keys, problem, trust.project_id(setup.root), root=setup.root)
    finally:
        await backend.close()


def _refuse_to_write(jobs: Sequence[Job], head: Head) -> Transaction:
    raise LedgerBroken("the record was opened for reading only", "open a gate to write")


def _keys_if_any(setup: Setup, backend: Backend) -> tuple[Keys | None, LedgerBroken | None]:
    try:
        return (Keys.new() if isinstance(backend, MemoryBackend) else keyfile.load(key_path(setup))), None
    except LedgerBroken as error:
        return None, error


def backend_of(setup: Setup) -> Backend:
    database = setup.database
    if not setup.trusted or database == "memory":
        return MemoryBackend()  # nothing in an untrusted project is opened, not even its database
    if database is None:
        return SqliteBackend(setup.local / LEDGER)
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


def key_path(setup: Setup) -> Path:
    if setup.config.ledger.key_file:
        return _key_file(setup.root, setup.config.ledger.key_file)
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
    if isinstance(backend, MemoryBackend):
        backend.keys = backend.keys or Keys.new()
        kept: Keys = backend.keys
        return kept
    path = key_path(setup)
    new = not path.exists() and not setup.problem and not await backend.begun()
    return keyfile.load_or_create(path) if new else keyfile.load(path)


async def make_key(setup: Setup) -> None:
    """With a new project, before it is opened for the first time."""
    await keys_of(setup, backend_of(setup))


def keys_again(setup: Setup, backend: Backend) -> Keys:
    """Of a ledger that is open, where another process has rotated the key."""
    return backend.keys if isinstance(backend, MemoryBackend) else keyfile.load(key_path(setup))
