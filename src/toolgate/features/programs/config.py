"""The sandbox and the traces, as `sandbox:` and `traces:` in toolgate.yaml describe them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from toolgate.core.errors import CallError
from toolgate.policy.model import Strict, flawed
from toolgate.sandbox.job import Limits


def _below_project(name: str) -> str:
    from toolgate.features.programs.environments import check_name  # loaded by those who say something of it

    try:
        return check_name(name.removesuffix("/"))
    except ValueError as error:
        raise flawed(str(error), "name one such as `.venv`, from the project's root") from None


_DEFAULT = Limits()
Bytes = Annotated[int, Field(ge=1 << 16, le=1 << 40, strict=True)]
Directory = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_below_project)]
Package = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class SandboxLimitsSpec(Strict):
    """For programs of calls that ask for nothing else."""

    wall_s: Annotated[float, Field(gt=0, le=86_400, strict=True)] = _DEFAULT.wall_s
    cpu_s: Annotated[int, Field(ge=1, le=86_400, strict=True)] = _DEFAULT.cpu_s
    memory_bytes: Bytes = _DEFAULT.memory_bytes
    files: Annotated[int, Field(ge=16, le=65_536, strict=True)] = _DEFAULT.files
    disk_bytes: Bytes = _DEFAULT.disk_bytes
    inodes: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = _DEFAULT.inodes
    output_bytes: Bytes = _DEFAULT.output_bytes

    def limits(self, processes: int = 1) -> Limits:
        return Limits(processes=processes, **self.model_dump())


class NetworkSpec(Strict):
    private: tuple[str, ...] = ()
    """Private places that a program's network grant may name, by exact host and port: `127.0.0.1:8000`."""

    @field_validator("private")
    @classmethod
    def _places(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if given:
            from toolgate.sandbox.egress.addresses import private_places  # loaded by those who use it

            try:
                private_places(given)
            except CallError as error:
                raise flawed(error.message, error.fix) from None
        return given


class SandboxSpec(Strict):
    mode: Literal["auto", "root", "userns", "landlock"] = "auto"
    """Which walls; `auto` takes the strongest that stand here, another one that or none."""
    limits: SandboxLimitsSpec = SandboxLimitsSpec()
    packages: tuple[Package, ...] = ()
    """Installed packages that Python programs may import, with what they need."""
    warm: Annotated[int, Field(ge=0, le=32, strict=True)] = 2
    """Processes that wait behind their walls for a program."""
    network: NetworkSpec = NetworkSpec()
    python: Directory | Literal[False] | None = None
    """The project's virtual environment, which programs with a view of the project use. Absent: `.venv`, `venv` or `env`,
    if it is one; false: none."""
    node: Directory | Literal[False] | None = None
    """The project's `node_modules`, likewise."""


class TracesSpec(Strict):
    """Programs that were run, kept to learn from. The oldest ones go first."""

    days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 30
    rows: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 10_000
    text_bytes: Annotated[int, Field(ge=256, le=16 << 20, strict=True)] = 64 << 10
    """Of each text; the middle of a longer one is left out."""
