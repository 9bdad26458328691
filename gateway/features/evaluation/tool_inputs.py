"""Types of tools' inputs that the MCP servers of the evaluation's worlds share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="YYYY-MM-DD")]
Clock = Annotated[str, Field(pattern=r"^\d{2}:\d{2}$", description="HH:MM, 24 hours")]


class Inputs(BaseModel):
    """A nested object of a tool's inputs."""

    model_config = ConfigDict(extra="forbid")
