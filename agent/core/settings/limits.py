"""Limits of requests and connections."""

from pydantic import BaseModel, Field


class LimitSettings(BaseModel):
    """Limits of requests and connections."""

    max_body_bytes: int = Field(default=5_000_000, gt=0, description="largest request body, in bytes")
    max_upload_bytes: int = Field(
        default=104_857_600, gt=0, description="largest file accepted by POST /v1/documents, in bytes"
    )
    max_open_streams: int = Field(
        default=200, gt=0, description="open event streams of one API key, or of all callers without one"
    )
