"""Who may call."""

from typing import Literal

from pydantic import BaseModel, Field


class AccessSettings(BaseModel):
    """Who may call."""

    require_key: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="whether callers need an API key; auto: yes, unless only this machine can reach the gateway",
    )
    token_verifier: str | None = Field(
        default=None,
        description="factory of a verifier for bearer tokens that are not API keys, as package.module:factory",
    )
    jwt_issuer: str | None = Field(
        default=None,
        description="issuer whose signed tokens are accepted as bearer tokens; its metadata names its keys",
    )
    jwt_audience: str | None = Field(default=None, description="audience that those tokens must have")
