"""How requests are planned and carried out."""

import zoneinfo
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from agent.core.settings.field_types import WorkMode


class PlanningSettings(BaseModel):
    """How requests are planned and carried out."""

    planner_mode: WorkMode = Field(
        default="auto",
        description=(
            "who makes plans, runs skills and writes answers: auto and llm use a model and fall back to rules, "
            "which the trace reports; "
            "rules (or deterministic) uses no model"
        ),
    )
    timezone: str = Field(
        default="UTC", description="time zone of the date in the planner's prompt, as an IANA name: Europe/Stockholm"
    )
    translate: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "auto: requests in other languages are planned in English and answered in their language; "
            "off: the model handles languages itself"
        ),
    )
    workflow: Literal["loop", "langgraph"] = Field(
        default="loop",
        description=(
            "what drives a run through its stages: the built-in loop, or LangGraph (needs the extra `langgraph`)"
        ),
    )
    approval_seconds: float = Field(
        default=604_800, gt=0, description="how long a run waits for a person's approval, in seconds"
    )

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, value: str) -> str:
        try:
            zoneinfo.ZoneInfo(value)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError("must be an IANA time zone, such as Europe/Stockholm") from error
        return value
