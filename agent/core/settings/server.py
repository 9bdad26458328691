"""Where the gateway is reached, and what it serves."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from agent.core.settings.field_types import HostList, HttpUrl, OriginList


class ServerSettings(BaseModel):
    """Where the gateway is reached, and what it serves."""

    host: str = Field(default="127.0.0.1", description="address the gateway binds")
    port: int = Field(default=8010, ge=0, le=65535, description="port the gateway binds; 0 picks a free one")
    allowed_hosts: HostList = Field(
        default=(),
        description=(
            "further host names that callers without a key may use, e.g. stepgate.example.org; with a port, at that "
            "port only; IP addresses, localhost, host.docker.internal, AGENT_HOST and the host of AGENT_PUBLIC_URL "
            "need no entry; others get 421"
        ),
    )
    cors_origins: OriginList = Field(
        default=(),
        description=(
            "origins of web pages and extensions that may call the gateway from a browser besides its own page, e.g. "
            "https://app.example.org or vscode-webview://1a2b; never *"
        ),
    )
    public_url: HttpUrl | None = Field(
        default=None,
        description=(
            "address at which others reach the gateway, with the path that a reverse proxy serves it at; for links to "
            "cited documents and runs, and in the A2A card; unset: this machine's, if only this machine can reach the "
            "gateway"
        ),
    )
    features: str = Field(
        default="",
        description=(
            "features to use alone (with what they need), separated by commas, or -name for each to leave out, "
            "e.g. -recipes,-schedules; none: the kernel alone; unset: all"
        ),
    )
    web: bool = Field(default=True, description="serve the web page at / to browsers, and its files at /web/")
    open_webui: Literal["auto", "always", "never"] = Field(
        default="auto", description="who gets the rich view: callers recognised as Open WebUI, all callers, or none"
    )

    @property
    def public_path(self) -> str:
        """The path below which a reverse proxy serves this gateway, such as `/stepgate`; "" without one."""
        return urlsplit(self.public_url or "").path

    @property
    def browser_url(self) -> str | None:
        """The URL at which a browser reaches this gateway, or None if it is unknown."""
        if self.public_url is not None:
            return self.public_url
        return f"http://{self.host}:{self.port}" if self.port and self.host in ("127.0.0.1", "localhost") else None
