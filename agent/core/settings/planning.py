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
            "who makes plans: auto and llm use a model and fall back to rules, which the trace reports; "
            "rules (or deterministic) uses no model"
        ),
    )
    timezone: str = Field(
        default="UTC", description="time zone of the date in the planner's prompt, as an IANA name: Europe/Stockholm"
    )
    executor_mode: WorkMode = Field(
        default="auto", description="who runs skills and writes answers and summaries; values as for AGENT_PLANNER_MODE"
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
    incident_knowledge: str = Field(
        default="company", description="collection of policies, runbooks and documents that the incident tools search"
    )
    incident_issues: str = Field(
        default="issues", description="collection of earlier tickets and incidents that the incident tools search"
    )
    task_room: str = Field(default="incident", description="room that executes the tasks of /tasks")

    @field_validator("planner_mode", "executor_mode", mode="before")
    @classmethod
    def _map_deterministic(cls, value: object) -> object:
        return "rules" if isinstance(value, str) and value.strip().lower() == "deterministic" else value

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, value: str) -> str:
        try:
            zoneinfo.ZoneInfo(value)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError("must be an IANA time zone, such as Europe/Stockholm") from error
        return value
