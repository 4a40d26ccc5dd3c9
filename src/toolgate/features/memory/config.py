"""`memory:` in toolgate.yaml: the time zone, how conversations are divided, and who writes summaries, with which model
and within which budget."""

from __future__ import annotations

from datetime import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from toolgate.core.errors import InvalidArgs
from toolgate.features.memory.periods import zone_of


class SessionsSpec(BaseModel):
    """`auto_divide` and `auto_divide_time` are spelled as in the document they come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    auto_divide: Literal["daily", "weekly", "none"] = "daily"
    auto_divide_time: Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] = "00:00"
    """The time of day at which a new session begins, in the zone of `memory`; weekly on Mondays."""

    @property
    def at(self) -> time:
        return time.fromisoformat(self.auto_divide_time)


class EmbeddingsSpec(BaseModel):
    """A server that speaks OpenAI's interface for embeddings. Texts are sent there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: Annotated[str, Field(pattern=r"^https?://", max_length=500)]
    model: Annotated[str, Field(min_length=1, max_length=200)]
    dimension: Annotated[int, Field(ge=1, le=16_384, strict=True)]
    secret: Annotated[str, Field(max_length=64)] = ""
    """The name of its key in the vault."""


class RollupBudgetSpec(BaseModel):
    """What the model may use in one day of the zone of `memory`, for everybody together; 0 means no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tokens: Annotated[int, Field(ge=0, le=10**9, strict=True)] = 0
    usd: Annotated[float, Field(ge=0, le=10**6)] = 0.0


class RollupsSpec(BaseModel):
    """A name alone is the persona."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    persona: str = ""
    """For whose user `toolgate up` writes summaries once a period is over; nobody if empty."""
    model: Annotated[str, Field(max_length=64)] = ""
    """The name of a model in `models:`, to which the texts are sent. Absent: sentences are taken from the sources."""
    budget: RollupBudgetSpec = RollupBudgetSpec()

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return {"persona": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _stated(self) -> RollupsSpec:
        """A model that runs by itself has a limit that somebody wrote down."""
        if self.model and not (self.budget.tokens or self.budget.usd):
            raise ValueError(
                f"the model {self.model} has no budget; say what it may use in a day, such as `budget: {{tokens: 100000}}`"
            )
        return self


class MemorySpec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    zone: str = "UTC"
    """The time zone of days, weeks and months."""
    embeddings: Literal["auto", "granite", "minilm", "none"] | EmbeddingsSpec = "auto"
    """The model for search by meaning: `auto` takes the default one if it is on this machine."""
    sessions: SessionsSpec = SessionsSpec()
    rollups: RollupsSpec = RollupsSpec()

    @field_validator("zone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            zone_of(name)
        except InvalidArgs as error:
            raise ValueError(f"{error.message}; {error.fix}") from None
        return name
