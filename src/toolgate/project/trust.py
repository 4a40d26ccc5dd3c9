"""Which projects this user vouches for, recorded outside the projects themselves.

A trusted project has a random id in `.toolgate/`; the user's state directory remembers path and id together, so
neither a copied id nor another project put at the same path is trusted.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path

from toolgate.core.errors import ConfigError, SetupError
from toolgate.storage import durable

FILE, STATE = "toolgate.yaml", ".toolgate"
ID_FILE = "project"


def state_dir() -> Path:
    """Where this user's keys and trust live, outside every project."""
    for variable, below in (("TOOLGATE_STATE_DIR", ""), ("XDG_STATE_HOME", "toolgate")):
        value = os.environ.get(variable, "")
        if value and Path(value).is_absolute():
            return Path(value) / below
        if value and variable.startswith("TOOLGATE"):
            raise ConfigError(f"{variable}={value!r} is not an absolute path", "set it to an absolute path")
    return Path.home() / ".local" / "state" / "toolgate"


def environment() -> dict[str, str]:
    """What `${env:NAME}` in toolgate.yaml may refer to."""
    return dict(os.environ)


def project_id(root: Path) -> str:
    text = _read_id(root / ".toolgate").decode("ascii", "replace").strip()
    return text if text.isalnum() and len(text) == 32 else ""


def _read_id(directory: Path) -> bytes:
    """What the id file holds. The project may be a stranger's: no link is followed, no pipe or device waited for."""
    if directory.is_symlink():
        raise SetupError(f"{directory} is a symbolic link", "remove it: state must live inside the project")
    try:
        inside = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        handle = os.open(ID_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket or a device without a driver
            raise _not_a_file(directory) from None
        raise
    finally:
        os.close(inside)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _not_a_file(directory)
        return os.read(handle, 64)
    finally:
        os.close(handle)


def _not_a_file(directory: Path) -> SetupError:
    return SetupError(f"{directory / ID_FILE} is not a regular file", "remove it; toolgate makes its own")


def make_project_id(root: Path) -> str:
    """Of two processes that make it at once, one wins and both use its id: the key is found by it."""
    found = project_id(root)
    if found:
        return found
    directory = root / ".toolgate"
    directory.mkdir(mode=0o700, exist_ok=True)
    ident = os.urandom(16).hex()
    with suppress(FileExistsError), (directory / ".gitignore").open("x") as ignore:
        ignore.write("*\n")  # nothing in here belongs into a commit
    text = f"{ident}\n".encode()
    durable.create(directory / ID_FILE, text)
    if not project_id(root):  # a damaged one was there
        durable.replace(directory / ID_FILE, text)
    return project_id(root)


def is_trusted(root: Path, state_dir: Path) -> bool:
    ident = project_id(root)
    return bool(ident) and _known(state_dir).get(str(root.resolve())) == ident


def trust(root: Path, state_dir: Path) -> str:
    """A project that was moved keeps its id; a copy is refused, as two ledgers must not share one key."""
    ident = make_project_id(root)
    here, known = str(root.resolve()), _known(state_dir)
    for other in [path for path, its in known.items() if its == ident and path != here]:
        if project_id(Path(other)) == ident:
            raise SetupError(
                f"{here} is a copy of {other}, which is still there",
                f"remove {root / '.toolgate'} to give it a ledger of its own",
            )
        del known[other]
    _save(state_dir, known | {here: ident})
    return ident


def distrust(root: Path, state_dir: Path) -> bool:
    known = _known(state_dir)
    found = known.pop(str(root.resolve()), None)
    if found is not None:
        _save(state_dir, known)
    return found is not None


def _known(state_dir: Path) -> dict[str, str]:
    try:
        data = json.loads((state_dir / "trust.json").read_text())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise SetupError(
            f"{state_dir / 'trust.json'} cannot be read: {error}", "repair or remove it"
        ) from None
    return {str(root): str(ident) for root, ident in data.items()} if isinstance(data, dict) else {}


def _save(state_dir: Path, known: dict[str, str]) -> None:
    durable.replace(state_dir / "trust.json", (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())
