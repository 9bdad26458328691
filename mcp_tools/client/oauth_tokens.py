"""`Login`: stored OAuth tokens for an external MCP server, in a file that only its owner can read.

`stepgate mcp-servers login` and token refreshes write it; each connection reads it.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.atomic_write import write_atomically

LOCK_PAUSE_S = 0.05
RENEW_EARLY_S = 30.0
"""A token is refreshed so many seconds before it expires: clocks differ, and a request takes time."""


class Login(BaseModel):
    """The tokens, and everything needed to refresh them."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str = Field(description="the server they belong to; they are never sent to another")
    issuer: str | None = None
    token_endpoint: str
    resource: str | None = None
    client_id: str
    client_secret: str | None = Field(default=None, repr=False)
    token_endpoint_auth_method: str | None = None
    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    scope: str | None = None
    expires_at: float | None = Field(default=None, description="UTC seconds since 1970; None if unknown")

    def expires_before(self, moment: float) -> bool:
        """Whether the access token is known to expire before this time (UTC seconds since 1970)."""
        return self.expires_at is not None and self.expires_at - RENEW_EARLY_S <= moment


class LoginFile:
    """The file with one server's login. It has about a kilobyte, so it is read and written synchronously."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / "logins" / f"{name}.json"

    def read(self, url: str) -> Login | None:
        """The login for the server at `url`; None if the file is missing, unreadable, or for another URL."""
        try:
            login = Login.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None
        return login if login.url == url else None

    def write(self, login: Login) -> None:
        """Replaces the stored login. Raises `OSError`."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self._path, login.model_dump_json(), mode=0o600)

    def delete(self) -> bool:
        """Deletes the login. Returns whether there was one. Raises `OSError`."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    @asynccontextmanager
    async def lock_for_refresh(self) -> AsyncIterator[None]:
        """Holds a lock over all processes, because many refresh tokens can be used only once."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _try_lock(descriptor):  # noqa: ASYNC110 - another process' lock
                await asyncio.sleep(LOCK_PAUSE_S)
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
