"""Arguments of `exec.*` that every language shares, the effects that follow from them, and the preview a human is asked with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from toolgate.core import target
from toolgate.core.display import visible
from toolgate.core.effects import Effects
from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.kits.pieces import numbered
from toolgate.sandbox.job import Environment, Language

DEFAULT_SECONDS = 30.0
MOST_SECONDS = 300.0
"""Longer work is for jobs."""
MARGIN = 5.0
"""What the gate's own time is longer than the program's: setting up, ending and reading back take some."""
MAX_FILES = 100
MAX_HOSTS = 64


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_VIEWS = {"none": (), "read": ("project read",), "overlay": ("project read", "project overlay")}


def _one_spelling(host: str) -> str:
    """The one that the proxy compares, in ASCII: rules are written about it, and look-alikes are seen to be others."""
    return str(target.Reach.parse(host))


Host = Annotated[str, Field(min_length=1, max_length=260), AfterValidator(_one_spelling)]
Method = Annotated[str, Field(max_length=16, pattern=r"^[A-Za-z]{1,16}$"), AfterValidator(str.upper)]


class Network(BaseModel):
    model_config = ConfigDict(extra="forbid")

    hosts: Annotated[list[Host], Field(max_length=MAX_HOSTS)]
    methods: Annotated[list[Method], Field(max_length=16, description="None named: all of them.")] = []


Code = Annotated[str, Field(description="The program's text.", max_length=1 << 20)]
Stdin = Annotated[str, Field(max_length=4 << 20, description="What it reads from its standard input.")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="Seconds until it is stopped.")]
Milliseconds = Annotated[
    Annotated[int, Field(gt=0, le=int(MOST_SECONDS * 1000))] | None,
    Field(description="The same in milliseconds; it wins over `timeout`."),
]
Reach = Annotated[
    Network | Annotated[list[Host], Field(max_length=MAX_HOSTS)] | None,
    Field(description="Hosts it may call (`api.example.com`, `host:port`), or {hosts, methods}."),
]
Names = Annotated[
    Annotated[list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=64)] | None,
    Field(description="Secrets it may use, by name."),
]
Project = Annotated[
    Literal["none", "read", "overlay"],
    Field(
        description="What is at /project: nothing, the project to read, or a copy whose changes become a patch."
    ),
]
Packages = Annotated[
    Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=32)] | None,
    Field(description="Installed packages it may import, of those that the owner lists."),
]
Background = Annotated[
    bool,
    Field(
        description="Hand it to a job and come back at once with `job_id`; the job's call passes the gate."
    ),
]
_FileName = Annotated[str, Field(max_length=1024)]
_Text = Annotated[str, Field(max_length=4 << 20)]
Texts = Annotated[
    # one more than there may be: `check_files` says it in better words
    Annotated[dict[_FileName, _Text], Field(max_length=MAX_FILES + 1)] | None,
    Field(description="Files for its work directory: name → text."),
]


@dataclass(frozen=True, slots=True)
class NetworkGrant:
    """What a call asks to reach outside: hosts, methods, and the secrets that may be put into requests."""

    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """None named: every method."""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """One program as it was asked for, in any language."""

    language: Language
    code: str = ""
    argv: tuple[str, ...] = ()
    stdin: str = ""
    seconds: float = DEFAULT_SECONDS
    grant: NetworkGrant = field(default_factory=NetworkGrant)
    project: Literal["none", "read", "overlay"] = "none"
    files: Mapping[str, str] | None = None
    packages: tuple[str, ...] = ()

    @classmethod
    def of(cls, language: Language, given: Mapping[str, Any]) -> ProgramRequest:
        """From validated arguments, whichever of them this tool has."""
        milliseconds = given.get("timeout_ms")
        network = given.get("network") or []
        hosts, methods = (network.hosts, network.methods) if isinstance(network, Network) else (network, ())
        return cls(
            language, given.get("code") or given.get("script") or "", tuple(given.get("argv") or ()),
            given.get("stdin") or "", given.get("timeout", DEFAULT_SECONDS) if milliseconds is None else milliseconds / 1000,
            NetworkGrant(tuple(hosts), tuple(method.upper() for method in methods), tuple(given.get("secrets") or ())),
            given.get("project", "none"), given.get("files"), tuple(given.get("packages") or ()),
        )  # fmt: skip

    @property
    def closed(self) -> bool:
        """Nothing that it does can leave the walls: what it changed comes back as a proposal, or not at all."""
        return not self.grant.hosts and not self.grant.secrets


def check_files(files: Mapping[str, str] | None) -> None:
    """Plain names below the work directory."""
    if files is not None and len(files) > MAX_FILES:
        raise InvalidArgs(f"`files` has {len(files):,} files, the limit is {MAX_FILES}", "give fewer")
    for name in files or ():
        if not name or name.endswith("/") or MountPath.parse(f"scratch:{name}").relative != name:
            raise InvalidArgs(f"{name!r} is no name for a file", "use names such as `data/a.csv`")


def shell_effects_of(args: Mapping[str, Any]) -> Effects:
    if bool(args.get("argv")) == bool(args.get("script")):
        raise InvalidArgs("give either `argv` or `script`", "pass {argv: [...]} or {script: ...}")
    return effects_of(args)


def effects_of(args: Mapping[str, Any]) -> Effects:
    """What a call reads depends on what it asks for. Files that the program leaves are its output, as what it prints
    is: saving them for the caller is no scratch save of the caller's, which some phases deny."""
    # what cannot be is refused before anybody is asked about it
    check_files(args.get("files"))
    check_hosts(args.get("network"))
    reach = _reach_of(args)
    if args.get("background"):
        # the call that the job makes is judged by what it reaches, when it is made
        return replace(_effects(()), reach=reach) if reach else _effects(())
    asked = (
        ("project", args.get("project", "none") != "none"),
        ("internet", bool(_reach(args.get("network"))[0])),
        ("secrets", bool(args.get("secrets"))),
    )
    found = _effects(tuple(word for word, wanted in asked if wanted))
    return replace(found, reach=reach) if reach else found


def _reach_of(args: Mapping[str, Any]) -> tuple[str, ...]:
    """What a grant for this call may not go beyond, one by one."""
    hosts, methods = _reach(args.get("network"))
    found = [f"host {host}" for host in hosts]
    if hosts:
        found += [f"method {method}" for method in methods or ("any", *METHODS)]
    found += _VIEWS[args.get("project", "none")]
    found += [f"secret {name}" for name in args.get("secrets") or ()]
    found += [f"package {name}" for name in args.get("packages") or ()]
    return tuple(found)


def check_hosts(network: Any) -> None:
    if network:
        from toolgate.sandbox.egress.grant import (
            HostGrant as Hosts,
        )  # the proxy is loaded by those who use it

        Hosts.parse(*_reach(network))


def _reach(network: Any) -> tuple[list[str], list[str] | None]:
    if isinstance(network, Mapping):
        return network["hosts"], network.get("methods") or None
    return network or [], None


@lru_cache(maxsize=8)
def _effects(reads: tuple[str, ...]) -> Effects:
    """Whoever can ask a host can tell it something, whatever the method."""
    writes = ("process", "internet") if "internet" in reads else ("process",)
    return replace(Effects.of(reads, writes), keeps=("network", "packages", "project", "secrets"))


# A program as a human is asked about it: what it is, line by line, and what it may reach.

_VIEW_WORDS = {
    "none": "",
    "read": "the project at /project, read-only, without hidden names",
    "overlay": "the project at /project, as a copy on write; what it changes is asked about afterwards",
}


def preview(wanted: ProgramRequest, warnings: Sequence[str], environment: Environment | None = None) -> str:
    return "\n".join(_lines(wanted, warnings, environment))


def _lines(wanted: ProgramRequest, warnings: Sequence[str], environment: Environment | None) -> Iterator[str]:
    if wanted.argv:
        yield "run " + " ".join(visible(shlex.quote(word)) for word in wanted.argv)
    else:
        lines = wanted.code.removesuffix("\n").split("\n")
        yield f"run this {wanted.language} program of {len(lines)} line{'s' * (len(lines) != 1)}"
        yield from numbered(wanted.code)
    yield ""
    yield f"for at most {wanted.seconds:g} s, in the sandbox"
    reach = list(_reach_lines(wanted))
    yield from (f"it may reach {each}" for each in reach)
    if environment is not None:
        yield f"it may use the project's own programs and packages: {', '.join(map(visible, environment.directories))}"
    if not reach:
        yield "it may reach nothing: no network, no secrets, no project"
    if wanted.stdin:
        yield f"its input has {len(wanted.stdin):,} characters"
    for name, text in (wanted.files or {}).items():
        yield f"it is given the file {visible(name)} of {len(text):,} characters"
    yield from (f"warning: {visible(warning)}" for warning in warnings)


def _reach_lines(wanted: ProgramRequest) -> Iterator[str]:
    if _VIEW_WORDS[wanted.project]:
        yield _VIEW_WORDS[wanted.project]
    methods = f" by {', '.join(wanted.grant.methods)}" if wanted.grant.methods else ""
    for host in wanted.grant.hosts:
        yield f"the host {visible(host)}{methods}"
    for name in wanted.grant.secrets:
        yield f"the secret {visible(name)}"
    for name in wanted.packages:
        yield f"the package {visible(name)}"
