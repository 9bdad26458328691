"""Rooms and skills."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from agent.core.settings.field_types import HomePath, PathList

USER_SKILLS = Path("~/.agents/skills")


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

    skills_dirs: PathList = Field(
        default=(USER_SKILLS,),
        description="trusted folders of skills besides the shipped one; of two with the same name, the first counts. "
        "none: no other folder. Those of a project, such as .agents/skills and .claude/skills in the working folder, "
        "must be named",
    )
    default_room: str = Field(default="stepgate", description="room for requests that name none")

    @field_validator("skills_dirs", mode="before")
    @classmethod
    def _read_none(cls, value: object) -> object:
        return () if isinstance(value, str) and value.strip().lower() == "none" else value
