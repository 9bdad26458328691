"""Rooms and skills."""

from typing import Literal

from pydantic import BaseModel, Field

from agent.core.settings.field_types import HomePath, PathList


class RoomSettings(BaseModel):
    """Rooms and skills."""

    rooms_dir: HomePath | None = Field(
        default=None,
        description="folder of room files that add to or replace the shipped ones; unset: <data_dir>/rooms",
    )
    room_store: Literal["files", "database"] = Field(
        default="files",
        description="where the operator's rooms are kept: files in the folder above, or AGENT_DATABASE_URL, which "
        "several gateways share",
    )
    skills_dirs: PathList = Field(default=(), description="further folders of skills; the first one with a name wins")
    trust_project_skills: bool = Field(
        default=False, description="also load .agents/skills and .claude/skills of the working directory"
    )
    skills_user_dir: bool = Field(default=True, description="also load ~/.agents/skills")

    default_room: str = Field(default="stepgate", description="room of requests that name none")
