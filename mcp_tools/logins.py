"""`Login`: as whom we are logged in at a foreign MCP server, in a file only its owner may read, shared by processes.

Written by `stepgate mcp-servers login` and by whoever renews the tokens; read at each connection.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

LOCK_PAUSE_S = 0.05
EARLY_S = 30.0
"""A token is renewed so long before it ends: clocks differ, and a request takes its time."""


class Login(BaseModel):
    """The tokens, and all that is needed to renew them."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str = Field(description="the server they are for: never sent to another")
    issuer: str | None = None
    token_endpoint: str
    resource: str | None = None
    client_id: str
    client_secret: str | None = Field(default=None, repr=False)
    token_endpoint_auth_method: str | None = None
    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    scope: str | None = None
    expires_at: float | None = Field(default=None, description="UTC seconds since 1970; None where nobody said")

    def ends_before(self, moment: float) -> bool:
        """Whether the token is of no use any more at this time, as far as that is known."""
        return self.expires_at is not None and self.expires_at - EARLY_S <= moment


class LoginFile:
    """One server's login. Reading and writing is quick: a kilobyte."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / "logins" / f"{name}.json"

    def read(self, url: str) -> Login | None:
        """The login for the server at `url`; None where there is none, none that can be read, or one for another."""
        try:
            login = Login.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None
        return login if login.url == url else None

    def write(self, login: Login) -> None:
        """Keep it in place of the earlier one. Raises `OSError`."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._path.with_suffix(f".{os.getpid()}.draft")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(login.model_dump(mode="json"), file)
        draft.replace(self._path)

    def forget(self) -> bool:
        """Whether there was one; there is none any more. Raises `OSError`."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Alone among all processes: a token to renew with is often good for once only."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _locked(descriptor):  # noqa: ASYNC110 - another process' lock
                await asyncio.sleep(LOCK_PAUSE_S)
            yield
        finally:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
