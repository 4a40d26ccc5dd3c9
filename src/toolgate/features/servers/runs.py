"""Which files a server is started from, as far as its entry in toolgate.yaml tells: nothing is run to find out.

Whatever an argument or a variable names counts, and what the languages and launchers that we know load from beside it. What a
program opens by itself is not known here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolgate.core.errors import Unavailable
from toolgate.features.servers.config import ServerSpec, Sources, filled
from toolgate.features.servers.linked import beginning, editable, scripts_in
from toolgate.features.servers.transport import INHERITED
from toolgate.policy.held import FAMILIES, NODE, PYTHON, SHELL, family_of

_PYTHON = re.compile(r"(python|pypy)[\d.]*(w|t)?(\.exe)?")
_NODE = frozenset(
    {"node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "tsx", "ts-node", "deno"}
)
_SERVING = frozenset(
    {"uvicorn", "gunicorn", "hypercorn", "granian", "daphne", "waitress-serve", "flask", "fastapi", "celery"}
)
"""Programs in Python that import what they are told, as `module:name`, from the directory that they are started in."""
_SPLIT = re.compile(r"[\s;&|<>()'\"`,]+")
_DATA = (
    ".db", ".sqlite", ".sqlite3", ".duckdb", ".log", ".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".pid", ".sock",
)  # fmt: skip
"""Endings of what a program writes by itself: held like the rest, but not pinned."""
_SETTINGS = (".npmrc", "bunfig.toml", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs")
"""Of Node's launchers: they name registries, hooks and options such as `node-options=--require ./x.js`."""
_MANIFESTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        ("package.json", "pnpm-workspace.yaml", ".pnp.cjs", ".pnp.loader.mjs", *_SETTINGS),
    ),
    **dict.fromkeys(("npx", "pnpx", "bunx"), _SETTINGS),
    **dict.fromkeys(("tsx", "ts-node"), ("tsconfig.json",)),
    "deno": ("deno.json", "deno.jsonc", "deno.lock", "import_map.json", "package.json", ".npmrc"),
    **dict.fromkeys(
        ("uv", "poetry", "pdm", "hatch", "rye", "pixi", "pipenv"),
        ("pyproject.toml", "uv.toml", "uv.lock", "poetry.lock", "Pipfile", "poetry.toml", "pdm.toml", "hatch.toml", "pixi.toml",
         ".python-version", "setup.py", "setup.cfg"),
    ),
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    "just": ("justfile", ".justfile", "Justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "cargo": ("Cargo.toml", "Cargo.lock", "build.rs", "src", ".cargo", "rust-toolchain", "rust-toolchain.toml"),
    **dict.fromkeys(("honcho", "foreman", "overmind", "hivemind"), ("Procfile", ".env")),
    **dict.fromkeys(("dotenv", "dotenvx"), (".env",)),
    "nodemon": ("nodemon.json",),
    "php": ("php.ini",),
    "go": ("go.mod", "go.sum", "go.work", "vendor"),
    **dict.fromkeys(
        ("docker", "podman", "docker-compose"),
        ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "compose.override.yaml", "compose.override.yml",
         "docker-compose.override.yaml", "docker-compose.override.yml", "Dockerfile", ".env"),
    ),
    **dict.fromkeys(("bundle", "rake"), ("Gemfile", "Gemfile.lock", "Rakefile", ".bundle")),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts", "settings.gradle",
        "settings.gradle.kts", "gradle.properties", "gradle", "buildSrc")),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml", ".mvn")),
    "direnv": (".envrc",),
    **dict.fromkeys(("mise", "asdf", "rtx"), ("mise.toml", ".mise.toml", ".tool-versions")),
    **dict.fromkeys(("nix", "nix-shell", "nix-build"), ("flake.nix", "flake.lock", "shell.nix", "default.nix")),
    **dict.fromkeys(("nox", "tox"), ("noxfile.py", "tox.ini", "setup.cfg", "pyproject.toml")),
}  # fmt: skip
"""What launchers read in the directory that they are started in."""
_BUILDS = {
    "go": "x.go",
    "cargo": "x.rs",
    "mix": "x.ex",
    "elixir": "x.ex",
    "swift": "x.swift",
    "dotnet": "x.cs",
}
"""Launchers that compile what is there, and a name of the language."""
CODE_FILES = tuple(sorted({ending for family in FAMILIES for ending in family}))
_MOST_SCRIPTS = 50
_WORDS = frozenset({"run", "exec", "x", "dlx", "start", "tool", "compose", "up", "test", "script"})
_TAKES = frozenset(
    [
        "--directory", "--project", "--prefix", "--cwd", "--dir", "--from", "--package", "--with", "--with-editable", "--require",
        "--import", "--loader", "--experimental-loader", "--file", "--manifest-path", "--script", "--env-file", "--config",
        "--tsconfig", "-C", "-p", "-r", "-f",
    ]
)  # fmt: skip
"""Options of launchers whose value is what is run, or where."""
_CODE = re.compile(
    r"PATH|PYTHON(PATH|HOME|STARTUP|USERBASE)|NODE_(PATH|OPTIONS)|(DY)?LD_.*|RUBY(LIB|OPT)|PERL5?(LIB|OPT)|BASH_ENV|ENV|"
    r"CLASSPATH|.*JAVA.*OPTIONS|LUA_C?PATH.*|R_(LIBS|PROFILE|ENVIRON).*|JULIA_.*|PHPRC|PHP_INI_SCAN_DIR|GEM_.*|BUNDLE_.*|"
    r"GOPATH|GOFLAGS|DENO_.*|VIRTUAL_ENV|UV_.*|NPM_CONFIG_.*|XDG_CONFIG_HOME|HOME",
    re.I,
)
"""Variables that say where code is loaded from: a directory in one of them is code, whatever is in it."""


_VARIABLE = re.compile(r"^\$\{?\w+\}?(?=/)")
_MODULE = re.compile(
    r"\b(python|pypy)[\d.]*[wt]?\s(.*\s)?-[A-Za-z]*[mc]\b|\b(" + "|".join(sorted(_SERVING)) + r")\s"
)
"""A line of a script that has Python import from where it is."""


@dataclass(frozen=True, slots=True)
class Run:
    """A file or directory, by its whole path, and whether its content is part of what is approved."""

    path: str
    endings: tuple[str, ...] = ()
    """Of a directory: only files whose names end so."""
    pinned: bool = True
    whole: bool = True
    """Whether it counts even where it is all of a mount. Arguments often name the project as data."""


def runs(spec: ServerSpec, root: Path, environ: Mapping[str, str]) -> list[Run]:
    if spec.command is None:
        return []
    one = _Reading(spec, root, environ)
    found = [*one.command(), *one.arguments(), *one.variables(), *one.place(), *one.beside()]
    data = {one.at(text) for text in spec.data}
    return [run for run in dict.fromkeys(found) if run.path not in data]


class _Reading:
    """One server's entry, with its references looked up as they are when it is started."""

    def __init__(self, spec: ServerSpec, root: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._spec = spec
        self.cwd = os.path.normpath(os.path.join(root, self._filled(spec.cwd or ".")))
        self.env = {name: environ[name] for name in INHERITED if name in environ}
        self.env |= {name: self._filled(text) for name, text in spec.env.items()}
        self.argv = [self._filled(spec.command or ""), *(self._filled(text) for text in spec.args)]
        self.words = [os.path.basename(word) for word in self.argv for word in _SPLIT.split(word)]
        self.scripts = self._shell_scripts(root)
        """Of the project, that it is started with, and those that they name: each with its text."""
        texts = (*self.argv, *self.scripts.values())
        self.said = {os.path.basename(word) for text in texts for word in _SPLIT.split(text)}

    def _shell_scripts(self, root: Path) -> dict[str, str]:
        found: dict[str, str] = {}
        waiting = [self.at(piece) for text in self.argv for piece in _pieces(text)]
        while waiting and len(found) < _MOST_SCRIPTS:
            path = waiting.pop()
            inside = path not in found and path.startswith(f"{root}/") and os.path.isfile(path)
            if inside and SHELL in (family_of(path), _by_first_line(path)):
                lines = beginning(path).splitlines()
                found[path] = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
                waiting += [
                    place for piece in set(_pieces(found[path])) for place in self._places(piece, path)
                ]
        return found

    def _places(self, piece: str, script: str) -> Iterator[str]:
        """Where a word of a script may lead: `$HERE/x` and `$(dirname $0)/x` mostly mean what is beside it."""
        yield piece
        rest = _VARIABLE.sub("", piece).lstrip("/")
        if rest and rest != piece:
            yield from (os.path.join(place, rest) for place in (os.path.dirname(script), self.cwd))

    def _filled(self, text: str) -> str:
        try:
            return filled(text, Sources(self._environ), lambda name, value: None)
        except Unavailable:
            return text  # it names nothing then, and the server is not started

    def at(self, text: str) -> str:
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(text.removeprefix("file://"))))

    def command(self) -> Iterator[Run]:
        name = self.argv[0]
        if "/" in name:
            yield from self._program(self.at(name))
            return
        for entry in self.env.get("PATH", "").split(os.pathsep):
            yield Run(os.path.join(self.at(entry or "."), name), whole=False)
            yield Run(self.at(entry or "."), pinned=False, whole=False)
        found = shutil.which(name, path=self.env.get("PATH", ""))
        if found:
            yield from self._program(self.at(found))

    def arguments(self) -> Iterator[Run]:
        program, before = self._first(), ""
        for index, text in enumerate(self.argv[1:], 1):
            run = index == program or before in _TAKES
            for word in _pieces(text):
                yield from self._named(word, run or word.split("=")[0] in _TAKES)
            before = text

        for script, said in self.scripts.items():
            for piece in set(_pieces(said)):
                for place in self._places(piece, script):
                    if os.path.isdir(self.at(place)):  # any word may be the name of one
                        yield Run(self.at(place), CODE_FILES, pinned=False, whole=False)
                    elif "/" in place.strip("/") or family_of(place) or os.path.isfile(self.at(place)):
                        yield from self._named(place, False)

    def variables(self) -> Iterator[Run]:
        for name, text in self.env.items():
            code = name in self._spec.env and _CODE.fullmatch(name) is not None
            pieces = [piece for part in text.split(os.pathsep) for piece in _pieces(part)]
            if code and name == "PYTHONPATH" and "" in text.split(os.pathsep):
                pieces.append(".")
            for piece in pieces:
                if code:
                    yield from self._named(piece, True)
                elif os.path.isfile(path := self.at(piece)) and not piece.lower().endswith(_DATA):
                    if family_of(piece) or os.access(path, os.X_OK):
                        yield from self._program(path)
                    else:
                        yield Run(path, pinned=False)  # it may be settings that name code, or data

    def place(self) -> Iterator[Run]:
        """A directory that the entry names for it to run in; the project itself is where most run."""
        if self._spec.cwd:
            yield Run(self.cwd, whole=False)

    def beside(self) -> Iterator[Run]:
        """What languages and launchers load from where they are started."""
        words = self.said
        for launcher in words & _MANIFESTS.keys():
            yield from (Run(self.at(name)) for name in _MANIFESTS[launcher])
        if words & _NODE:
            yield from _modules(self.cwd)
            # of the directories above, too: npm looks there for the project, Node for what a module is. A command that
            # package.json names is run instead of a package. Not pinned, because every install changes it
            yield from (run for name in ("package.json", ".npmrc") for run in _upwards(self.cwd, name))
            yield from self._scripts()
        for launcher in words & _BUILDS.keys():
            yield Run(self.cwd, family_of(_BUILDS[launcher]))
        if words & {"uv", "poetry", "pdm", "hatch", "rye", "pixi", "pipenv"}:
            yield Run(self.at(".venv"), pinned=False)
            yield from (Run(source, PYTHON) for source in editable(self.at(".venv")))
            if os.path.isfile(self.at("pyproject.toml")) and not os.path.isdir(self.at(".venv")):
                yield Run(self.cwd, PYTHON, pinned=False)  # the first start installs the project itself
        if (self._from_cwd() or words & _SERVING) and not self._isolated():
            yield Run(self.cwd, PYTHON)
        for script, text in self.scripts.items():
            if any(_MODULE.search(line) for line in text.splitlines()):
                yield from (Run(place, PYTHON) for place in {self.cwd, os.path.dirname(script)})

    def _scripts(self) -> Iterator[Run]:
        """What the scripts of package.json start that the command names, or that one of those names."""
        scripts = scripts_in(self.at("package.json"))
        waiting, seen = list(self.said), set[str]()
        while waiting:
            word = waiting.pop()
            for name in {word, f"pre{word}", f"post{word}"} & scripts.keys() - seen:
                seen.add(name)
                for piece in _pieces(scripts[name]):
                    yield from self._named(piece, False)
                    waiting.append(piece)

    def _named(self, text: str, program: bool) -> Iterator[Run]:
        """What an argument or variable names, if it is there or looks like a file that will be."""
        if not text or len(text) > 4096 or "://" in text.removeprefix("file://") or "\0" in text:
            return
        path = self.at(text.removesuffix("/*"))  # a class path
        if os.path.isdir(path):
            yield Run(path, whole=program)
            if program:
                yield from _modules(path) if set(self.words) & _NODE else ()
        elif (
            os.path.lexists(path)
            or program
            or (not text.startswith("-") and ("/" in text or family_of(text)))
        ):
            yield from self._program(path)

    def _program(self, path: str) -> Iterator[Run]:
        """A file; and if its language loads files from beside it, those."""
        yield Run(path, pinned=not path.lower().endswith(_DATA))
        above = os.path.dirname(path)
        home = os.path.dirname(above)
        if os.path.isfile(os.path.join(home, "pyvenv.cfg")):
            yield Run(os.path.join(home, "pyvenv.cfg"))
            yield Run(home, pinned=False)
            yield from (Run(source, PYTHON) for source in editable(home))
            return
        for beside in {above, os.path.dirname(os.path.realpath(path))}:
            family = family_of(os.path.basename(path)) or _by_first_line(path) or self._by_interpreter(path)
            if family == NODE:
                yield from _modules(beside)
                yield from _upwards(beside, "package.json")
            if family and not (family == PYTHON and self._isolated()):
                yield Run(beside, family)

    def _by_interpreter(self, path: str) -> tuple[str, ...]:
        first = self._first()
        if first and self.at(self.argv[first]) == path:
            name = next((word for word in self.words if _PYTHON.fullmatch(word)), "")
            return PYTHON if name else NODE if set(self.words) & _NODE else ()
        return ()

    def _first(self) -> int:
        """The argument that says what is run: the first that is no option, nor a word of its launcher."""
        for index, text in enumerate(self.argv[1:], 1):
            name = os.path.basename(text)
            launcher = _PYTHON.fullmatch(name) or name in _NODE or name in ("uv", "env")
            if not launcher and not text.startswith("-") and text not in _WORDS and "=" not in text:
                return index
        return 0

    def _from_cwd(self) -> bool:
        """`-m` and `-c` of Python: the directory that it is started in comes first on its path."""
        python = any(_PYTHON.fullmatch(word) for word in self.words) or {"uv", "poetry", "pdm"} & set(
            self.words
        )
        return bool(python) and any(
            re.match(r"-[A-Za-z]*[mc]", word) for text in self.argv[1:] for word in _pieces(text)
        )

    def _isolated(self) -> bool:
        """Python told to leave out the script's own directory, before anything that it runs."""
        python = [index for index, text in enumerate(self.argv) if _PYTHON.fullmatch(os.path.basename(text))]
        if not python:
            return False
        for text in self.argv[python[0] + 1 :]:
            if not re.fullmatch(r"-[A-Za-z]+", text) or re.match(r"-[A-Za-z]*[mc]", text):
                return False
            if set(text) & set("IP"):
                return True
        return False


def _pieces(text: str) -> Iterator[str]:
    """An argument, what it gives to an option, and the words of one that is a script."""
    yield text
    for word in _SPLIT.split(text):
        given = word.split("=")[1:]
        for piece in (
            word,
            _VARIABLE.sub(".", word),
            word.lstrip("@"),
            *given,
            *(one for part in (word, *given) for one in part.split(":")),
        ):
            if piece and piece != text:
                yield piece
        attached = re.fullmatch(r"-[A-Za-z](?=[./~\w])(.+)", word)  # `-rlib/hook.rb`
        if attached:
            yield attached[1]


def _modules(path: str) -> Iterator[Run]:
    """Where Node looks for packages: here and in every directory above. Installed packages are not pinned."""
    yield from _upwards(path, "node_modules")


def _upwards(path: str, name: str) -> Iterator[Run]:
    while True:
        yield Run(os.path.join(path, name), pinned=False)
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _by_first_line(path: str) -> tuple[str, ...]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            line = stream.readline(256)
    except (OSError, ValueError):
        return ()
    if not line.startswith(b"#!"):
        return ()
    names = [os.path.basename(word) for word in line[2:].decode("utf-8", "replace").split()]
    return _language(names)


def _language(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if _PYTHON.fullmatch(name) or name == "uv":
            return PYTHON
        if name in _NODE:
            return NODE
        known = {
            "ruby": ".rb",
            "perl": ".pl",
            "php": ".php",
            "lua": ".lua",
            "bash": ".sh",
            "sh": ".sh",
            "zsh": ".sh",
        }
        if name in known:
            return family_of(f"x{known[name]}")
    return ()
