"""Limits of requests and connections."""

from pydantic import BaseModel, Field


class LimitSettings(BaseModel):
    """Limits of requests and connections."""

    max_body_bytes: int = Field(default=5_000_000, gt=0, description="largest request body, in bytes")
    max_upload_bytes: int = Field(
        default=104_857_600, gt=0, description="largest file accepted by POST /v1/documents, in bytes"
    )
    max_messages: int = Field(default=2000, gt=0, description="most messages in one request")
    max_message_chars: int = Field(default=1_000_000, gt=0, description="longest prompt or message, in characters")
    max_header_bytes: int = Field(
        default=32_768, ge=1024, description="largest request line with its headers, in bytes; more gets 431"
    )
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
    max_open_streams: int = Field(
        default=200, gt=0, description="open event streams of one API key, or of all callers without one"
    )
    heartbeat_seconds: float = Field(
        default=15,
        gt=0,
        description="seconds of silence after which a stream sends a comment, to keep the connection open",
    )
    stream_coalesce_ms: int = Field(
        default=200, ge=0, description="text deltas are stored in pieces of this many milliseconds"
    )
