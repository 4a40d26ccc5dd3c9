"""A program as a human is asked about it: what it is, line by line, and what it may reach."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from toolgate.core.display import visible
from toolgate.features.programs.arguments import ProgramRequest
from toolgate.kits.pieces import numbered
from toolgate.sandbox.job import Environment

_VIEWS = {
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
    reach = list(_reach(wanted))
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


def _reach(wanted: ProgramRequest) -> Iterator[str]:
    if _VIEWS[wanted.project]:
        yield _VIEWS[wanted.project]
    methods = f" by {', '.join(wanted.grant.methods)}" if wanted.grant.methods else ""
    for host in wanted.grant.hosts:
        yield f"the host {visible(host)}{methods}"
    for name in wanted.grant.secrets:
        yield f"the secret {visible(name)}"
    for name in wanted.packages:
        yield f"the package {visible(name)}"
