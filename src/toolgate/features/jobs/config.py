"""Jobs, as `jobs:` in toolgate.yaml describes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolgate.policy.model import Strict

Flag = Annotated[bool, Field(strict=True)]


class JobsSpec(Strict):
    """Long work and schedules, kept beside the ledger; needs the extra `jobs`."""

    run: Flag = False
    """Whether `toolgate up` runs them. One process does; `toolgate jobs run` is another way."""
    concurrency: Annotated[int, Field(ge=1, le=64, strict=True)] = 4
    """Calls at once; jobs that wait for a human do not count."""
    keep_days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 30
    """How long jobs that have ended can be looked at."""
    max_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 40, strict=True)] = 256 << 20
    """Of jobs.db. Where it is full, the oldest jobs that have ended go; if that is not enough, no new one is taken."""
