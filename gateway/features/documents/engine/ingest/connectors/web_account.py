"""`WebAccount`: the headers that a named credential adds to the requests of one web site."""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from agent.storage.credentials import BasicLogin, Bearer, HeaderSecret, OAuthClient, WebCredential
from agent.storage.secret_places import LOOPBACK_HOSTS, is_below
from gateway.features.documents.engine.ingest.connectors.oauth_token import EARLY_SECONDS, request_token
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient
from gateway.features.documents.engine.ingest.connectors.urls import get_site
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError


class WebAccount:
    """A credential in use for the site of `start`. Its secrets go to that site, by https, and nowhere else."""

    def __init__(
        self,
        name: str,
        credential: WebCredential,
        start: str,
        client: SourceClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _is_private(start):
            raise ConnectorAuthError(f"the credential {name!r} is sent by https only; give an https address")
        self._name = name
        self._credential = credential
        self._site = get_site(start)
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token = ""
        self._expires = 0.0

    async def build_headers(self, url: str) -> Mapping[str, str]:
        """The headers for an address; none for other sites, for plain http, and outside of the credential's `url`.

        Raises `ConnectorError` if an OAuth client gets no token.
        """
        place = self._credential.url
        if get_site(url) != self._site or not _is_private(url) or (place and not is_below(url, place)):
            return {}
        match self._credential:
            case HeaderSecret(name=name, value=value):
                return {name.lower(): value.get_secret_value()}
            case BasicLogin(username=username, password=password):
                login = f"{username}:{password.get_secret_value()}"
                return {"authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
            case Bearer(token=token):
                return {"authorization": f"Bearer {token.get_secret_value()}"}
            case OAuthClient() as client:
                return {"authorization": f"Bearer {await self._get_token(client)}"}

    async def _get_token(self, client: OAuthClient) -> str:
        async with self._lock:
            if self._clock() >= self._expires - EARLY_SECONDS:
                self._token, life = await self._request_token(client)
                self._expires = self._clock() + life
            return self._token

    async def _request_token(self, client: OAuthClient) -> tuple[str, float]:
        """Requests a token; returns it with its lifetime in seconds."""
        form = {
            "grant_type": "client_credentials",
            "client_id": client.client_id,
            "client_secret": client.client_secret.get_secret_value(),
            **({"scope": client.scope} if client.scope else {}),
        }
        return await request_token(self._client, client.token_uri, form)


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent to this address."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS
