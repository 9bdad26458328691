"""Values that follow from other settings, from the standards or from the rooms: no variable of ours sets them.

They are fields of `Settings` for the same reason as the constants: a program that embeds the gateway can give others.
"""

from pydantic import BaseModel, Field

from agent.core.settings.field_types import HomePath, WorkMode


class DerivedSettings(BaseModel):
    """Where files are, and which room and address follow from what is configured."""

    executor_mode: WorkMode = Field(
        default_factory=lambda values: values.get("planner_mode", "auto"),
        description="who runs skills and writes answers and summaries; AGENT_PLANNER_MODE sets it too",
    )
    task_room: str = Field(default="incident", description="room that executes the tasks of /tasks")
    mcp_servers: HomePath | None = Field(default=None, description="file of foreign MCP servers")
    mcp_views_dir: HomePath | None = Field(default=None, description="folder of view files")
    credentials_path: HomePath | None = Field(default=None, description="file of named credentials, mode 600")
    jwt_keys_url: str | None = Field(default=None, description="where the issuer publishes its keys (JWKS)")
