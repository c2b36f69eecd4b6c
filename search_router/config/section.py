"""What every section and every expert block of the configuration has."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from search_router.schema import Intent, PrecisionClass

Weight = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ExpertConfig(Section):
    """What every expert block has."""

    enabled: bool = True
    precision_class: PrecisionClass
    engine: str = Field(min_length=1)
    intents: tuple[Intent, ...] = Field(min_length=1)
    languages: tuple[str, ...] = ()
    cap_ms: int = Field(ge=1, le=600_000)
    """Its deadline, whatever the request's budget."""
    expected_ms: int = Field(default=0, ge=0, le=600_000)
    """What it usually takes; a request with a smaller latency budget does not ask it."""
