"""The settings of the feature `studio`."""

from typing import Literal

from pydantic import BaseModel, Field


class StudioSettings(BaseModel):
    """Rooms, prompts and tools as data."""

    generated_tools: Literal["auto", "off"] = Field(
        default="auto",
        description="whether models may write tools, which people apply: auto: where the machine can sandbox them",
    )
