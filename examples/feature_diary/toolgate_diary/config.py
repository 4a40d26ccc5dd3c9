"""`diary:` in toolgate.yaml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class DiarySpec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    characters: Annotated[int, Field(ge=10, le=10_000, strict=True)] = 500
    """The longest entry."""
