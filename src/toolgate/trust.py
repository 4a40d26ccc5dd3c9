"""Which projects this user vouches for, recorded outside the projects themselves.

A trusted project has a random id in `.toolgate/`; the user's state directory remembers path and id together, so
neither a copied id nor another project put at the same path is trusted.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from toolgate.core.errors import SetupError

ID_FILE = "project"


def project_id(root: Path) -> str:
    try:
        text = (root / ".toolgate" / ID_FILE).read_text().strip()
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return ""
    return text if text.isalnum() and len(text) == 32 else ""


def make_project_id(root: Path) -> str:
    found = project_id(root)
    if found:
        return found
    directory = root / ".toolgate"
    if directory.is_symlink():
        raise SetupError(f"{directory} is a symbolic link", "remove it: state must live inside the project")
    directory.mkdir(mode=0o700, exist_ok=True)
    ident = secrets.token_hex(16)
    _replace(directory / ID_FILE, ident + "\n")
    return ident


def is_trusted(root: Path, state_dir: Path) -> bool:
    ident = project_id(root)
    return bool(ident) and _known(state_dir).get(str(root.resolve())) == ident


def trust(root: Path, state_dir: Path) -> str:
    ident = make_project_id(root)
    known = _known(state_dir) | {str(root.resolve()): ident}
    _save(state_dir, known)
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
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(state_dir / "trust.json", json.dumps(known, indent=1, sort_keys=True) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
