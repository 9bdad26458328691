"""Numbers that nobody has to choose: no environment variable and no `.env` sets them.

They are fields of `Settings` so that one object is passed down, and so that a program which embeds the gateway, such as
a test, can give others to `Settings(...)`.
"""

from collections.abc import Iterable

from pydantic import BaseModel, Field
from pydantic_settings import EnvSettingsSource, PydanticBaseSettingsSource


class ConstantSettings(BaseModel):
    """Constants: limits of requests, time limits, sizes."""

    header_seconds: float = Field(
        default=10, gt=0, description="how long a client may take to send a request's headers, in seconds"
    )
    body_seconds: float = Field(
        default=30,
        gt=0,
        description=("how long a client may take to send a body, in seconds, plus one second for every 10,000 bytes"),
    )
    stall_seconds: float = Field(
        default=30,
        gt=0,
        description="how long a client may leave an answer unread before it is disconnected, in seconds",
    )
    max_header_bytes: int = Field(
        default=32_768, ge=1024, description="largest request line with its headers, in bytes; more gets 431"
    )
    heartbeat_seconds: float = Field(
        default=15,
        gt=0,
        description="seconds of silence after which a stream sends a comment, to keep the connection open",
    )
    stream_coalesce_ms: int = Field(
        default=200, ge=0, description="text deltas are stored in pieces of this many milliseconds"
    )
    max_messages: int = Field(default=2000, gt=0, description="most messages in one request")
    max_message_chars: int = Field(default=1_000_000, gt=0, description="longest prompt or message, in characters")
    tool_content_bytes: int = Field(
        default=5_000_000,
        ge=0,
        description=(
            "most bytes of pictures, sound and files of one tool result that are kept for its caller, counted as base64"
        ),
    )
    embedder_timeout_s: float = Field(default=10, gt=0, description="time limit of a call to the embedder, in seconds")
    fetch_timeout_s: float = Field(default=20, gt=0, description="time limit of one fetch, in seconds")
    fetch_max_bytes: int = Field(default=5_000_000, gt=0, description="largest page that is read, in bytes")
    webhook_timeout_s: float = Field(
        default=20, gt=0, le=300, description="time limit of one attempt to deliver a webhook, in seconds"
    )
    conversation_message_seconds: float = Field(
        default=86_400, gt=0, description="how long conversation messages are stored after the last one, in seconds"
    )
    conversation_archive_days: float = Field(
        default=30, gt=0, description="days after which applied and abandoned conversations are archived"
    )
    conversation_messages_per_minute: int = Field(
        default=30, ge=1, description="messages that one user may send to conversations in a minute"
    )
    run_python_timeout_s: float = Field(default=10, gt=0, le=60, description="time limit of a program, in seconds")
    run_python_memory_mb: int = Field(
        default=512, ge=64, le=65_536, description="memory (address space) of a program, in MB"
    )
    run_python_parallel: int = Field(
        default=2, ge=1, le=64, description="programs that run at the same time; further ones wait"
    )
    schedules_per_owner: int = Field(default=100, ge=0, description="most schedules of one owner; 0 allows no new ones")
    queue_adopt_seconds: float = Field(
        default=60,
        ge=0,
        description="with AGENT_DISPATCH=queue, how long runs wait for a process with the rooms, file roots, MCP "
        "servers and skills of the one that accepted them, once none is left, before others take them, in seconds; "
        "0: for ever",
    )


def remove_names(source: PydanticBaseSettingsSource, fields: Iterable[str]) -> None:
    """Makes a source of environment variables leave these fields alone, such as the constants."""
    if isinstance(source, EnvSettingsSource):
        names = {f"{source.env_prefix}{name}".lower() for name in fields}
        source.env_vars = {name: value for name, value in source.env_vars.items() if name.lower() not in names}
