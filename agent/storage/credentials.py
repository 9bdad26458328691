"""`Credentials`: named secrets for document sources and webhooks, from one file that only its owner may read.

Requests and rooms carry a credential's name, never the secret. The file is read at every use, so that changes apply at
once. A value may be `"${NAME}"`, taken from the environment, or `{"file": "path"}`, read from another file.
"""

import base64
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from agent.core.atomic_write import write_atomically
from agent.core.errors import RequestError
from agent.core.models import LOCAL_OWNER, JsonObject
from agent.core.value_faults import describe_faults
from agent.storage.secret_places import SecureUrl, is_below

GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
MAX_BYTES = 1_000_000
"""A key has 2 kB. A file larger than this is the wrong file."""
WEBHOOK_HINT = "see docs/schedules.md"
DOCS_HINT = "docs/connectors.md says how to write one"
WEBHOOK_KEY_BYTES = (24, 64)
"""Least and most bytes of a signing key, as the Standard Webhooks specification has them."""
_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_KEY = re.compile(r"(?!\$\{)(?:Basic )?[!-~]{1,4000}")


class CredentialError(RequestError):
    """Raised when a credential is missing or cannot be read. The message says what to do and contains no secret."""

    code = "ERR_CONNECTOR_AUTH"

    def __init__(self, message: str) -> None:
        super().__init__(message, agent_id="credentials")


Secret = Annotated[SecretStr, Field(min_length=1)]


class _Credential(BaseModel):
    # Google's own files have more fields than needed here, and no error may quote its input.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class GoogleServiceAccount(_Credential):
    """A service account with its key. `subject` is the person it acts for, if an administrator has allowed that."""

    type: Literal["google_service_account"]
    client_email: str = Field(min_length=3)
    private_key: Secret
    private_key_id: str | None = None
    token_uri: SecureUrl = GOOGLE_TOKEN_URI
    subject: str | None = None


class GoogleOAuth(_Credential):
    """A person's consent, as the refresh token of an OAuth client."""

    type: Literal["google_oauth"]
    client_id: str = Field(min_length=1)
    client_secret: Secret
    refresh_token: Secret
    token_uri: SecureUrl = GOOGLE_TOKEN_URI


class _PlacedCredential(_Credential):
    """A secret that goes only below `url`, the operator's word for where. Without one, each address that it is first
    named for is a question to a person with the right `admin`.
    """

    url: SecureUrl | None = None


class Bearer(_PlacedCredential):
    """A token that is sent as it is and cannot be renewed here."""

    type: Literal["bearer"]
    token: Secret


class HeaderSecret(_PlacedCredential):
    """A request header with a secret value, for web sources."""

    type: Literal["header"]
    name: str = Field(pattern=r"^[A-Za-z0-9-]{1,100}$")
    value: Secret


class BasicLogin(_PlacedCredential):
    """A user name and a password (RFC 7617), for web sources."""

    type: Literal["basic"]
    username: str = Field(min_length=1, pattern=r"^[^:]*$")
    password: Secret


class OAuthClient(_PlacedCredential):
    """A client that gets tokens by itself (RFC 6749, 4.4), for web sources."""

    type: Literal["oauth_client"]
    token_uri: SecureUrl
    client_id: str = Field(min_length=1)
    client_secret: Secret
    scope: str = ""


class DocumentPassword(_Credential):
    """A password that opens protected documents of a source."""

    type: Literal["document_password"]
    password: Secret


class WebhookSecret(_Credential):
    """Signs the webhooks that go to `url`, and only those: with a signature made for another address, the holder of
    that address could pass for this gateway. `owners` may use it; all may if it is unset. During a change of the secret
    `previous_secret` signs too.
    """

    type: Literal["webhook"]
    url: str = Field(pattern=r"^https?://")
    secret: Secret
    previous_secret: Secret | None = None
    owners: tuple[str, ...] | None = None

    @field_validator("secret", "previous_secret")
    @classmethod
    def _check_form(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not WEBHOOK_KEY_BYTES[0] <= len(_decode_webhook_key(value)) <= WEBHOOK_KEY_BYTES[1]:
            raise ValueError("must be whsec_ and the base64 of 24 to 64 random bytes")
        return value

    def list_keys(self) -> list[bytes]:
        """The keys that sign, the current one first."""
        return [_decode_webhook_key(value) for value in (self.secret, self.previous_secret) if value is not None]


class ModelKey(_Credential):
    """The key of the model endpoint at `url`, and sent only there. No source can name it: a source's address is chosen
    by its owner, a model's by the operator.
    """

    type: Literal["model_key"]
    url: str = Field(pattern=r"^https?://")
    key: Secret


def _decode_webhook_key(secret: SecretStr) -> bytes:
    """The key in a secret of the form `whsec_BASE64`; empty if it has another form."""
    text = secret.get_secret_value()
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True) if text.startswith("whsec_") else b""
    except ValueError:
        return b""


SourceCredential = GoogleServiceAccount | GoogleOAuth | Bearer
WebCredential = HeaderSecret | BasicLogin | Bearer | OAuthClient
Credential = SourceCredential | WebCredential | DocumentPassword | WebhookSecret | ModelKey
_TYPES: dict[str, type[Credential]] = {
    "header": HeaderSecret,
    "basic": BasicLogin,
    "oauth_client": OAuthClient,
    "google_service_account": GoogleServiceAccount,
    "google_oauth": GoogleOAuth,
    "bearer": Bearer,
    "document_password": DocumentPassword,
    "webhook": WebhookSecret,
    "model_key": ModelKey,
}


class Credentials:
    """The credentials of one file. Reading blocks for a short time: call it from a thread."""

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._path = path
        self._environment = environment

    def get(self, name: str) -> Credential:
        """The credential of this name. Raises `CredentialError` if it is missing or unusable."""
        entries = self._read_entries()
        if name not in entries:
            there = (
                f"the file has {', '.join(sorted(entries))}"
                if entries
                else f"the file is empty or missing; {DOCS_HINT}"
            )
            raise CredentialError(f"there is no credential {name!r} in {self._path}; {there}")
        return self._parse_entry(name, entries[name])

    def get_for(self, name: str, url: str) -> Credential:
        """The credential of this name, to be sent to `url`. Raises `CredentialError` also if it goes elsewhere."""
        credential = self.get(name)
        if isinstance(credential, _PlacedCredential) and credential.url and not is_below(url, credential.url):
            raise CredentialError(
                f"the credential {name!r} in {self._path} is not sent to {url}: its `url` is a different address"
            )
        return credential

    def find_place(self, name: str) -> str | None:
        """The address that the operator wrote into the credential; None if there is none, or no such credential."""
        try:
            credential = self.get(name)
        except CredentialError:
            return None
        return credential.url if isinstance(credential, _PlacedCredential) else None

    def get_password(self, name: str) -> SecretStr:
        """The password of this name. Raises `CredentialError` if it is missing or no password."""
        credential = self.get(name)
        if not isinstance(credential, DocumentPassword):
            raise CredentialError(f"the credential {name!r} in {self._path} is not a document_password; {DOCS_HINT}")
        return credential.password

    def list_webhook_keys(self, name: str, url: str, owner: str) -> list[bytes]:
        """The keys that sign what is posted to `url` for `owner`. Raises `CredentialError` if the credential is
        none for this address and owner.
        """
        credential = self.get(name)
        if not isinstance(credential, WebhookSecret):
            raise CredentialError(f"the credential {name!r} in {self._path} is not of the type webhook; {WEBHOOK_HINT}")
        if credential.url != url:
            raise CredentialError(f"the credential {name!r} signs posts to another address; {WEBHOOK_HINT}")
        if credential.owners is not None and owner not in credential.owners:
            raise CredentialError(f"the credential {name!r} is not for the owner {owner!r}; {WEBHOOK_HINT}")
        return credential.list_keys()

    def get_model_key(self, name: str, url: str) -> SecretStr:
        """The key for the model endpoint at `url`. Raises `CredentialError` if it is not for that address."""
        credential = self.get(name)
        if not isinstance(credential, ModelKey):
            raise CredentialError(f"the credential {name!r} in {self._path} is not of the type model_key")
        if credential.url.rstrip("/") != url.rstrip("/"):
            raise CredentialError(f"the credential {name!r} in {self._path} is the key of another address")
        return credential.key

    def set_model_key(self, name: str, url: str, key: str) -> None:
        """Stores the key of a model endpoint under this name.

        Raises `CredentialError` if the file cannot be written, the key cannot be sent in a header, or would be read
        from the environment.
        """
        if _KEY.fullmatch(key) is None:
            raise CredentialError("a key consists of printable ASCII characters without spaces")
        self._write_entries({**self._read_entries(), name: {"type": "model_key", "url": url, "key": key}})

    def remove_model_key(self, name: str) -> None:
        """Removes a model's key; does nothing if the name is of something else, or of nothing."""
        entries = self._read_entries()
        entry = entries.get(name)
        if isinstance(entry, dict) and entry.get("type") == "model_key":
            self._write_entries({entry_name: value for entry_name, value in entries.items() if entry_name != name})

    def list_names(self) -> tuple[str, ...]:
        """The names in the file, sorted; none if there is no file. Raises `CredentialError` if it cannot be
        read.
        """
        return tuple(sorted(self._read_entries()))

    def list_secrets(self) -> tuple[str, ...]:
        """Every secret value in the file, so that logs and answers can be cleaned of them.

        Skips entries that cannot be used: nothing of them leaves the file. Raises `CredentialError` as `list_names`
        does.
        """
        secrets: list[str] = []
        for name, entry in self._read_entries().items():
            try:
                credential = self._parse_entry(name, entry)
            except CredentialError:
                continue
            values = (getattr(credential, field) for field in type(credential).model_fields)
            secrets += [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        return tuple(dict.fromkeys(secrets))

    def _read_entries(self) -> JsonObject:
        try:
            text = _read_private_file(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CredentialError(f"{self._path} cannot be read: {error.strerror}") from error
        entries = _parse_json(text, f"the credentials file {self._path}")
        if not isinstance(entries, dict):
            raise CredentialError(f"the credentials file {self._path} must be one JSON object; {DOCS_HINT}")
        return entries

    def _write_entries(self, entries: JsonObject) -> None:
        """Replaces the file at once, readable by its owner only."""
        try:
            write_atomically(self._path, json.dumps(entries, indent=2, ensure_ascii=False) + "\n", mode=0o600)
        except OSError as error:
            raise CredentialError(f"{self._path} cannot be written: {error.strerror}") from error

    def _parse_entry(self, name: str, entry: object) -> Credential:
        where = f"the credential {name!r} in {self._path}"
        if not isinstance(entry, dict):
            raise CredentialError(f"{where} must be a JSON object with a type; {DOCS_HINT}")
        kind = _TYPES.get(str(entry.get("type")))
        if kind is None:
            raise CredentialError(f"{where} must have a type, one of {', '.join(_TYPES)}; {DOCS_HINT}")
        values = {field: self._resolve_value(value, f"{where}, {field}") for field, value in entry.items()}
        if "key" in values and kind is GoogleServiceAccount:
            values = {**_parse_google_key(values.pop("key"), f"{where}, key"), **values}
        try:
            return kind.model_validate(values)
        except ValidationError as error:
            fault_text = "; ".join(describe_faults(error, quote=False))
        raise CredentialError(f"{where} is incomplete: {fault_text}; {DOCS_HINT}")

    def _resolve_value(self, value: object, where: str) -> object:
        """A value as written, from the environment, or from a file (relative to the credentials file)."""
        if isinstance(value, dict) and value.keys() == {"file"}:
            path = self._path.parent / Path(str(value["file"])).expanduser()
            try:
                return _read_private_file(path).strip()
            except OSError as error:
                raise CredentialError(f"{where}: {path} cannot be read: {error.strerror}") from error
        named = _FROM_ENVIRONMENT.fullmatch(value) if isinstance(value, str) else None
        if named is None:
            return value
        if not self._environment.get(named[1]):
            raise CredentialError(f"{where}: the environment variable {named[1]} is not set")
        return self._environment[named[1]]


def may_use_credential(owner: str, name: str) -> bool:
    """Whether rooms and sources of this owner may name the credential: shared ones all, others those of their owner."""
    # Owners' names may hold slashes: "a/b/token" belongs to "a/b", not to "a".
    return owner == LOCAL_OWNER or name.rpartition("/")[0] == owner


def read_password_file(path: Path) -> SecretStr:
    """The password in a file, without the line end. Raises `CredentialError` if others may read the file or it
    cannot be read.
    """
    try:
        text = _read_private_file(path.expanduser()).rstrip("\r\n")
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror}") from error
    if not text:
        raise CredentialError(f"{path} is empty; it should hold the password")
    return SecretStr(text)


def _parse_google_key(key: object, where: str) -> JsonObject:
    """Parses Google's own key file, whose `type` differs from ours."""
    key_data = _parse_json(key, where) if isinstance(key, str) else key
    if not isinstance(key_data, dict) or key_data.get("type") != "service_account":
        raise CredentialError(f"{where} is not a service account key: use the JSON file that Google created")
    return {field: value for field, value in key_data.items() if field != "type"}


def _parse_json(text: str, where: str) -> object:
    """Parses JSON. Neither the error nor its cause may contain the secret text, hence the raise outside of `except`."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        reason = "it is nested too deeply"
    except json.JSONDecodeError as error:
        reason = f"{error.msg} in line {error.lineno}, column {error.colno}"
    else:
        return value
    raise CredentialError(f"{where} is not JSON: {reason}")


def _read_private_file(path: Path) -> str:
    """The text of a file that only its owner may read. Checks mode and type on the opened file, not on the
    path.

    Raises `OSError` if it cannot be opened, `CredentialError` for anything wrong with it.
    """
    # Without O_NONBLOCK, opening a pipe would block until it has a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CredentialError(f"{path} is not a file")
        if os.name == "posix" and mode & 0o077:
            permissions = f"{stat.S_IMODE(mode):o}"
            raise CredentialError(f"others may read or change {path} (its mode is {permissions}): chmod 600 {path}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise CredentialError(f"{path} is larger than {MAX_BYTES} bytes; it cannot be a credentials file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
    raise CredentialError(f"{path} is not UTF-8: see byte {at}")
