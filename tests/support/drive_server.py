"""Google Drive as a server on a free loopback port: its token endpoint and the three calls of its API (v3) that a
reader needs, with Google's shapes of answers and errors.

It is as strict as the real one: only what was asked for in `fields` is told, shared drives are hidden from those who
do not ask for them, a token must have been issued here and be young enough, an assertion must bear the right signature.
"""

import asyncio
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.drive_wire import Fault, Item, chunked, error, masked, oauth_error, ranged

FOLDER = "application/vnd.google-apps.folder"
SHORTCUT = "application/vnd.google-apps.shortcut"
EXPORT_LIMIT = 10_000_000
SCOPE = "https://www.googleapis.com/auth/drive.readonly"
CLIENT = {"client_id": "client.apps.example", "client_secret": "GOCSPX-client-secret"}
REFRESH_TOKEN = "1//refresh-token"
EMAIL = "reader@project.iam.example"
_IN_PARENT = re.compile(r"'([^'\\]+)' in parents and trashed ?= ?false")


@dataclass
class RecordedRequest:
    """A request that arrived. `about` is the file's id, the parent's for a list."""

    call: str
    about: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


def pem(key: rsa.RSAPrivateKey) -> str:
    """A key as Google hands it out."""
    kind = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def new_key() -> rsa.RSAPrivateKey:
    """A key of a service account."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


_KEY = cache(new_key)
"""The one key of all servers of a test run: making one takes a tenth of a second."""


class DriveServer:
    """The server as an asynchronous context manager; `.url` is the base of the API.

    `tokens` it has issued, for the `forms` it was sent; `redirects` lead from the content of a file elsewhere."""

    page_size = 1000
    """The most files on one page of a list, whatever is asked for."""
    token_seconds = 3599
    etags = False
    """Google's media answers are not documented to have any."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.faults: list[Fault] = []
        self.asked: list[RecordedRequest] = []
        self.tokens: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.redirects: dict[str, str] = {}
        self.stalled = asyncio.Event()
        self.refresh_tokens = {REFRESH_TOKEN}
        self.url = ""
        self._valid: set[str] = set()

    @property
    def private_key(self) -> str:
        """The service account's key."""
        return pem(_KEY())

    @property
    def token_uri(self) -> str:
        """The token endpoint."""
        return f"{self.url}/token"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/token", self._token)
        app.router.add_get("/drive/v3/files", self._list)
        app.router.add_get("/drive/v3/files/{id}", self._get)
        app.router.add_get("/drive/v3/files/{id}/export", self._export)
        # Answers that are stalled on purpose are cut off when the test is over.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def folder(self, id_: str, *, parent: str = "", **more: Any) -> Item:
        """Add a folder, called like its id."""
        return self._add(Item(id_, id_, FOLDER, parent=parent, more=more))

    def file(
        self, id_: str, name: str, content: bytes, *, parent: str = "", mime: str = "application/pdf", **more: Any
    ) -> Item:
        """Add a file with bytes of its own."""
        return self._add(Item(id_, name, mime, content, parent, more))

    def document(self, id_: str, name: str, exported: bytes, *, parent: str = "", kind: str = "document") -> Item:
        """Add a document of Google's own (`document`, `spreadsheet`, `presentation`, `form`) and its export."""
        return self._add(Item(id_, name, f"application/vnd.google-apps.{kind}", exported, parent))

    def shortcut(self, id_: str, target: str, *, parent: str = "") -> Item:
        """Add a shortcut to an item, which need not be there."""
        there = self.items.get(target)
        details = {"targetId": target, "targetMimeType": there.mime if there else "application/pdf"}
        return self._add(Item(id_, f"to {target}", SHORTCUT, parent=parent, more={"shortcutDetails": details}))

    def issue_token(self) -> str:
        """A token that is good from now on."""
        token = f"ya29.{secrets.token_hex(16)}"
        self.tokens.append(token)
        self._valid.add(token)
        return token

    def forget_tokens(self) -> None:
        """Make every token invalid, as a revoked consent does."""
        self._valid.clear()

    def calls(self, call: str) -> list[RecordedRequest]:
        """The requests of this kind, in order."""
        return [asked for asked in self.asked if asked.call == call]

    def _add(self, item: Item) -> Item:
        self.items[item.id] = item
        return item

    def _fault(self, request: web.Request, call: str, about: str) -> Fault | None:
        self.asked.append(
            RecordedRequest(call, about, dict(request.query), {k.lower(): v for k, v in request.headers.items()})
        )
        for fault in self.faults:
            if fault.times and fault.call == call and fault.about in ("", about):
                fault.times -= 1
                return fault
        return None

    async def _token(self, request: web.Request) -> web.StreamResponse:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.forms.append(form)
        if (fault := self._fault(request, "token", "")) is not None:
            if fault.body is not None:
                return web.Response(text=fault.body, content_type="application/json")
            return oauth_error(fault.reason, fault.message, fault.status)
        if form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            refusal = self._refusal(form.get("assertion", ""))
        elif form.get("grant_type") != "refresh_token":
            refusal = ("unsupported_grant_type", f"Invalid grant_type: {form.get('grant_type')}")
        elif any(form.get(name) != value for name, value in CLIENT.items()):
            return oauth_error("invalid_client", "The provided client secret is invalid.", 401)
        else:
            known = form.get("refresh_token") in self.refresh_tokens
            refusal = None if known else ("invalid_grant", "Token has been expired or revoked.")
        if refusal is not None:
            return oauth_error(*refusal)
        return web.json_response(
            {
                "access_token": self.issue_token(),
                "expires_in": self.token_seconds,
                "scope": SCOPE,
                "token_type": "Bearer",
            }
        )

    def _refusal(self, assertion: str) -> tuple[str, str] | None:
        """What is wrong with an assertion, by RFC 7523 and Google's additions."""
        try:
            said = jwt.decode(
                assertion,
                _KEY().public_key(),
                algorithms=["RS256"],
                audience=self.token_uri,
                options={"require": ["iss", "scope", "aud", "iat", "exp"]},
            )
        except jwt.InvalidSignatureError:
            return "invalid_grant", "Invalid JWT Signature."
        except jwt.InvalidTokenError as wrong:
            return "invalid_grant", f"Invalid JWT: {wrong}"
        if said["iss"] != EMAIL:
            return "invalid_grant", "Invalid grant: account not found"
        if said["exp"] - said["iat"] > 3600:
            return "invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes)"
        if said["scope"] != SCOPE:
            return "invalid_scope", f"{said['scope']} is not a valid audience string."
        return None

    async def _get(self, request: web.Request) -> web.StreamResponse:
        media = request.query.get("alt") == "media"
        answered = self._refused(request, "media" if media else "get", request.match_info["id"])
        if isinstance(answered, web.StreamResponse):
            return answered
        fault, item = answered
        if media and item.id in self.redirects:
            return web.Response(status=302, headers={"location": self.redirects[item.id]})
        if not media:
            return web.json_response(masked(item.resource(), request.query.get("fields", "kind,id,name,mimeType")))
        if item.mime.startswith("application/vnd.google-apps."):
            told = "Only files with binary content can be downloaded. Use Export with Docs Editors files."
            return error(403, "fileNotDownloadable", told, location="alt")
        return await ranged(request, item.content, item.mime, fault, etag=self.etags)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        answered = self._refused(request, "export", request.match_info["id"])
        if isinstance(answered, web.StreamResponse):
            return answered
        fault, item = answered
        if not item.mime.startswith("application/vnd.google-apps."):
            return error(403, "fileNotExportable", "Export only supports Docs Editors files.")
        if "mimeType" not in request.query:
            return error(400, "required", "Required parameter: mimeType")
        if len(item.content) > EXPORT_LIMIT:
            return error(403, "exportSizeLimitExceeded", "This file is too large to be exported.")
        return await chunked(request, item.content, request.query["mimeType"], fault)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        asked = _IN_PARENT.fullmatch(query.get("q", ""))
        answered = self._refused(request, "list", asked[1] if asked else "")
        if isinstance(answered, web.StreamResponse):
            return answered
        if asked is None:
            return error(400, "invalid", "Invalid Value", location="q")
        everywhere = query.get("includeItemsFromAllDrives") == "true"
        if everywhere and query.get("supportsAllDrives") != "true":
            return error(
                403, "teamDrivesInclusionRequiresSupport", "includeItemsFromAllDrives needs supportsAllDrives."
            )
        found = [
            item
            for item in self.items.values()
            if item.parent == asked[1]
            and not item.more.get("trashed")
            and (everywhere or "driveId" not in item.more)
            and ("driveId" not in query or item.more.get("driveId") == query["driveId"])
        ]
        start = int(query.get("pageToken", "~0").removeprefix("~"))
        end = start + min(int(query.get("pageSize", "100")), self.page_size)
        page: dict[str, Any] = {
            "kind": "drive#fileList",
            "incompleteSearch": False,
            "files": [item.resource() for item in found[start:end]],
        }
        if end < len(found):
            page["nextPageToken"] = f"~{end}"
        return web.json_response(
            masked(page, query.get("fields", "kind,incompleteSearch,nextPageToken,files(id,name)"))
        )

    def _refused(self, request: web.Request, call: str, about: str) -> tuple[Fault | None, Item] | web.StreamResponse:
        """The item that is asked for; or the answer where there is none, or no right to it, or a fault is due."""
        fault = self._fault(request, call, about)
        if fault is not None and fault.body is not None:
            return web.Response(text=fault.body, content_type="application/json", status=fault.status or 200)
        if fault is not None and fault.status:
            return error(fault.status, fault.reason, fault.message, retry_after=fault.retry_after)
        if fault is not None and fault.stall:
            self.stalled.set()
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self._valid:
            return error(401, "authError", "Invalid Credentials", location="Authorization")
        item = self.items.get(about)
        hidden = item is not None and "driveId" in item.more and request.query.get("supportsAllDrives") != "true"
        key = "" if item is None else item.more.get("resourceKey", "")
        if item is None or hidden or (key and f"{about}/{key}" not in _keys(request)):
            return error(404, "notFound", f"File not found: {about}.", location="fileId")
        return fault, item


def _keys(request: web.Request) -> list[str]:
    return request.headers.get("x-goog-drive-resource-keys", "").split(",")
