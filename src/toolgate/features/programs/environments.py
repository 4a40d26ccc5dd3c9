"""Environment of a project: its own Python packages and programs, found by what lies in it.

Only names and one small text are read here. Nothing of an environment is ever run outside the sandbox, because an agent
may have written it; nor does its word alone open a directory of this machine: what it says it was made from must be an
installation of Python, and no place where people or agents keep files.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from toolgate.core.errors import CallError, TooLarge
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules, is_blocked
from toolgate.sandbox.job import Environment
from toolgate.sandbox.program import commands

USUAL = (".venv", "venv", "env")
NODE = "node_modules"
CONFIG = "pyvenv.cfg"
MAX_CONFIG = 64 << 10
_VERSION = re.compile(r"3\.\d{1,2}")
_MAY_HOLD_TOKENS = frozenset({"pip.conf", "pip.ini", ".condarc", ".yarnrc", ".yarnrc.yml"})
_RUNS = frozenset({"bin", "lib", "lib64", CONFIG})
_LIBRARY = re.compile(r"python3\.\d{1,2}t?")
MAX_SHUT = 2000
"""Names that are covered one by one."""
MAX_NAMES = 400_000
"""Names that are judged. An environment with more is not shown: what is not judged may be anything."""
_SOURCE = (".py", ".pyi", ".pyc", ".so", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx")
_PUBLIC = frozenset({"cacert.pem", "roots.pem"})
"""Certificates that packages bring with them: without them no connection can be checked."""
_WORDS = frozenset({"secret", "secrets", "password", "passwords", "credentials"})
"""Blocked, and common as names of packages: of such a directory the source code is shown."""
_SETTLED_NS = 2_000_000_000
"""Older changes of a directory have a time that no later one can have."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Setting = str | bool | None
"""A directory of the project; None where it is to be looked for, False where none is wanted."""


@dataclass(frozen=True, slots=True)
class FoundEnvironment:
    environment: Environment | None
    problems: tuple[str, ...] = ()
    """Why something that is there, or was named, is not used."""


def find(
    root: Path, rules: MountRules, python: Setting = None, node: Setting = None, others: Sequence[Path] = ()
) -> FoundEnvironment:
    """`others` are directories that hold files of people or agents, as the project does."""
    problems: list[str] = []
    name, version, base = _python(root, rules, python, (root, *others), problems)
    modules = _node(root, rules, node, problems)
    if not name and not modules:
        return FoundEnvironment(None, tuple(problems))
    try:
        shut = [
            *(_shut(root, name, True, rules) if name else ()),
            *(_shut(root, modules, False, rules) if modules else ()),
        ]
    except TooLarge as error:
        return FoundEnvironment(None, (*problems, error.message))
    if len(shut) > MAX_SHUT:
        return FoundEnvironment(
            None, (*problems, f"more than {MAX_SHUT} names of {name or modules} are to be hidden")
        )
    shut = list(dict.fromkeys(shut))
    return FoundEnvironment(Environment(name, version, base, modules, tuple(shut)), tuple(problems))


def _python(
    root: Path, rules: MountRules, wanted: Setting, held: Sequence[Path], problems: list[str]
) -> tuple[str, str, str]:
    for name in _candidates(rules, wanted, USUAL):
        text = _config(root, name)
        if text is None:
            if wanted:
                problems.append(f"{name} is no virtual environment of the project: it has no {CONFIG}")
            continue
        version = _version(root, name, text)
        base = _base(root / name, version, text)
        if base is None:
            problems.append(f"{name} does not say which Python it was made from: make it anew")
        elif _home().is_relative_to(base) or any(_overlap(base, each) for each in held):
            problems.append(f"{name} says that it was made from {base}, where other files are kept too")
        else:
            known = any(base.is_relative_to(each) for each in commands())
            return name, version, "" if known else str(base)
    return "", "", ""


def _node(root: Path, rules: MountRules, wanted: Setting, problems: list[str]) -> str:
    for name in _candidates(rules, wanted, (NODE,)):
        if _is_directory(root, name):
            return name
        if wanted:
            problems.append(f"{name} is no directory of the project")
    return ""


def _candidates(rules: MountRules, wanted: Setting, usual: Sequence[str]) -> Iterator[str]:
    """What the owner names; else the usual places, unless the owner hides them."""
    if isinstance(wanted, str):
        yield wanted
    elif wanted is not False:
        for name in usual:
            if not any(glob.catches(MountPath(f"project:{name}")) for glob in rules.hidden):
                yield name


def _opened(root: Path, name: str) -> int:
    """By its own names: no link on the way is followed. OSError where it is no directory."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in name.split("/"):
        try:
            inner = os.open(part, _DIRECTORY, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _is_directory(root: Path, name: str) -> bool:
    try:
        os.close(_opened(root, name))
    except OSError:
        return False
    return True


def _config(root: Path, name: str) -> str | None:
    try:
        directory = _opened(root, name)
    except OSError:
        return None
    try:
        with os.fdopen(os.open(CONFIG, _FILE, dir_fd=directory), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            return stream.read(MAX_CONFIG).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(directory)


def _setting(text: str, *names: str) -> str:
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark and name.strip().lower() in names:
            return value.strip()
    return ""


def _version(root: Path, name: str, text: str) -> str:
    said = _VERSION.match(_setting(text, "version", "version_info"))
    if said is not None:
        return said.group()
    found = sorted((root / name / "lib").glob("python3.*"))
    return found[-1].name.removeprefix("python") if found else ""


def _base(place: Path, version: str, text: str) -> Path | None:
    """The installation that an environment's interpreter is of, by the links on this machine."""
    home = _setting(text, "home")
    inside = os.path.realpath(place)
    for program in (place / "bin" / "python", Path(home, f"python{version}"), Path(home, "python3")):
        real = Path(os.path.realpath(program))
        if real.is_relative_to(inside) or not real.is_absolute() or not real.is_file():
            continue
        prefix = real.parent.parent
        if version and len(prefix.parts) > 1 and (prefix / f"lib/python{version}/os.py").is_file():
            return prefix
    return None


def _overlap(base: Path, held: Path) -> bool:
    real = Path(os.path.realpath(held))
    return real.is_relative_to(base) or base.is_relative_to(real)


def _home() -> Path:
    """An installation may be in it, and is not above it."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/")


def _shut(root: Path, name: str, is_python: bool, rules: MountRules) -> Iterator[str]:
    """What is not shown of it. A directory with a `pyvenv.cfg` may hold anything: only what an environment needs to run is
    seen, where installers put it; no blocked name, however deep; and nothing that the owner hides."""
    known: set[str] = set()
    if is_python:
        known.update(_names(root, name, lambda entry: entry not in _RUNS))
        for library in ("lib", "lib64"):
            known.update(_names(root, f"{name}/{library}", lambda entry: not _LIBRARY.fullmatch(entry)))
        yield from known
    yield from _blocked(root, name, known, rules)
    if rules.hidden:
        yield from _hidden(root, name, rules)


class _Listed(NamedTuple):
    stamp: tuple[int, ...]
    shut: tuple[str, ...]
    entered: tuple[tuple[str, bool], ...]
    """Directories, and whether only source code is shown of each."""
    names: int


_LISTED: dict[tuple[str, bool], _Listed] = {}
"""By directory, for a walk comes before each program and environments change seldom."""


def _blocked(root: Path, name: str, known: set[str], rules: MountRules) -> Iterator[str]:
    """Blocked names, and files that may hold tokens, at any depth; what the owner unblocks is shown."""
    left, waiting = MAX_NAMES, [(name, False)]
    while waiting:
        directory, only_source = waiting.pop()
        try:
            listed = _listed(f"{root}/{directory}", only_source)
        except OSError:  # its names cannot be judged
            yield directory
            continue
        left -= listed.names
        if left < 0:
            raise TooLarge(
                f"{name} holds more than {MAX_NAMES:,} names, too many to look for secrets in it",
                "name a smaller environment in `sandbox` of toolgate.yaml",
            )
        for entry in listed.shut:
            path = f"{directory}/{entry}"
            if path in known or not rules.unblocked(path.split("/")):
                if path not in known:
                    yield path
            elif os.path.isdir(root / path):
                waiting.append((path, only_source))
        waiting += [
            (path, source)
            for entry, source in listed.entered
            if (path := f"{directory}/{entry}") not in known
        ]


def _listed(directory: str, only_source: bool) -> _Listed:
    status = os.lstat(directory)
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    found = _LISTED.get((directory, only_source))
    if found is not None and found.stamp == stamp:
        return found
    shut, entered, count, now = [], [], 0, time.time_ns()
    with os.scandir(directory) as entries:
        for entry in entries:
            count += 1
            inner = entry.is_dir(follow_symlinks=False)
            is_word = inner and entry.name.lower() in _WORDS
            if entry.is_symlink():
                continue
            if not is_word and (
                _may_hold(entry.name) or (only_source and not inner and not _is_source(entry.name))
            ):
                shut.append(entry.name)
            elif inner:
                entered.append((entry.name, only_source or is_word))
    found = _Listed(stamp, tuple(shut), tuple(entered), count)
    if now - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
        if len(_LISTED) > MAX_NAMES // 4:
            _LISTED.clear()
        _LISTED[directory, only_source] = found
    return found


def _is_source(name: str) -> bool:
    return name.endswith(_SOURCE) and not name.startswith(".")


def _may_hold(name: str) -> bool:
    """Source code is shown whatever words its name has: packages are full of `private_key.py`."""
    if _is_source(name) or name in _PUBLIC:
        return False
    return name in _MAY_HOLD_TOKENS or is_blocked(name)


def _names(root: Path, directory: str, unwanted: Callable[[str], bool]) -> Iterator[str]:
    try:
        handle = _opened(root, directory)
    except OSError:
        return
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                if unwanted(entry.name) and not entry.is_symlink():
                    yield f"{directory}/{entry.name}"
    finally:
        os.close(handle)


def _hidden(root: Path, name: str, rules: MountRules) -> Iterator[str]:
    """By the owner's own patterns, which are about names at any depth."""
    for above, directories, files in os.walk(root / name):
        relative = os.path.relpath(above, root)
        for each in (*directories, *files):
            path = f"{relative}/{each}"
            if any(glob.catches(MountPath(f"project:{path}")) for glob in rules.hidden):
                if not os.path.islink(root / path):
                    yield path
                if each in directories:
                    directories.remove(each)


def check_name(name: str) -> str:
    """Of a directory below the project's root, plainly written."""
    try:
        path = MountPath.parse(f"project:{name}")
    except CallError as error:
        raise ValueError(error.message) from None
    if path.relative != name or name == ".":
        raise ValueError(f"{name!r} is no directory below the project")
    return name
